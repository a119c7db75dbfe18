"""The real agents in a sandbox with the gateway and a scripted model: edits, budgets, time limits, Ctrl-C."""

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
from support.harness.agent_job import (
    MODELS,
    NEWEST,
    PINNED,
    AgentRun,
    apply_patch,
    install_by_name,
    run_with_model,
)
from support.harness.coding_models import (
    ADDED,
    DONE,
    NEW,
    SIDE_USAGE,
    USAGE,
    coder,
    endless_coder,
    make_stuck_coder,
    stuck_coder,
)

pytestmark = [pytest.mark.anyio, pytest.mark.heavy, pytest.mark.timeout(300)]

CURRENT = tuple(NEWEST.values())
EDITED_FILES = {"hello.py": f"{NEW}\n", "added.txt": ADDED}
REPORTS_USAGE_WHEN_STOPPED = ("claude-code", "qwen-code")


@pytest.mark.parametrize("name", PINNED)
async def test_agent_edits_repository_and_reports_result(
    name: str, tmp_path: Path, provider: SandboxProvider, agents_cache: Path
) -> None:
    run = await run_with_model(
        tmp_path, provider, await install_by_name(name, agents_cache), coder, model=model_of(name)
    )
    result, usage = run.result, run.usage
    assert (result.finish_reason, result.problem) == ("success", "")
    assert apply_patch(run.patch, tmp_path / "after") == EDITED_FILES
    assert (result.message, result.exit_code, result.tool_calls) == (DONE, 0, 4)
    assert (usage.turns, usage.tool_calls) == (5, 4)
    assert result.turns in {5, None}, "Codex does not report turns"
    assert result.usage == usage.tokens
    assert (result.cost_usd is None) == (name != "claude-code"), "only Claude Code reports a cost"
    side_requests = [request for request in run.requests if not request.tools]
    assert bool(side_requests) == (name == "claude-code"), "Claude Code requests the paths in an output"
    assert usage.requests == usage.turns + len(side_requests)
    assert usage.tokens.input == 5 * USAGE.input + len(side_requests) * SIDE_USAGE.input
    assert run.events.stat().st_size == result.stream_bytes > 0
    assert run.left_running == ""


@pytest.mark.parametrize("name", PINNED)
async def test_patch_has_both_edits_of_agent_over_budget(
    name: str, tmp_path: Path, provider: SandboxProvider, agents_cache: Path
) -> None:
    agent = await install_by_name(name, agents_cache)
    run = await run_with_model(tmp_path, provider, agent, endless_coder, usd="0.30", model=model_of(name))
    assert run.result.finish_reason == "budget_exceeded"
    assert apply_patch(run.patch, tmp_path / "after") == EDITED_FILES
    assert run.spent_usd <= run.budget_usd
    assert run.usage.turns == 3
    assert (run.result.usage is not None) == (name in REPORTS_USAGE_WHEN_STOPPED)
    assert run.left_running == ""


@pytest.mark.timeout(600)
@pytest.mark.parametrize("how", ["time limit", "Ctrl-C"])
async def test_patch_has_edits_of_agents_stopped_in_command(
    how: str, tmp_path: Path, provider: SandboxProvider, agents_cache: Path
) -> None:
    agents = [await install_by_name(name, agents_cache) for name in PINNED]
    runs: dict[str, AgentRun] = {}

    async def run_until_stopped(agent: InstalledAgent) -> None:
        name = agent.adapter.name
        # On a busy machine, the agent may not reach the command within the first limit.
        for wall_s in (10.0, 80.0):
            reached, folder = anyio.Event(), tmp_path / f"{name}-{wall_s}"
            folder.mkdir()
            more = {"wall_s": wall_s} if how == "time limit" else {"drive": cancel_after(reached)}
            script = make_stuck_coder(reached)
            runs[name] = await run_with_model(folder, provider, agent, script, model=model_of(name), **more)
            if reached.is_set():
                break

    async with anyio.create_task_group() as tasks:
        for agent in agents:
            tasks.start_soon(run_until_stopped, agent)
    for name, run in runs.items():
        assert apply_patch(run.patch, tmp_path / f"{name}-after") == EDITED_FILES, name
        assert run.left_running == "", name
        if how == "time limit":
            assert (run.result.finish_reason, run.result.exit_code) == ("timeout", None), name


def cancel_after(reached: anyio.Event) -> Callable[[Callable[[], Awaitable[AgentResult]]], Awaitable[None]]:
    """Run an agent until its model has requested the command that never ends, and cancel the run."""

    async def drive(run: Callable[[], Awaitable[AgentResult]]) -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run)
            await reached.wait()
            await anyio.sleep(1.0)
            tasks.cancel_scope.cancel()

    return drive


async def test_agent_success_despite_refused_request_is_an_error(
    tmp_path: Path, provider: SandboxProvider, agents_cache: Path
) -> None:
    def refuse(request: Request) -> ScriptedReply:
        if len(request.messages) > 4:
            raise ModelRefused("this model is retired")
        return coder(request)

    run = await run_with_model(tmp_path, provider, await install_by_name("qwen-code", agents_cache), refuse)
    assert (run.result.finish_reason, run.result.exit_code) == ("error", 0)
    assert "[API Error" in run.result.problem


async def test_long_unicode_prompt_reaches_model_unchanged(
    tmp_path: Path, provider: SandboxProvider, agents_cache: Path
) -> None:
    prompt = "Ünïcode 中文 'quoted' \"twice\" $HOME `x`\n" * 8000
    run = await run_with_model(
        tmp_path, provider, await install_by_name("codex", agents_cache), coder, prompt=prompt
    )
    assert any(prompt.strip() in message.text for message in run.requests[0].messages)


@pytest.mark.slow
@pytest.mark.parametrize("name", CURRENT)
async def test_current_release_edits_repository(
    name: str, tmp_path: Path, provider: SandboxProvider, agents_cache: Path
) -> None:
    run = await run_with_model(
        tmp_path, provider, await install_by_name(name, agents_cache), coder, model=model_of(name)
    )
    assert (run.result.finish_reason, run.result.problem) == ("success", "")
    assert apply_patch(run.patch, tmp_path / "after") == EDITED_FILES
    assert (run.result.message, run.result.tool_calls, run.left_running) == (DONE, 4, "")


@pytest.mark.slow
@pytest.mark.parametrize("name", CURRENT)
async def test_current_release_stops_at_budget(
    name: str, tmp_path: Path, provider: SandboxProvider, agents_cache: Path
) -> None:
    agent = await install_by_name(name, agents_cache)
    run = await run_with_model(tmp_path, provider, agent, endless_coder, usd="0.30", model=model_of(name))
    assert run.result.finish_reason == "budget_exceeded"
    assert apply_patch(run.patch, tmp_path / "after") == EDITED_FILES
    assert (run.spent_usd <= run.budget_usd, run.usage.turns) == (True, 3)


@pytest.mark.slow
@pytest.mark.parametrize("name", CURRENT)
async def test_current_release_stops_at_time_limit(
    name: str, tmp_path: Path, provider: SandboxProvider, agents_cache: Path
) -> None:
    agent = await install_by_name(name, agents_cache)
    run = await run_with_model(tmp_path, provider, agent, stuck_coder, wall_s=40.0, model=model_of(name))
    assert run.result.finish_reason == "timeout"
    assert apply_patch(run.patch, tmp_path / "after") == EDITED_FILES
    assert run.left_running == ""


def model_of(name: str) -> str:
    return MODELS.get(name, "scripted-1")
