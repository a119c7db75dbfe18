"""The structured logs of a run: their lines, their paths, and that their failure never stops the run."""

from __future__ import annotations

import json
import logging
import os
import random
from collections.abc import Iterator
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from codetaste.errors import Cause, ModelUnavailable, SandboxError
from codetaste.orchestration.budget.cost import BudgetLimits, Cost
from codetaste.orchestration.events import CallAnswered, CallFailed, CallSent, Note, ToolCalled
from codetaste.orchestration.job import JobContext
from codetaste.orchestration.journal.journal import Json
from codetaste.orchestration.retry import RetryRule
from codetaste.orchestration.session import open_session
from codetaste.orchestration.wait import Wait, WaitReason
from codetaste.report.live.logs import MAX_PENDING_LINES, LogWriter, log_name, run_logs
from support.orchestration.closure_jobs import closure_job

KEY = "discover/m/tiny/additive"


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("ascii").splitlines()]


async def run_with_logs(directory: Path, *jobs: tuple[str, Any], warn: Any = None) -> list[str]:
    messages: list[str] = []
    retries = {Cause.SANDBOX: RetryRule(tries=2, first_s=0.01)}
    async with (
        run_logs(directory / "logs", warn or messages.append) as logs,
        open_session(
            directory, BudgetLimits(usd=Decimal(5)), observers=[logs], retries=retries, rng=random.Random(1)
        ) as session,
    ):
        await session.run(closure_job(session, key, run, session.budget, key) for key, run in jobs)
    return messages


@pytest.mark.anyio
async def test_job_log_has_attempts_calls_waits_tools_and_end_in_order(tmp_path: Path) -> None:
    async def work(ctx: JobContext) -> Json:
        with ctx.waiting(Wait(WaitReason.PERMIT, "m")):
            await anyio.sleep(0.01)
        ctx.publish(CallSent(ctx.key, "call#1", "m"))
        ctx.publish(CallFailed(ctx.key, "call#1", "m", 0.1, Cause.UNAVAILABLE, "reset\nby peer"))
        ctx.note_retry("m", ModelUnavailable("reset"), 0.5)
        usage = {"input": 10, "output": 5}
        ctx.publish(CallAnswered(ctx.key, "call#2", "m", 0.2, usage, Decimal("0.01"), "req-1"))
        ctx.publish(ToolCalled(ctx.key, "bash_explore", "turn-1/tool-1", 0.3, failed=False))
        ctx.note("looks around")
        if ctx.attempt == 1:
            raise SandboxError("no namespace")
        async with await ctx.start_call("x", await ctx.hold(Cost(Decimal("0.02"), 5))) as paid:
            await paid.settle(Cost(Decimal("0.01"), 5))
        return 1

    assert await run_with_logs(tmp_path, (KEY, work)) == []
    log = lines(tmp_path / "logs" / f"{KEY}.jsonl")
    once = ["wait_started", "wait_ended", "call_sent", "call_failed", "call_retrying", "call_answered"]
    attempt = ["started", *once, "tool_called", "note"]
    back_off = [line["event"] for line in log if line["event"].startswith("wait") and line["attempt"] == 1]
    assert back_off[:2] == ["wait_started", "wait_ended"]
    events = [line["event"] for line in log]
    assert events[: len(attempt)] == attempt
    assert events[-len(attempt) - 1 :] == [*attempt, "finished"]
    assert "retrying" in events
    for line in log:
        assert line["job"] == KEY
        assert datetime.fromisoformat(line["t"]).tzinfo is not None
    assert [line["attempt"] for line in log if line["event"] == "started"] == [1, 2]
    (retrying,) = [line for line in log if line["event"] == "retrying"]
    assert (retrying["level"], retrying["cause"]) == ("warning", "sandbox")
    answered = next(line for line in log if line["event"] == "call_answered")
    assert (answered["usage"], answered["usd"]) == ({"input": 10, "output": 5}, "0.01")
    assert (log[-1]["status"], log[-1]["settled_usd"]) == ("done", "0.01")


@pytest.mark.anyio
async def test_run_log_has_warnings_and_lines_without_job(tmp_path: Path) -> None:
    async def work(_ctx: JobContext) -> Json:
        logging.getLogger("codetaste.somewhere").warning("all is not %s", "well")
        await anyio.to_thread.run_sync(logging.getLogger("other").error, "from a thread")
        return None

    messages = await run_with_logs(tmp_path, (KEY, work))
    assert messages == ["all is not well", "from a thread"]
    assert [line["text"] for line in lines(tmp_path / "logs" / "run.jsonl")] == messages
    assert logging.getLogger().handlers == [] or all(
        type(handler).__module__ != "codetaste.report.live.logs" for handler in logging.getLogger().handlers
    )


@pytest.mark.anyio
async def test_job_log_is_written_before_run_ends(tmp_path: Path) -> None:
    log = tmp_path / "logs" / "quick.jsonl"

    async def quick(_ctx: JobContext) -> Json:
        return None

    async def waits(_ctx: JobContext) -> Json:
        with anyio.fail_after(200):
            while not log.exists():  # noqa: ASYNC110 - nothing notifies of a new file
                await anyio.sleep(0.01)
        return None

    await run_with_logs(tmp_path, ("quick", quick), ("waits", waits))
    assert [line["event"] for line in lines(log)] == ["started", "finished"]


@pytest.mark.anyio
async def test_logs_of_cancelled_run_are_written(tmp_path: Path) -> None:
    started = anyio.Event()

    async def work(ctx: JobContext) -> Json:
        ctx.note("here")
        started.set()
        await anyio.sleep_forever()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run_with_logs, tmp_path, (KEY, work))
        await started.wait()
        tasks.cancel_scope.cancel()
    assert "here" in str(lines(tmp_path / "logs" / f"{KEY}.jsonl"))


@pytest.mark.anyio
@pytest.mark.parametrize("kind", ["file in the way", "full"])
async def test_unwritable_logs_are_reported_once_and_run_continues(tmp_path: Path, kind: str) -> None:
    folder = tmp_path / "logs"
    if kind == "full":
        folder.mkdir()
        for name in ("a.jsonl", "b.jsonl"):
            (folder / name).symlink_to("/dev/full")
    else:
        folder.write_text("not a folder")

    async def work(ctx: JobContext) -> Json:
        for _ in range(3):
            ctx.note("x")
            await anyio.sleep(0.3)
        return 1

    messages = await run_with_logs(tmp_path, ("a", work), ("b", work))
    assert len(messages) == 1
    assert "logs cannot be written, the run continues" in messages[0]


@pytest.mark.anyio
async def test_unwritable_log_does_not_affect_other_logs(tmp_path: Path) -> None:
    (tmp_path / "logs" / "a.jsonl").mkdir(parents=True)

    async def work(_ctx: JobContext) -> Json:
        return 1

    assert len(await run_with_logs(tmp_path, ("a", work), ("b", work))) == 1
    assert [line["event"] for line in lines(tmp_path / "logs" / "b.jsonl")] == ["started", "finished"]


@pytest.mark.anyio
async def test_log_queue_is_bounded_and_dropped_lines_are_counted(tmp_path: Path) -> None:
    logs = LogWriter(tmp_path, print)
    for number in range(MAX_PENDING_LINES + 7):
        logs(Note("job", str(number)))
    await logs.flush()
    logs(Note("job", "later"))
    await logs.flush()
    written = lines(tmp_path / "job.jsonl")
    assert len(written) == MAX_PENDING_LINES + 1
    assert written[-1]["text"] == "later"
    assert [line["lines"] for line in lines(tmp_path / "run.jsonl")] == [7]


def files_below(root: Path) -> Iterator[Path]:
    for folder, _, files in os.walk(root):
        yield from (Path(folder, file) for file in files)


KEYS = st.text(max_size=300) | st.sampled_from(
    ["run", "..", "../x", "a/../../b", "/etc/x", ".", "a//b", "a.jsonl/b", "a", "nul\0", "%run", "\ud800"]
)


@given(st.lists(KEYS.filter(bool), unique=True, max_size=8))
def test_each_key_has_its_own_log_below_the_folder(
    tmp_path_factory: pytest.TempPathFactory, keys: list[str]
) -> None:
    root = tmp_path_factory.mktemp("logs")
    names = [log_name(key) for key in keys]
    assert len({*names, log_name("")}) == len(keys) + 1
    for name in names:
        path = root / "logs" / name
        assert ".." not in path.parts
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x")
    assert sum(1 for _ in files_below(root / "logs")) == len(keys)
    assert sum(1 for _ in files_below(root)) == len(keys)


def test_log_names_of_flow_keys_equal_the_keys() -> None:
    assert log_name("discover/claude-4.5/koajs__koa-1234/additive") == (
        "discover/claude-4.5/koajs__koa-1234/additive.jsonl"
    )
