"""Agents that mean no good, for tests: shell scripts that run as any agent does, beside one that works on."""

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
from codetaste.sandbox.docker.engine import connect_engine
from codetaste.sandbox.docker.lean_image import LEAN_IMAGE
from codetaste.sandbox.docker.provider import open_docker_sandboxes
from codetaste.sandbox.local.sandbox import bubblewrap_provider
from support.harness.folder_sandbox import testbed_of, write
from support.system import dockerd
from support.system.leak_check import Leaks

FILES: dict[str, bytes | str] = {"a.py": b"a\n", "src/b.py": b"b\n", ".gitignore": b"*.log\n"}
ADAPTER = {
    "agent.toml": b'protocol = "none"\nversions = ["1"]\ndefault = "1"\ninstall = ""\n',
    "run.sh": b'#!/bin/sh\n[ "$1" = --version ] && echo 1 && exit\nexec bash -s\n',
}
"""An agent that takes its task for a program."""


@dataclass(frozen=True)
class Misdeed:
    """What became of an agent, of the box that it was in, and of one beside it."""

    end: AgentResult
    ended: SandboxEnd | None
    harvest: ExtractedPatch
    beside: ExtractedPatch


@dataclass
class Stage:
    """Where agents misbehave."""

    boxes: SandboxProvider
    testbed: Testbed
    base: Path
    program: InstalledAgent
    leaks: Leaks

    async def plays(
        self,
        script: str,
        *,
        wall_s: float = 60.0,
        limits: ExtractionLimits | None = None,
        **spec: Any,
    ) -> Misdeed:
        """Run an agent to its end, and another all the while that waits for it; harvest both."""
        async with self.box() as calm, self.box(**spec) as box:
            found: list[Misdeed] = []
            async with anyio.create_task_group() as tasks:
                waiting = ["sh", "-c", "until [ -e /tmp/over ]; do sleep 0.05; done; echo calm >>a.py"]
                tasks.start_soon(partial(calm.run, waiting, limits=CommandLimits(wall_s=3600)))
                end = await self.agent(box, script, wall_s)
                ended = box.end
                await box.stop()
                taken = await extract_patch(box, self.testbed, limits)
                await calm.run(["touch", "/tmp/over"])
            found.append(Misdeed(end, ended, taken, await extract_patch(calm, self.testbed)))
        assert b"+calm" in found[0].beside.patch
        assert found[0].beside.files == 1
        return found[0]

    async def agent(self, box: Sandbox, script: str, wall_s: float) -> AgentResult:
        events = self.leaks.folder / "events"
        try:
            return await run_agent(self.program, box, AgentTask(script), CommandLimits(wall_s=wall_s), events)
        finally:
            events.unlink(missing_ok=True)

    @asynccontextmanager
    async def box(self, **fields: Any) -> AsyncIterator[Sandbox]:
        spec = replace(SandboxSpec("hostile", mounts=self.program.mounts, env=self.leaks.env), **fields)
        async with self.boxes.open(spec) as box:
            await box.put(testbed_archive(self.testbed, {"/task_description/description.md": b"be good"}))
            yield box


in_both = pytest.mark.parametrize(
    "engine", ["bubblewrap", pytest.param("docker", marks=pytest.mark.system)], indirect=True
)
in_both_but_seldom_docker = pytest.mark.parametrize(
    "engine",
    ["bubblewrap", pytest.param("docker", marks=[pytest.mark.system, pytest.mark.slow])],
    indirect=True,
)


@pytest.fixture
def engine(request: pytest.FixtureRequest) -> dockerd.DockerEngine | None:
    """What contains: an engine that has the lean image, or bubblewrap."""
    if request.param == "docker":
        request.getfixturevalue("lean_image")
        found: dockerd.DockerEngine = request.getfixturevalue("docker_engine")
        return found
    request.getfixturevalue("bubblewrap")
    return None


@pytest.fixture
async def stage(
    engine: dockerd.DockerEngine | None, tmp_path: Path, nothing_left: Leaks, anyio_backend: str
) -> AsyncIterator[Stage]:
    """A stage in every kind of box; what is left of it fails the test."""
    base = write(tmp_path / "R", FILES)
    testbed = await testbed_of(base, tmp_path / "cache")
    adapter = load_adapter(str(write(tmp_path / "shell-agent", dict(ADAPTER))), tmp_path)
    (tmp_path / "shell-agent/run.sh").chmod(0o755)
    async with _boxes(engine, nothing_left) as boxes:
        program = await install_agent(adapter, None, tmp_path / "agents", print)
        yield Stage(boxes, testbed, base, program, nothing_left)


@asynccontextmanager
async def _boxes(engine: dockerd.DockerEngine | None, leaks: Leaks) -> AsyncIterator[SandboxProvider]:
    folder = leaks.folder / "boxes"
    if engine is None:
        yield bubblewrap_provider(folder)
        await anyio.Path(folder).rmdir()
        return
    leaks.watch(engine)
    async with (
        connect_engine("docker", engine.socket) as reached,
        open_docker_sandboxes(
            reached, run="hostile", image=LEAN_IMAGE, folder=folder, bundle=None, warn=print
        ) as boxes,
    ):
        yield boxes
    await anyio.Path(folder).rmdir()
