"""The real programs in other places and on unusual days: in containers, after a compaction, in silence."""

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
from support.harness.agent_job import MODELS, PINNED, Trial, agent, applied, at_work
from support.harness.coding_models import ADDED, DONE, NEW, SIDE, coder, restless
from support.system import dockerd

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(300)]

EDITED = {"hello.py": f"{NEW}\n", "added.txt": ADDED}


@pytest.fixture
async def containers(
    docker_engine: dockerd.DockerEngine, lean_image: str, tmp_path: Path, anyio_backend: str
) -> AsyncIterator[SandboxProvider]:
    """Containers of the lean image."""
    async with (
        connect_engine("docker", docker_engine.socket) as engine,
        open_docker_sandboxes(
            engine, run="agents", image=lean_image, folder=tmp_path / "boxes", bundle=None, warn=pytest.fail
        ) as boxes,
    ):
        yield boxes


async def test_all_three_edit_in_containers_at_the_same_time(
    tmp_path: Path, containers: SandboxProvider, agents_cache: Path
) -> None:
    trials: dict[str, Trial] = {}

    async def work(program: InstalledAgent) -> None:
        name = program.adapter.name
        (tmp_path / name).mkdir()
        model = MODELS.get(name, "scripted-1")
        trials[name] = await at_work(tmp_path / name, containers, program, coder, model=model)

    programs = [await agent(name, agents_cache) for name in PINNED]
    async with anyio.create_task_group() as tasks:
        for program in programs:
            tasks.start_soon(work, program)
    for name, trial in trials.items():
        assert (trial.done.finish_reason, trial.done.message) == ("success", DONE), name
        assert applied(trial.patch, tmp_path / name / "after") == EDITED, name


@pytest.mark.slow
@pytest.mark.parametrize("name", PINNED)
async def test_a_program_in_a_container_is_stopped_by_its_budget(
    name: str, tmp_path: Path, containers: SandboxProvider, agents_cache: Path
) -> None:
    program = await agent(name, agents_cache)
    model = MODELS.get(name, "scripted-1")
    trial = await at_work(tmp_path, containers, program, restless, usd="0.30", model=model)
    assert trial.done.finish_reason == "budget_exceeded"
    assert applied(trial.patch, tmp_path / "after") == EDITED
    assert (trial.spent_usd <= trial.budget_usd, trial.left_running) == (True, "")


class Filling:
    """Codes, and believes once that its window is full; what it is asked then has no tools."""

    def __init__(self) -> None:
        self.full, self.compactions = False, 0

    def __call__(self, request: Request) -> ScriptedReply:
        if not request.tools:
            self.compactions += 1
            return ScriptedReply("<state_snapshot>Both edits are made.</state_snapshot>", usage=SIDE)
        if self.compactions:
            return ScriptedReply(DONE, usage=SIDE)
        said = coder(request)
        if "apply_patch" in str(said.content) or "write_file" in str(said.content):
            return ScriptedReply(said.content, usage=Usage(input=260_000, output=100))
        return said


@pytest.mark.slow
@pytest.mark.parametrize("name", ["codex", "qwen-code"])
async def test_compacted_conversation_is_charged_and_continues(
    name: str, tmp_path: Path, local: SandboxProvider, agents_cache: Path
) -> None:
    model = Filling()
    program = await agent(name, agents_cache)
    trial = await at_work(tmp_path, local, program, model, usd="20", model=MODELS.get(name, "scripted-1"))
    assert model.compactions >= 1
    assert (trial.done.finish_reason, trial.done.message) == ("success", DONE)
    assert trial.counted.requests == trial.counted.turns + model.compactions


@pytest.mark.slow
@pytest.mark.parametrize("name", PINNED)
async def test_agent_with_silent_model_ends_at_time_limit(
    name: str, tmp_path: Path, local: SandboxProvider, agents_cache: Path
) -> None:
    async def silent(request: Request) -> ScriptedReply:
        if len(request.messages) > 4:
            await anyio.sleep(1000)
        return coder(request)

    program = await agent(name, agents_cache)
    trial = await at_work(tmp_path, local, program, silent, wall_s=20.0, model=MODELS.get(name, "scripted-1"))
    assert trial.done.finish_reason == "timeout"
    assert trial.left_running == ""
