"""When a command ends in any way, all its processes end and no others."""

from __future__ import annotations

import time

import anyio
import pytest

from codetaste.errors import SandboxError
from codetaste.sandbox.base import (
    CommandLimits,
    CommandResult,
    EndReason,
    Sandbox,
    SandboxProvider,
    SandboxSpec,
)
from support.sandbox.providers import get_members, running_processes, sh

pytestmark = pytest.mark.anyio

ESCAPES = """
trap '' TERM INT HUP
setsid sh -c 'trap "" TERM; sleep {token}' &
(setsid sh -c 'trap "" TERM; (sleep {token} &) ; exec sleep {token}' &)
(setsid env -i sleep {token} &)
nohup sleep {token} >/dev/null 2>&1 &
"""


async def test_command_at_time_limit_is_ended_with_all_its_processes(sandbox: Sandbox, token: str) -> None:
    result = await sh(sandbox, f"echo started; {ESCAPES.format(token=token)} sleep {token}", wall_s=3.0)
    assert result.timed_out
    assert result.exit_code is None
    assert result.stdout == b"started\n"
    assert await running_processes(sandbox) == []


async def test_command_gets_sigterm_and_time_to_clean_up(sandbox: Sandbox) -> None:
    result = await sh(sandbox, "trap 'echo tidy; exit 5' TERM; while :; do sleep 0.05; done", wall_s=3.0)
    assert result.timed_out
    assert result.stdout == b"tidy\n"


async def test_time_limit_applies_to_fast_writing_command(sandbox: Sandbox) -> None:
    async def slow(_chunk: bytes) -> None:
        time.sleep(0.01)  # noqa: ASYNC251 - so that more output is always waiting
        await anyio.sleep(0.001)

    result = None
    with anyio.move_on_after(60):
        result = await sandbox.run(["yes"], limits=CommandLimits(wall_s=0.5), sink=slow)
    assert result is not None
    assert result.timed_out


async def test_background_processes_of_finished_command_are_ended(sandbox: Sandbox, token: str) -> None:
    # The background processes have its output open, but the command has ended.
    result = await sh(sandbox, f"{ESCAPES.format(token=token)} sleep {token} & echo done")
    assert (result.exit_code, result.stdout) == (0, b"done\n")
    assert await running_processes(sandbox) == []


async def test_cancelled_command_leaves_no_process(sandbox: Sandbox, token: str) -> None:
    for after_s in (0.0, 0.002, 0.02, 0.2):
        # A process that ignores SIGTERM has a grace period: one such case is enough.
        escapes = ESCAPES.format(token=token).replace("trap", "trap" if after_s > 0.1 else ": trap")
        with anyio.move_on_after(after_s) as scope:
            await sh(sandbox, f"{escapes} sleep {token}")
        assert scope.cancelled_caught
        assert await running_processes(sandbox) == []


async def test_cancelled_job_can_read_files_of_its_command(provider: SandboxProvider, token: str) -> None:
    found = {}
    script = f"trap 'echo last >last; exit' TERM; echo first >first; echo ready; sleep {token} & wait"
    with anyio.CancelScope() as scope:

        async def cancel(_chunk: bytes) -> None:
            scope.cancel()

        async with provider.open(SandboxSpec("test")) as sandbox:
            try:
                await sandbox.run(["sh", "-c", script], sink=cancel)
            finally:
                with anyio.CancelScope(shield=True), anyio.fail_after(200):
                    assert await running_processes(sandbox) == []
                    await sandbox.stop()
                    found = await get_members(sandbox, "/testbed")
    assert set(found) == {"testbed", "testbed/first", "testbed/last"}


async def test_other_commands_continue_when_one_is_ended(sandbox: Sandbox, token: str) -> None:
    results: dict[str, CommandResult] = {}

    async def run(name: str, script: str, wall_s: float) -> None:
        results[name] = await sh(sandbox, script, wall_s=wall_s)

    long_script = (
        f"(setsid sleep {token} &) ; nohup sleep {token} & until [ -e go ]; do sleep 0.01; done; echo well"
    )
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run, "long", long_script, 60.0)
        await run("short", f"{ESCAPES.format(token=token)} sleep {token}", 0.3)
        await run("quick", f"sleep {token} &", 60.0)
        remaining = await running_processes(sandbox)
        await sh(sandbox, "touch go")
    assert results["short"].timed_out
    assert results["long"].stdout == b"well\n"
    assert [line for line in remaining if "(sleep)" in line] != [], (
        "processes of the long command live as long as it"
    )
    assert await running_processes(sandbox) == []


async def test_fork_bomb_is_ended(provider: SandboxProvider) -> None:
    async with provider.open(SandboxSpec("test", processes=100)) as sandbox:
        bomb = ["bash", "-c", "f() { f | f & }; f; sleep 60"]
        try:
            result = await sandbox.run(bomb, limits=CommandLimits(wall_s=1.0))
        except SandboxError:
            # Without a cgroup the processes are counted now and then: a bomb that is faster ends the sandbox.
            assert sandbox.kind == "bubblewrap"
            assert sandbox.end
            assert sandbox.end.reason is EndReason.TOO_MANY_PROCESSES
            return
        assert result.timed_out or result.exit_code not in {None, 0}
        assert await running_processes(sandbox) == []
        assert sandbox.end is None


async def test_zombies_are_reaped(sandbox: Sandbox) -> None:
    await sh(sandbox, "for i in 1 2 3 4 5 6 7 8 9; do (setsid true &); done; sleep 0.1")
    assert await running_processes(sandbox) == []


async def test_files_of_command_at_time_limit_remain(sandbox: Sandbox) -> None:
    await sh(sandbox, "echo kept >file; sleep 60", wall_s=3.0)
    assert (await get_members(sandbox, "/testbed/file"))["file"][1] == b"kept\n"
