"""The real agents in containers, with a compacted conversation, and with a model that does not reply."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import pytest

from codetaste.harness.install.store import InstalledAgent
from codetaste.llm.messages import Request, Usage
from codetaste.llm.providers.scripted import ScriptedReply
from codetaste.sandbox.base import SandboxProvider
from codetaste.sandbox.docker.engine import connect_engine
from codetaste.sandbox.docker.provider import open_docker_sandboxes
from support.harness.agent_job import MODELS, PINNED, AgentRun, apply_patch, install_by_name, run_with_model
from support.harness.coding_models import ADDED, DONE, NEW, SIDE_USAGE, coder, endless_coder
from support.system import dockerd

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(300)]

EDITED_FILES = {"hello.py": f"{NEW}\n", "added.txt": ADDED}


@pytest.fixture
async def containers(
    docker_engine: dockerd.DockerEngine, lean_image: str, tmp_path: Path, anyio_backend: str
) -> AsyncIterator[SandboxProvider]:
    """Docker sandboxes of the lean image."""
    async with (
        connect_engine("docker", docker_engine.socket) as engine,
        open_docker_sandboxes(
            engine,
            run="agents",
            image=lean_image,
            folder=tmp_path / "sandboxes",
            bundle=None,
            warn=pytest.fail,
        ) as provider,
    ):
        yield provider


async def test_three_agents_edit_in_containers_concurrently(
    tmp_path: Path, containers: SandboxProvider, agents_cache: Path
) -> None:
    runs: dict[str, AgentRun] = {}

    async def work(agent: InstalledAgent) -> None:
        name = agent.adapter.name
        (tmp_path / name).mkdir()
        model = MODELS.get(name, "scripted-1")
        runs[name] = await run_with_model(tmp_path / name, containers, agent, coder, model=model)

    agents = [await install_by_name(name, agents_cache) for name in PINNED]
    async with anyio.create_task_group() as tasks:
        for agent in agents:
            tasks.start_soon(work, agent)
    for name, run in runs.items():
        assert (run.result.finish_reason, run.result.message) == ("success", DONE), name
        assert apply_patch(run.patch, tmp_path / name / "after") == EDITED_FILES, name


@pytest.mark.slow
@pytest.mark.parametrize("name", PINNED)
async def test_agent_in_container_stops_at_budget(
    name: str, tmp_path: Path, containers: SandboxProvider, agents_cache: Path
) -> None:
    agent = await install_by_name(name, agents_cache)
    model = MODELS.get(name, "scripted-1")
    run = await run_with_model(tmp_path, containers, agent, endless_coder, usd="0.30", model=model)
    assert run.result.finish_reason == "budget_exceeded"
    assert apply_patch(run.patch, tmp_path / "after") == EDITED_FILES
    assert (run.spent_usd <= run.budget_usd, run.left_running) == (True, "")


class CompactingModel:
    """Edits code, and reports a full window once; the agent's compaction request has no tools."""

    def __init__(self) -> None:
        self.compactions = 0

    def __call__(self, request: Request) -> ScriptedReply:
        if not request.tools:
            self.compactions += 1
            return ScriptedReply("<state_snapshot>Both edits are made.</state_snapshot>", usage=SIDE_USAGE)
        if self.compactions:
            return ScriptedReply(DONE, usage=SIDE_USAGE)
        reply = coder(request)
        if "apply_patch" in str(reply.content) or "write_file" in str(reply.content):
            return ScriptedReply(reply.content, usage=Usage(input=260_000, output=100))
        return reply


@pytest.mark.slow
@pytest.mark.parametrize("name", ["codex", "qwen-code"])
async def test_compacted_conversation_is_charged_and_continues(
    name: str, tmp_path: Path, provider: SandboxProvider, agents_cache: Path
) -> None:
    model = CompactingModel()
    agent = await install_by_name(name, agents_cache)
    run = await run_with_model(
        tmp_path, provider, agent, model, usd="20", model=MODELS.get(name, "scripted-1")
    )
    assert model.compactions >= 1
    assert (run.result.finish_reason, run.result.message) == ("success", DONE)
    assert run.usage.requests == run.usage.turns + model.compactions


@pytest.mark.slow
@pytest.mark.parametrize("name", PINNED)
async def test_agent_with_unresponsive_model_stops_at_time_limit(
    name: str, tmp_path: Path, provider: SandboxProvider, agents_cache: Path
) -> None:
    async def silent(request: Request) -> ScriptedReply:
        if len(request.messages) > 4:
            await anyio.sleep(1000)
        return coder(request)

    agent = await install_by_name(name, agents_cache)
    run = await run_with_model(
        tmp_path, provider, agent, silent, wall_s=20.0, model=MODELS.get(name, "scripted-1")
    )
    assert run.result.finish_reason == "timeout"
    assert run.left_running == ""
