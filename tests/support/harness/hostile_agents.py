"""Hostile agents for tests: shell scripts that run as agents, next to one in another sandbox."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest

from codetaste.harness.adapter import load_adapter
from codetaste.harness.install.build import install_agent
from codetaste.harness.install.store import InstalledAgent
from codetaste.harness.patch.extract import ExtractedPatch, ExtractionLimits, extract_patch
from codetaste.harness.result import AgentResult
from codetaste.harness.run import AgentTask, run_agent
from codetaste.harness.testbed.testbed import Testbed, testbed_archive
from codetaste.sandbox.base import CommandLimits, Sandbox, SandboxEnd, SandboxProvider, SandboxSpec
from codetaste.sandbox.docker.bootstrap.lean_image import LEAN_IMAGE
from codetaste.sandbox.docker.engine import connect_engine
from codetaste.sandbox.docker.provider import open_docker_sandboxes
from codetaste.sandbox.local.sandbox import bubblewrap_provider
from support.harness.folder_sandbox import make_testbed, write_files
from support.system import dockerd
from support.system.leak_check import Leaks

FILES: dict[str, bytes | str] = {"a.py": b"a\n", "src/b.py": b"b\n", ".gitignore": b"*.log\n"}
ADAPTER = {
    "agent.toml": b'protocol = "none"\nversions = ["1"]\ndefault = "1"\ninstall = ""\n',
    "run.sh": b'#!/bin/sh\n[ "$1" = --version ] && echo 1 && exit\nexec bash -s\n',
}
"""An agent that runs its task as a shell script."""


@dataclass(frozen=True)
class HostileRun:
    """The outcome of a hostile agent: its result, its sandbox's end, its patch and its neighbour's patch."""

    result: AgentResult
    sandbox_end: SandboxEnd | None
    extracted: ExtractedPatch
    neighbour: ExtractedPatch


@dataclass
class HostileAgentRunner:
    """Runs hostile agents with one provider and testbed."""

    provider: SandboxProvider
    testbed: Testbed
    base: Path
    agent: InstalledAgent
    leaks: Leaks

    async def run(
        self,
        script: str,
        *,
        wall_s: float = 60.0,
        limits: ExtractionLimits | None = None,
        **spec: Any,
    ) -> HostileRun:
        """Run a hostile agent to its end, with a neighbour that waits meanwhile; extract both patches."""
        async with self.open_sandbox() as neighbour, self.open_sandbox(**spec) as sandbox:
            async with anyio.create_task_group() as tasks:
                waiting = ["sh", "-c", "until [ -e /tmp/over ]; do sleep 0.05; done; echo neighbour >>a.py"]
                tasks.start_soon(partial(neighbour.run, waiting, limits=CommandLimits(wall_s=3600)))
                result = await self.run_script(sandbox, script, wall_s)
                sandbox_end = sandbox.end
                await sandbox.stop()
                extracted = await extract_patch(sandbox, self.testbed, limits)
                await neighbour.run(["touch", "/tmp/over"])
            neighbour_patch = await extract_patch(neighbour, self.testbed)
        assert b"+neighbour" in neighbour_patch.patch
        assert neighbour_patch.files == 1
        return HostileRun(result, sandbox_end, extracted, neighbour_patch)

    async def run_script(self, sandbox: Sandbox, script: str, wall_s: float) -> AgentResult:
        events = self.leaks.folder / "events"
        try:
            return await run_agent(
                self.agent, sandbox, AgentTask(script), CommandLimits(wall_s=wall_s), events
            )
        finally:
            events.unlink(missing_ok=True)

    @asynccontextmanager
    async def open_sandbox(self, **fields: Any) -> AsyncIterator[Sandbox]:
        spec = replace(SandboxSpec("hostile", mounts=self.agent.mounts, env=self.leaks.env), **fields)
        async with self.provider.open(spec) as sandbox:
            await sandbox.put(testbed_archive(self.testbed, {"/task_description/description.md": b"be good"}))
            yield sandbox


both_engines = pytest.mark.parametrize(
    "engine", ["bubblewrap", pytest.param("docker", marks=pytest.mark.system)], indirect=True
)
both_engines_docker_slow = pytest.mark.parametrize(
    "engine",
    ["bubblewrap", pytest.param("docker", marks=[pytest.mark.system, pytest.mark.slow])],
    indirect=True,
)


@pytest.fixture
def engine(request: pytest.FixtureRequest) -> dockerd.DockerEngine | None:
    """A Docker engine with the lean image, or None for bubblewrap."""
    if request.param == "docker":
        request.getfixturevalue("lean_image")
        docker_engine: dockerd.DockerEngine = request.getfixturevalue("docker_engine")
        return docker_engine
    request.getfixturevalue("bubblewrap")
    return None


@pytest.fixture
async def runner(
    engine: dockerd.DockerEngine | None, tmp_path: Path, nothing_left: Leaks, anyio_backend: str
) -> AsyncIterator[HostileAgentRunner]:
    """A runner with sandboxes of ``engine``; anything left on the host fails the test."""
    base = write_files(tmp_path / "R", FILES)
    testbed = await make_testbed(base, tmp_path / "cache")
    adapter = load_adapter(str(write_files(tmp_path / "shell-agent", dict(ADAPTER))), tmp_path)
    (tmp_path / "shell-agent/run.sh").chmod(0o755)
    async with _open_provider(engine, nothing_left) as provider:
        agent = await install_agent(adapter, None, tmp_path / "agents", print)
        yield HostileAgentRunner(provider, testbed, base, agent, nothing_left)


@asynccontextmanager
async def _open_provider(engine: dockerd.DockerEngine | None, leaks: Leaks) -> AsyncIterator[SandboxProvider]:
    folder = leaks.folder / "sandboxes"
    if engine is None:
        yield bubblewrap_provider(folder)
        await anyio.Path(folder).rmdir()
        return
    leaks.watch(engine)
    async with (
        connect_engine("docker", engine.socket) as connection,
        open_docker_sandboxes(
            connection, run="hostile", image=LEAN_IMAGE, folder=folder, bundle=None, warn=print
        ) as provider,
    ):
        yield provider
    await anyio.Path(folder).rmdir()
