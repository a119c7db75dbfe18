"""Commands in a sandbox: environment, input, output and exit codes, with every provider."""

from __future__ import annotations

import hashlib

import anyio
import pytest

from codetaste.errors import SandboxError
from codetaste.sandbox.base import CommandLimits, Sandbox, SandboxProvider, SandboxSpec
from support.sandbox.providers import sh

pytestmark = pytest.mark.anyio
MIB = 1024 * 1024


async def test_command_runs_as_unprivileged_user_in_repository(sandbox: Sandbox) -> None:
    result = await sh(
        sandbox,
        'id -u; id -g; pwd; echo "$HOME"; grep -E "^(CapPrm|CapEff|NoNewPrivs)" /proc/self/status; '
        "touch /testbed/a /output/a /task_description/a ~/a /tmp/a && echo written; touch /usr/a",
    )
    assert result.stdout.decode().split("\n") == [
        *("1000", "1000", "/testbed", "/home/agent"),
        *("CapPrm:\t0000000000000000", "CapEff:\t0000000000000000", "NoNewPrivs:\t1"),
        *("written", ""),
    ]
    assert result.exit_code != 0
    assert b"/usr/a" in result.stderr


async def test_exit_codes_are_those_of_a_shell(sandbox: Sandbox) -> None:
    for script, code in (("exit 0", 0), ("exit 7", 7), ("kill -9 $$", 137), ("kill -15 $$", 143)):
        assert (await sh(sandbox, script)).exit_code == code
    assert (await sandbox.run(["there-is-no-such-program"])).exit_code == 127
    assert (await sandbox.run(["/etc/passwd"])).exit_code == 126


async def test_invalid_command_is_refused(sandbox: Sandbox) -> None:
    for command in ([], ["echo", "a\0b"]):
        with pytest.raises(SandboxError, match="not a command"):
            await sandbox.run(command)
    with pytest.raises(SandboxError, match="no folder /nowhere"):
        await sandbox.run(["true"], workdir="/nowhere")
    with pytest.raises(SandboxError, match="could not be started"):
        await sandbox.run(["true", "x" * 200_000])
    assert (await sandbox.run(["true"])).exit_code == 0


async def test_standard_input_of_any_size_can_be_read_also_by_name(sandbox: Sandbox) -> None:
    text = bytes(range(256)) * 4096 * 3
    result = await sandbox.run(["sha256sum", "/dev/stdin"], stdin=text)
    assert result.stdout.split()[0].decode() == hashlib.sha256(text).hexdigest()
    assert (await sandbox.run(["true"], stdin=text)).exit_code == 0
    assert (await sandbox.run(["cat"])).stdout == b""


async def test_standard_streams_can_be_opened_by_name(sandbox: Sandbox) -> None:
    result = await sh(sandbox, "echo one >/dev/stdout; echo two >/dev/stderr; echo three | tee /dev/stderr")
    assert result.stdout == b"one\nthree\n"
    assert sorted(result.stderr.split()) == [b"three", b"two"]


async def test_output_of_one_megabyte_is_whole_more_is_truncated(sandbox: Sandbox) -> None:
    result = await sandbox.run(["seq", "160000"], limits=CommandLimits(output_bytes=2 * MIB))
    assert result.stdout == b"".join(b"%d\n" % number for number in range(1, 160001))
    assert not result.truncated
    cut = await sandbox.run(["seq", "160000"], limits=CommandLimits(output_bytes=1000))
    assert cut.truncated
    assert len(cut.stdout) <= 1000
    assert cut.stdout.startswith(b"1\n2\n")
    assert cut.stdout.endswith(b"\n160000\n")


async def test_slow_sink_receives_all_output_in_bounded_chunks(sandbox: Sandbox) -> None:
    received, largest = hashlib.sha256(), 0

    async def slow(chunk: bytes) -> None:
        nonlocal largest
        largest = max(largest, len(chunk))
        await anyio.sleep(0.001)
        received.update(chunk)

    limits = CommandLimits(output_bytes=100)
    result = await sandbox.run(["seq", "300000"], limits=limits, sink=slow)
    whole = b"".join(b"%d\n" % number for number in range(1, 300001))
    assert received.hexdigest() == hashlib.sha256(whole).hexdigest()
    assert result.stdout == b""
    assert not result.truncated
    assert largest <= 256 * 1024


async def test_command_does_not_wait_for_output_sink_of_another(sandbox: Sandbox) -> None:
    released = anyio.Event()

    async def stuck(_chunk: bytes) -> None:
        await released.wait()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(lambda: sandbox.run(["seq", "1000000"], sink=stuck))
        for _ in range(20):
            result = await sandbox.run(["seq", "20000"], limits=CommandLimits(output_bytes=MIB))
            assert result.stdout.endswith(b"\n20000\n")
        released.set()


async def test_exception_of_a_sink_ends_the_command(sandbox: Sandbox) -> None:
    async def full(_chunk: bytes) -> None:
        raise OSError("no space left")

    with pytest.raises(OSError, match="no space left"):
        await sandbox.run(["sh", "-c", "while echo more; do sleep 0.01; done"], sink=full)
    assert (await sandbox.run(["echo", "still here"])).stdout == b"still here\n"


async def test_command_with_endless_output_is_ended_with_a_message(sandbox: Sandbox) -> None:
    result = await sandbox.run(["cat", "/dev/zero"])
    assert result.exit_code == 137
    assert not result.timed_out
    assert result.stderr.endswith(b" bytes of output]\n")
    assert len(result.stdout) <= 64 * 1024


async def test_command_sees_variables_of_sandbox_and_command(provider: SandboxProvider) -> None:
    node = {"NODE_OPTIONS": "--require=/nowhere.js"}  # it must not affect the supervisor's Node
    async with provider.open(
        SandboxSpec("test", env={"BOTH": "sandbox", "ONE": "sandbox", **node})
    ) as sandbox:
        result = await sandbox.run(
            ["sh", "-c", 'echo "$BOTH $ONE"; pwd; echo $NODE_OPTIONS'],
            env={"BOTH": "command"},
            workdir="/output",
        )
    assert result.stdout == b"command sandbox\n/output\n--require=/nowhere.js\n"


async def test_commands_run_concurrently(sandbox: Sandbox) -> None:
    async with anyio.create_task_group() as tasks:
        for number in range(6):
            # Each waits for the file of the next: sequentially they would never end.
            script = f"touch {number}; until [ -e {(number + 1) % 6} ]; do sleep 0.01; done"
            tasks.start_soon(expect_success, sandbox, script)


async def expect_success(sandbox: Sandbox, script: str) -> None:
    assert (await sh(sandbox, script)).exit_code == 0
