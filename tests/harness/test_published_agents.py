"""The real programs in a box, at the gateway, with a scripted model: edits, budgets, time limits, Ctrl-C."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

import anyio
import pytest

from codetaste.errors import ModelRefused
from codetaste.harness.install.store import InstalledAgent
from codetaste.harness.result import AgentResult
from codetaste.llm.messages import Request
from codetaste.llm.providers.scripted import ScriptedReply
from codetaste.sandbox.base import SandboxProvider
from support.harness.agent_job import MODELS, PINNED, Trial, agent, applied, at_work
from support.harness.coding_models import ADDED, DONE, NEW, SIDE, USAGE, coder, restless, stuck, stuck_from

pytestmark = [pytest.mark.anyio, pytest.mark.heavy, pytest.mark.timeout(300)]

CURRENT = ("claude-code@2.1.330", "codex@0.169.0", "qwen-code@0.24.4")
EDITED = {"hello.py": f"{NEW}\n", "added.txt": ADDED}
SAYS_ITS_USAGE_WHEN_STOPPED = ("claude-code", "qwen-code")


@pytest.mark.parametrize("name", PINNED)
async def test_a_program_edits_the_repository_and_tells_how_it_went(
    name: str, tmp_path: Path, local: SandboxProvider, agents_cache: Path
) -> None:
    trial = await at_work(tmp_path, local, await agent(name, agents_cache), coder, model=model_of(name))
    end, tally = trial.done, trial.counted
    assert (end.finish_reason, end.problem) == ("success", "")
    assert applied(trial.patch, tmp_path / "after") == EDITED
    assert (end.message, end.exit_code, end.tool_calls) == (DONE, 0, 4)
    assert (tally.turns, tally.tool_calls) == (5, 4)
    assert end.turns in {5, None}, "Codex does not say"
    assert end.usage == tally.tokens
    assert (end.cost_usd is None) == (name != "claude-code"), "who says what it costs is heard"
    sides = [request for request in trial.requests if not request.tools]
    assert bool(sides) == (name == "claude-code"), "which asks for the paths in a command's output, for one"
    assert tally.requests == tally.turns + len(sides)
    assert tally.tokens.input == 5 * USAGE.input + len(sides) * SIDE.input
    assert trial.events.stat().st_size == end.stream_bytes > 0
    assert trial.left_running == ""


@pytest.mark.parametrize("name", PINNED)
async def test_agent_over_budget_after_second_edit_keeps_both_edits(
    name: str, tmp_path: Path, local: SandboxProvider, agents_cache: Path
) -> None:
    program = await agent(name, agents_cache)
    trial = await at_work(tmp_path, local, program, restless, usd="0.30", model=model_of(name))
    assert trial.done.finish_reason == "budget_exceeded"
    assert applied(trial.patch, tmp_path / "after") == EDITED
    assert trial.spent_usd <= trial.budget_usd
    assert trial.counted.turns == 3
    assert (trial.done.usage is not None) == (name in SAYS_ITS_USAGE_WHEN_STOPPED)
    assert trial.left_running == ""


@pytest.mark.timeout(600)
@pytest.mark.parametrize("how", ["time limit", "Ctrl-C"])
async def test_agents_stopped_in_command_keep_edits_and_leave_no_process(
    how: str, tmp_path: Path, local: SandboxProvider, agents_cache: Path
) -> None:
    programs = [await agent(name, agents_cache) for name in PINNED]
    trials: dict[str, Trial] = {}

    async def stopped(program: InstalledAgent) -> None:
        name = program.adapter.name
        # A machine that is busy may not come to the command within the first limit.
        for wall_s in (10.0, 80.0):
            reached, folder = anyio.Event(), tmp_path / f"{name}-{wall_s}"
            folder.mkdir()
            more = {"wall_s": wall_s} if how == "time limit" else {"drive": ctrl_c_after(reached)}
            script = stuck_from(reached)
            trials[name] = await at_work(folder, local, program, script, model=model_of(name), **more)
            if reached.is_set():
                break

    async with anyio.create_task_group() as tasks:
        for program in programs:
            tasks.start_soon(stopped, program)
    for name, trial in trials.items():
        assert applied(trial.patch, tmp_path / f"{name}-after") == EDITED, name
        assert trial.left_running == "", name
        if how == "time limit":
            assert (trial.done.finish_reason, trial.done.exit_code) == ("timeout", None), name


def ctrl_c_after(reached: anyio.Event) -> Callable[[Callable[[], Awaitable[AgentResult]]], Awaitable[None]]:
    """Run a program until its model has asked for the command that never ends, and cancel it."""

    async def drive(run: Callable[[], Awaitable[AgentResult]]) -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run)
            await reached.wait()
            await anyio.sleep(1.0)
            tasks.cancel_scope.cancel()

    return drive


async def test_agent_success_after_provider_end_is_a_failure(
    tmp_path: Path, local: SandboxProvider, agents_cache: Path
) -> None:
    def refuses(request: Request) -> ScriptedReply:
        if len(request.messages) > 4:
            raise ModelRefused("this model is no more")
        return coder(request)

    trial = await at_work(tmp_path, local, await agent("qwen-code", agents_cache), refuses)
    assert (trial.done.finish_reason, trial.done.exit_code) == ("error", 0)
    assert "[API Error" in trial.done.problem


async def test_a_long_prompt_of_any_characters_arrives_whole(
    tmp_path: Path, local: SandboxProvider, agents_cache: Path
) -> None:
    prompt = "Ünïcode 中文 'quoted' \"twice\" $HOME `x`\n" * 8000
    trial = await at_work(tmp_path, local, await agent("codex", agents_cache), coder, prompt=prompt)
    assert any(prompt.strip() in message.text for message in trial.requests[0].messages)


@pytest.mark.slow
@pytest.mark.parametrize("name", CURRENT)
async def test_a_current_release_edits_the_repository(
    name: str, tmp_path: Path, local: SandboxProvider, agents_cache: Path
) -> None:
    trial = await at_work(tmp_path, local, await agent(name, agents_cache), coder, model=model_of(name))
    assert (trial.done.finish_reason, trial.done.problem) == ("success", "")
    assert applied(trial.patch, tmp_path / "after") == EDITED
    assert (trial.done.message, trial.done.tool_calls, trial.left_running) == (DONE, 4, "")


@pytest.mark.slow
@pytest.mark.parametrize("name", CURRENT)
async def test_a_current_release_is_stopped_by_its_budget(
    name: str, tmp_path: Path, local: SandboxProvider, agents_cache: Path
) -> None:
    program = await agent(name, agents_cache)
    trial = await at_work(tmp_path, local, program, restless, usd="0.30", model=model_of(name))
    assert trial.done.finish_reason == "budget_exceeded"
    assert applied(trial.patch, tmp_path / "after") == EDITED
    assert (trial.spent_usd <= trial.budget_usd, trial.counted.turns) == (True, 3)


@pytest.mark.slow
@pytest.mark.parametrize("name", CURRENT)
async def test_a_current_release_is_stopped_by_its_time_limit(
    name: str, tmp_path: Path, local: SandboxProvider, agents_cache: Path
) -> None:
    program = await agent(name, agents_cache)
    trial = await at_work(tmp_path, local, program, stuck, wall_s=20.0, model=model_of(name))
    assert trial.done.finish_reason == "timeout"
    assert applied(trial.patch, tmp_path / "after") == EDITED
    assert trial.left_running == ""


def model_of(name: str) -> str:
    return MODELS.get(name, "scripted-1")
