"""The output of a command is complete and separate from others', and leaves no descriptors."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from codetaste.sandbox.base import CommandLimits, Sandbox
from support.sandbox.providers import sh

pytestmark = pytest.mark.anyio
MIB = 1024 * 1024
WIDE = """
import fcntl, os
fcntl.fcntl(1, 1031, 1 << 20)
for _ in range(3):
    os.write(1, b"x" * (1 << 20))
"""
"""Makes its pipe as large as an ordinary user may, and leaves it full when it ends."""


def open_descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


async def test_output_left_in_a_large_pipe_is_read(sandbox: Sandbox) -> None:
    for _ in range(3):
        result = await sandbox.run(["python3", "-c", WIDE], limits=CommandLimits(output_bytes=4 * MIB))
        assert (result.exit_code, len(result.stdout)) == (0, 3 * MIB)
        assert (await sandbox.run(["echo", "next"])).stdout == b"next\n"


async def test_command_that_closes_its_output_is_waited_for(sandbox: Sandbox) -> None:
    result = await sh(sandbox, "echo text; exec >&- 2>&-; sleep 0.3; exit 3")
    assert (result.exit_code, result.stdout, result.stderr) == (3, b"text\n", b"")


async def test_command_cannot_write_to_output_of_later_commands(
    sandbox: Sandbox,
) -> None:
    """A background command opens all pipes that it finds while other commands run."""
    meddler = """
until [ -e others ]; do sleep 0.01; done
exec 3>/dev/null
for one in /proc/[0-9]*/fd/[12]; do exec 4>>$one; sleep 1000 4>&4 & done 2>/dev/null
for one in /run/codetaste/control/pipe-*; do (while :; do echo mine; sleep 0.01; done >$one) & done
touch meddling
until [ -e enough ]; do sleep 0.01; done
"""
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(sh, sandbox, meddler)
        # Commands that run when it opens the pipes may be disturbed; later ones must not be.
        await sh(sandbox, "touch others; until [ -e meddling ]; do sleep 0.01; done; sleep 0.2")
        outputs = [(await sandbox.run(["echo", "theirs"])).stdout for _ in range(5)]
        await sandbox.run(["touch", "enough"])
    assert outputs == [b"theirs\n"] * 5


async def test_commands_leave_no_descriptors_on_the_host(sandbox: Sandbox) -> None:
    async def run_round() -> int:
        async with anyio.create_task_group() as tasks:
            for number in range(4):
                tasks.start_soon(
                    sh,
                    sandbox,
                    f"echo {number}; sleep 0.1",
                )
        with anyio.move_on_after(0.05):
            await sh(sandbox, "sleep 1000")
        await sandbox.run(["there-is-no-such-program"])
        return open_descriptors()

    counts = [await run_round() for _ in range(6)]
    # One descriptor may be open a moment longer; one left by each round, let alone each command, is a leak.
    assert counts[-1] - counts[0] < len(counts) - 1, counts
