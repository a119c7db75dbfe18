"""However a command ends, nothing that it started is left, and nothing else is touched."""

from __future__ import annotations

import time

import anyio
import pytest

from codetaste.sandbox.base import CommandLimits, CommandResult, Sandbox, SandboxProvider, SandboxSpec
from support.sandbox.providers import fetched, inside, sh

pytestmark = pytest.mark.anyio

ESCAPES = """
trap '' TERM INT HUP
setsid sh -c 'trap "" TERM; sleep {token}' &
(setsid sh -c 'trap "" TERM; (sleep {token} &) ; exec sleep {token}' &)
(setsid env -i sleep {token} &)
nohup sleep {token} >/dev/null 2>&1 &
"""


async def test_a_command_that_takes_too_long_is_ended_with_all_that_it_started(
    box: Sandbox, token: str
) -> None:
    done = await sh(box, f"echo begun; {ESCAPES.format(token=token)} sleep {token}", wall_s=0.5)
    assert done.timed_out
    assert done.exit_code is None
    assert done.stdout == b"begun\n"
    assert await inside(box) == []


async def test_command_gets_sigterm_and_time_to_clean_up(box: Sandbox) -> None:
    done = await sh(box, "trap 'echo tidy; exit 5' TERM; while :; do sleep 0.05; done", wall_s=0.5)
    assert done.timed_out
    assert done.stdout == b"tidy\n"


async def test_time_limit_holds_for_fast_writing_command(box: Sandbox) -> None:
    async def slow(_chunk: bytes) -> None:
        time.sleep(0.01)  # noqa: ASYNC251 - so that more is there whenever it is looked for
        await anyio.sleep(0.001)

    done = None
    with anyio.move_on_after(60):
        done = await box.run(["yes"], limits=CommandLimits(wall_s=0.5), sink=slow)
    assert done is not None
    assert done.timed_out


async def test_what_a_finished_command_left_in_the_background_is_ended(box: Sandbox, token: str) -> None:
    # Those in the background hold its output open; it has ended all the same.
    done = await sh(box, f"{ESCAPES.format(token=token)} sleep {token} & echo done")
    assert (done.exit_code, done.stdout) == (0, b"done\n")
    assert await inside(box) == []


async def test_a_cancelled_command_leaves_nothing(box: Sandbox, token: str) -> None:
    for after_s in (0.0, 0.002, 0.02, 0.2):
        # Who does not listen to TERM is waited for a while: once is enough.
        escapes = ESCAPES.format(token=token).replace("trap", "trap" if after_s > 0.1 else ": trap")
        with anyio.move_on_after(after_s) as scope:
            await sh(box, f"{escapes} sleep {token}")
        assert scope.cancelled_caught
        assert await inside(box) == []


async def test_a_job_that_is_cancelled_can_still_read_what_its_command_left(
    boxes: SandboxProvider, token: str
) -> None:
    found = {}
    with anyio.move_on_after(1.0):
        async with boxes.open(SandboxSpec("test")) as box:
            try:
                await sh(box, f"trap 'echo last >last; exit' TERM; echo first >first; sleep {token} & wait")
            finally:
                with anyio.CancelScope(shield=True), anyio.fail_after(200):
                    assert await inside(box) == []
                    await box.stop()
                    found = await fetched(box, "/testbed")
    assert set(found) == {"testbed", "testbed/first", "testbed/last"}


async def test_other_commands_live_on_when_one_is_ended(box: Sandbox, token: str) -> None:
    ended: dict[str, CommandResult] = {}

    async def run(name: str, script: str, wall_s: float) -> None:
        ended[name] = await sh(box, script, wall_s=wall_s)

    long = f"(setsid sleep {token} &) ; nohup sleep {token} & until [ -e go ]; do sleep 0.01; done; echo well"
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run, "long", long, 60.0)
        await run("short", f"{ESCAPES.format(token=token)} sleep {token}", 0.3)
        await run("quick", f"sleep {token} &", 60.0)
        left = await inside(box)
        await sh(box, "touch go")
    assert ended["short"].timed_out
    assert ended["long"].stdout == b"well\n"
    assert [line for line in left if "(sleep)" in line] != [], "what the long one started lives as long as it"
    assert await inside(box) == []


async def test_a_fork_bomb_is_ended(boxes: SandboxProvider) -> None:
    async with boxes.open(SandboxSpec("test", processes=100)) as box:
        done = await box.run(["bash", "-c", "f() { f | f & }; f; sleep 60"], limits=CommandLimits(wall_s=1.0))
        assert done.timed_out or done.exit_code not in {None, 0}
        assert await inside(box) == []
        assert box.end is None


async def test_no_zombie_stays(box: Sandbox) -> None:
    await sh(box, "for i in 1 2 3 4 5 6 7 8 9; do (setsid true &); done; sleep 0.1")
    assert await inside(box) == []


async def test_what_it_wrote_stays(box: Sandbox) -> None:
    await sh(box, "echo kept >file; sleep 60", wall_s=0.3)
    assert (await fetched(box, "/testbed/file"))["file"][1] == b"kept\n"
