"""What a command in a box sees, is given, and gives back, whatever contains the box."""

from __future__ import annotations

import hashlib

import anyio
import pytest

from codetaste.errors import SandboxError
from codetaste.sandbox.base import CommandLimits, Sandbox, SandboxProvider, SandboxSpec
from support.sandbox.providers import sh

pytestmark = pytest.mark.anyio
MIB = 1024 * 1024


async def test_command_runs_as_unprivileged_user_in_repository(box: Sandbox) -> None:
    done = await sh(
        box,
        'id -u; id -g; pwd; echo "$HOME"; grep -E "^(CapPrm|CapEff|NoNewPrivs)" /proc/self/status; '
        "touch /testbed/a /output/a /task_description/a ~/a /tmp/a && echo written; touch /usr/a",
    )
    assert done.stdout.decode().split("\n") == [
        *("1000", "1000", "/testbed", "/home/agent"),
        *("CapPrm:\t0000000000000000", "CapEff:\t0000000000000000", "NoNewPrivs:\t1"),
        *("written", ""),
    ]
    assert done.exit_code != 0
    assert b"/usr/a" in done.stderr


async def test_exit_codes_are_those_of_a_shell(box: Sandbox) -> None:
    for script, code in (("exit 0", 0), ("exit 7", 7), ("kill -9 $$", 137), ("kill -15 $$", 143)):
        assert (await sh(box, script)).exit_code == code
    assert (await box.run(["there-is-no-such-program"])).exit_code == 127
    assert (await box.run(["/etc/passwd"])).exit_code == 126


async def test_what_is_no_command_is_refused(box: Sandbox) -> None:
    for command in ([], ["echo", "a\0b"]):
        with pytest.raises(SandboxError, match="not a command"):
            await box.run(command)
    with pytest.raises(SandboxError, match="no folder /nowhere"):
        await box.run(["true"], workdir="/nowhere")
    with pytest.raises(SandboxError, match="could not be started"):
        await box.run(["true", "x" * 200_000])
    assert (await box.run(["true"])).exit_code == 0


async def test_standard_input_of_any_size_is_read_to_its_end_also_by_name(box: Sandbox) -> None:
    text = bytes(range(256)) * 4096 * 3
    done = await box.run(["sha256sum", "/dev/stdin"], stdin=text)
    assert done.stdout.split()[0].decode() == hashlib.sha256(text).hexdigest()
    assert (await box.run(["true"], stdin=text)).exit_code == 0
    assert (await box.run(["cat"])).stdout == b""


async def test_streams_can_be_opened_by_name(box: Sandbox) -> None:
    done = await sh(box, "echo one >/dev/stdout; echo two >/dev/stderr; echo three | tee /dev/stderr")
    assert done.stdout == b"one\nthree\n"
    assert sorted(done.stderr.split()) == [b"three", b"two"]


async def test_output_of_one_megabyte_is_whole_more_is_truncated(box: Sandbox) -> None:
    done = await box.run(["seq", "160000"], limits=CommandLimits(output_bytes=2 * MIB))
    assert done.stdout == b"".join(b"%d\n" % number for number in range(1, 160001))
    assert not done.truncated
    cut = await box.run(["seq", "160000"], limits=CommandLimits(output_bytes=1000))
    assert cut.truncated
    assert len(cut.stdout) <= 1000
    assert cut.stdout.startswith(b"1\n2\n")
    assert cut.stdout.endswith(b"\n160000\n")


async def test_a_sink_is_given_everything_as_fast_as_it_takes_it(box: Sandbox) -> None:
    got, most = hashlib.sha256(), 0

    async def slow(chunk: bytes) -> None:
        nonlocal most
        most = max(most, len(chunk))
        await anyio.sleep(0.001)
        got.update(chunk)

    limits = CommandLimits(output_bytes=100)
    done = await box.run(["seq", "300000"], limits=limits, sink=slow)
    whole = b"".join(b"%d\n" % number for number in range(1, 300001))
    assert got.hexdigest() == hashlib.sha256(whole).hexdigest()
    assert done.stdout == b""
    assert not done.truncated
    assert most <= 256 * 1024


async def test_command_does_not_wait_for_output_sink_of_another(box: Sandbox) -> None:
    opened = anyio.Event()

    async def stuck(_chunk: bytes) -> None:
        await opened.wait()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(lambda: box.run(["seq", "1000000"], sink=stuck))
        for _ in range(20):
            done = await box.run(["seq", "20000"], limits=CommandLimits(output_bytes=MIB))
            assert done.stdout.endswith(b"\n20000\n")
        opened.set()


async def test_what_a_sink_raises_ends_the_command(box: Sandbox) -> None:
    async def full(_chunk: bytes) -> None:
        raise OSError("no space left")

    with pytest.raises(OSError, match="no space left"):
        await box.run(["sh", "-c", "while echo more; do sleep 0.01; done"], sink=full)
    assert (await box.run(["echo", "still here"])).stdout == b"still here\n"


async def test_a_command_that_floods_is_ended_and_says_so(box: Sandbox) -> None:
    done = await box.run(["cat", "/dev/zero"])
    assert done.exit_code == 137
    assert not done.timed_out
    assert done.stderr.endswith(b" bytes of output]\n")
    assert len(done.stdout) <= 64 * 1024


async def test_command_sees_variables_of_sandbox_and_command(boxes: SandboxProvider) -> None:
    node = {"NODE_OPTIONS": "--require=/nowhere.js"}  # whatever it says, it is not for the box's own Node
    async with boxes.open(SandboxSpec("test", env={"BOTH": "box", "ONE": "box", **node})) as box:
        done = await box.run(
            ["sh", "-c", 'echo "$BOTH $ONE"; pwd; echo $NODE_OPTIONS'],
            env={"BOTH": "command"},
            workdir="/output",
        )
    assert done.stdout == b"command box\n/output\n--require=/nowhere.js\n"


async def test_commands_run_at_the_same_time(box: Sandbox) -> None:
    async with anyio.create_task_group() as tasks:
        for number in range(6):
            # Each waits for the next one's file: one after the other they would never end.
            script = f"touch {number}; until [ -e {(number + 1) % 6} ]; do sleep 0.01; done"
            tasks.start_soon(expect_success, box, script)


async def expect_success(box: Sandbox, script: str) -> None:
    assert (await sh(box, script)).exit_code == 0
