"""What a command writes is its own and all of it, however it writes, and costs nothing once it has ended."""

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
"""A pipe that is made as wide as an ordinary user may, and is still full when its writer has gone."""


def open_descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


async def test_what_is_written_last_comes_however_much_fits_into_the_pipe(box: Sandbox) -> None:
    for _ in range(3):
        done = await box.run(["python3", "-c", WIDE], limits=CommandLimits(output_bytes=4 * MIB))
        assert (done.exit_code, len(done.stdout)) == (0, 3 * MIB)
        assert (await box.run(["echo", "next"])).stdout == b"next\n"


async def test_a_command_that_closes_its_output_runs_on_and_is_waited_for(box: Sandbox) -> None:
    done = await sh(box, "echo said; exec >&- 2>&-; sleep 0.3; exit 3")
    assert (done.exit_code, done.stdout, done.stderr) == (3, b"said\n", b"")


async def test_command_cannot_write_to_output_of_later_commands(
    box: Sandbox,
) -> None:
    """It holds open all that it finds, while others come and go."""
    meddler = """
until [ -e others ]; do sleep 0.01; done
exec 3>/dev/null
for one in /proc/[0-9]*/fd/[12]; do exec 4>>$one; sleep 1000 4>&4 & done 2>/dev/null
for one in /run/codetaste/control/pipe-*; do (while :; do echo mine; sleep 0.01; done >$one) & done
touch meddling
until [ -e enough ]; do sleep 0.01; done
"""
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(sh, box, meddler)
        # Those who run meanwhile share the box with it and its fate.
        await sh(box, "touch others; until [ -e meddling ]; do sleep 0.01; done; sleep 0.2")
        said = [(await box.run(["echo", "theirs"])).stdout for _ in range(5)]
        await box.run(["touch", "enough"])
    assert said == [b"theirs\n"] * 5


async def test_commands_that_come_and_go_leave_no_descriptors_here(box: Sandbox) -> None:
    async def twice() -> int:
        async with anyio.create_task_group() as tasks:
            for number in range(4):
                tasks.start_soon(
                    sh,
                    box,
                    f"echo {number}; sleep 0.1",
                )
        with anyio.move_on_after(0.05):
            await sh(box, "sleep 1000")
        await box.run(["there-is-no-such-program"])
        return open_descriptors()

    counts = [await twice() for _ in range(6)]
    # One descriptor may be open a moment longer; one left by each round, let alone each command, is a leak.
    assert counts[-1] - counts[0] < len(counts) - 1, counts
