"""A pool of JVMs: a hung, dead or full one costs its own request only."""

from __future__ import annotations

import os
import signal
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest

from codetaste.core.concurrency import gather
from codetaste.core.processes import process_exists
from codetaste.errors import JavaError, JavaOutcome
from codetaste.java.jdk import Jdk, find_jdk
from codetaste.java.worker.pool import JavaWorkers, java_workers
from codetaste.java.worker.program import JavaProgram
from support.sandbox.providers import find_descendants

pytestmark = [pytest.mark.anyio, pytest.mark.heavy]

SOURCE = Path(__file__).parents[2] / "support" / "java" / "Probe.java"
LONG_S = 120.0


@asynccontextmanager
async def pool(size: int = 1, source: Path = SOURCE, cache: Path | None = None) -> AsyncIterator[JavaWorkers]:
    jdk = await find_jdk(17, purpose="the test")
    async with java_workers(JavaProgram("probe", jdk, source, (), 64 * 1024**2), size, cache) as workers:
        yield workers


async def outcome_of(workers: JavaWorkers, op: str, timeout_s: float = LONG_S) -> JavaOutcome:
    with pytest.raises(JavaError) as caught:
        await workers.ask({"op": op}, timeout_s)
    return caught.value.outcome


def command_of(process: int) -> bytes:
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes()
    except OSError:
        return b""


async def echo(workers: JavaWorkers, value: Any) -> Any:
    return await workers.ask({"op": "echo", "value": value}, LONG_S)


async def test_answers_come_to_their_requests() -> None:
    async with pool(2) as workers:
        values = ["ä\n\x00😀", [1, {"b": None}], "x" * 300_000, 7]
        assert await gather([partial(echo, workers, value) for value in values]) == values
        assert workers.statistics().answered == 4
        assert workers.statistics().started <= 2


async def test_a_hung_request_costs_its_time_limit_and_the_queue_goes_on() -> None:
    async with pool() as workers:
        hung = await workers.ask({"op": "pid"}, LONG_S)
        async with anyio.create_task_group() as group:
            group.start_soon(outcome_of, workers, "sleep", 0.5)
            await anyio.sleep(0.1)
            answers = await gather([partial(echo, workers, number) for number in range(5)])
        assert answers == list(range(5))
        assert not process_exists(hung)
        assert (workers.statistics().timeouts, workers.statistics().started) == (1, 2)
        assert await outcome_of(workers, "sleep", 0.2) is JavaOutcome.TIMEOUT


async def test_each_way_to_die_has_its_outcome() -> None:
    async with pool() as workers:
        assert await outcome_of(workers, "fill") is JavaOutcome.MEMORY
        assert await outcome_of(workers, "exit") is JavaOutcome.CRASH
        assert await outcome_of(workers, "garbage") is JavaOutcome.CRASH
        assert await outcome_of(workers, "fail") is JavaOutcome.FAILED
        started = workers.statistics().started
        assert await echo(workers, 1) == 1
        assert workers.statistics().started == started, "an error of a request leaves its JVM"


async def test_a_request_is_repeated_when_earlier_ones_filled_the_memory() -> None:
    async with pool() as workers:
        for _ in range(4):  # two fit into one JVM
            assert await workers.ask({"op": "keep"}, LONG_S) >= 24
        assert workers.statistics().started == workers.statistics().deaths + 1 > 1


async def test_a_jvm_that_was_killed_while_idle_is_replaced() -> None:
    async with pool() as workers:
        os.kill(await workers.ask({"op": "pid"}, LONG_S), signal.SIGKILL)
        assert await echo(workers, 1) == 1


async def test_a_cancelled_request_leaves_no_jvm_and_no_late_answer() -> None:
    async with pool() as workers:
        process = await workers.ask({"op": "pid"}, LONG_S)
        with anyio.move_on_after(0.3):
            await workers.ask({"op": "sleep"}, LONG_S)
        assert not process_exists(process)
        assert await echo(workers, 2) == 2


async def test_output_of_libraries_does_not_disturb() -> None:
    async with pool() as workers:
        assert await workers.ask({"op": "shout"}, LONG_S) == 1
        assert await echo(workers, 1) == 1


async def test_nothing_stays_after_the_pool() -> None:
    async with pool() as workers:
        process, scratch = await workers.ask({"op": "pid"}, LONG_S), workers._scratch
        assert scratch.is_dir()
    assert not process_exists(process)
    assert not scratch.exists()


async def test_a_program_is_compiled_once(tmp_path: Path) -> None:
    async with pool(2, cache=tmp_path) as workers:
        await gather([partial(echo, workers, number) for number in range(4)])
        process = await workers.ask({"op": "pid"}, LONG_S)
        command = Path(f"/proc/{process}/cmdline").read_bytes()  # noqa: ASYNC240
    assert command.endswith(b"\0Probe\0")
    (made,) = (tmp_path / "java-classes").iterdir()
    assert {path.name for path in made.iterdir()} == {"Probe.class"}
    before = (made / "Probe.class").stat()
    async with pool(cache=tmp_path) as workers:
        assert await echo(workers, 1) == 1
    assert (made / "Probe.class").stat() == before
    not_a_folder = tmp_path / "file"
    not_a_folder.touch()
    async with pool(cache=not_a_folder) as workers:
        assert await echo(workers, 1) == 1


async def test_a_cancellation_at_any_moment_leaves_no_jvm(tmp_path: Path) -> None:
    for delay_s in (0.0, 0.001, 0.05, 0.3, 1.0, 2.0):
        with anyio.move_on_after(delay_s):
            async with pool(2, cache=tmp_path) as workers:
                await gather([partial(echo, workers, number) for number in range(2)])
                await workers.ask({"op": "sleep"}, LONG_S)
        assert not [each for each in find_descendants() if b"Probe" in command_of(each)]


async def test_a_program_that_does_not_compile_or_start_is_one_line(tmp_path: Path) -> None:
    bad = tmp_path / "Bad.java"
    bad.write_text("class Bad { int }")
    async with pool(source=bad) as workers:
        with pytest.raises(JavaError, match=r"^probe: the JVM ended with 1: .*") as caught:
            await workers.ask({}, LONG_S)
    assert caught.value.outcome is JavaOutcome.NO_START, "no matter of the request"
    missing = JavaProgram("probe", Jdk(tmp_path, 17, "17", compiler=True), SOURCE, (), 2**26)
    async with java_workers(missing, 1) as workers:
        with pytest.raises(JavaError, match="cannot be run") as caught:
            await workers.ask({}, LONG_S)
    assert caught.value.outcome is JavaOutcome.NO_START


async def test_a_jvm_ends_with_the_process_that_started_it_and_its_folder_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = """
import anyio, sys
from test_pool import pool, LONG_S
async def main():
    async with pool() as workers:
        print(await workers.ask({"op": "pid"}, LONG_S), flush=True)
        await workers.ask({"op": "sleep"}, LONG_S)
anyio.run(main)
"""
    folders = os.pathsep.join(map(str, (Path(__file__).parent, Path(__file__).parents[2])))
    variables = {**os.environ, "PYTHONPATH": folders, "TMPDIR": str(tmp_path)}
    async with await anyio.open_process([sys.executable, "-c", script], env=variables) as process:
        assert process.stdout is not None
        jvm = int(await process.stdout.receive())
        process.kill()
    for _ in range(600):
        if not process_exists(jvm):
            break
        await anyio.sleep(0.1)
    else:
        pytest.fail("the JVM still runs")
    left = list(tmp_path.glob("codetaste-java-*"))  # noqa: ASYNC240
    assert len(left) == 1
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    async with pool() as workers:
        assert not left[0].exists()
        assert workers._scratch.parent == tmp_path
