"""The end of a sandbox: on request, at a limit, or with the process that opened it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import anyio
import pytest

from codetaste.errors import SandboxError
from codetaste.sandbox.base import (
    CommandLimits,
    EndReason,
    Mount,
    Sandbox,
    SandboxEnd,
    SandboxProvider,
    SandboxSpec,
)
from codetaste.sandbox.local.sandbox import bubblewrap_provider
from support.sandbox.containment import find_command_lines
from support.sandbox.providers import find_descendants, get_members, make_archive, sh

pytestmark = pytest.mark.anyio
MIB = 1024 * 1024


def open_descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


async def wait_for_end(sandbox: Sandbox, within_s: float = 200.0) -> SandboxEnd | None:
    with anyio.move_on_after(within_s):
        while sandbox.end is None:  # noqa: ASYNC110 (there is no event)
            await anyio.sleep(0.02)
    return sandbox.end


async def test_stopped_sandbox_runs_nothing_and_has_no_end_reason(sandbox: Sandbox, token: str) -> None:
    async with anyio.create_task_group() as tasks:
        failed = anyio.Event()

        async def run() -> None:
            with pytest.raises(SandboxError):
                await sh(sandbox, f"touch started; sleep {token}")
            failed.set()

        tasks.start_soon(run)
        while not any(line.startswith("sleep") for line in find_command_lines(token)):  # noqa: ASYNC110
            await anyio.sleep(0.02)
        await sandbox.stop()
        await sandbox.stop()
        with anyio.fail_after(200):
            await failed.wait()
    assert find_command_lines(token) == []
    with pytest.raises(SandboxError):
        await sandbox.run(["true"])
    assert sandbox.end is None
    assert "testbed/started" in await get_members(sandbox, "/testbed")


async def test_closed_sandboxes_leave_nothing(provider: SandboxProvider, token: str) -> None:
    before = find_descendants()
    descriptors = open_descriptors()
    for _ in range(3):
        async with provider.open(SandboxSpec("test")) as sandbox:
            await sh(sandbox, f"mkdir -p a/b; chmod 000 a/b a; (setsid sleep {token} &) ; true")
    with pytest.raises(ValueError, match="of the block"):
        async with provider.open(SandboxSpec("test")):
            raise ValueError("of the block")
    with anyio.move_on_after(0.05):
        async with provider.open(SandboxSpec("test")) as sandbox:
            await sh(sandbox, f"sleep {token}")
    assert find_command_lines(token) == []
    assert find_descendants() - before == set()
    # Connections to an engine are reused.
    assert open_descriptors() - descriptors <= (0 if provider.kind == "bubblewrap" else 2)


async def test_sandboxes_are_isolated_from_each_other(provider: SandboxProvider) -> None:
    async with provider.open(SandboxSpec("one")) as one, provider.open(SandboxSpec("two")) as two:
        await sh(one, "touch /tmp/mine ~/mine")
        assert (await sh(two, "ls /tmp ~ /testbed")).stdout.split() == [
            b"/home/agent:",
            b"/testbed:",
            b"/tmp:",
        ]
        assert one.end is two.end is None


async def test_sandbox_past_time_limit_ends(provider: SandboxProvider, token: str) -> None:
    async with provider.open(SandboxSpec("test", lifetime_s=2.0)) as sandbox:
        with pytest.raises(SandboxError):
            await sh(sandbox, f"sleep {token}")
        assert await wait_for_end(sandbox) == SandboxEnd(EndReason.LIFETIME_OVER)
        assert find_command_lines(token) == []


async def test_out_of_memory_is_reported(provider: SandboxProvider) -> None:
    script = """
import time
data = []
for _ in range(60):
    data.append(bytearray(10**7))
    time.sleep(0.02)
time.sleep(60)
"""
    async with provider.open(SandboxSpec("test", memory_bytes=300 * MIB)) as sandbox:
        try:
            result = await sandbox.run(["python3", "-c", script])
        except SandboxError as error:
            message = str(error)
        else:
            message = result.stderr.decode()
            assert not result.timed_out
        assert "out of memory" in message
        assert await get_members(sandbox, "/testbed")


async def test_full_disk_is_reported_and_written_files_remain(provider: SandboxProvider) -> None:
    async with provider.open(SandboxSpec("test", disk_bytes=20 * MIB)) as sandbox:
        script = (
            "echo first >first; i=0; while i=$((i+1)); do head -c 1000000 /dev/zero >f$i; sleep 0.01; done"
        )
        with pytest.raises(SandboxError, match="disk full"):
            await sh(sandbox, script)
        assert await wait_for_end(sandbox) == SandboxEnd(EndReason.DISK_FULL)
        assert (await get_members(sandbox, "/testbed/first"))["first"][1] == b"first\n"


async def test_stopped_sandbox_has_no_end_although_its_disk_fills(provider: SandboxProvider) -> None:
    async with provider.open(SandboxSpec("test", disk_bytes=20 * MIB)) as sandbox:
        await sandbox.stop()
        await sandbox.put(make_archive(("testbed/large", bytes(30 * MIB))))
        await anyio.sleep(1.5)  # longer than the interval of disk checks
        assert sandbox.end is None


async def test_mounts_are_visible_and_read_only(provider: SandboxProvider, tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    (tree / "bin").mkdir(parents=True)
    (tree / "bin" / "hello").write_text("#!/bin/sh\necho hello\n")
    (tree / "bin" / "hello").chmod(0o755)
    spec = SandboxSpec("test", mounts=(Mount(tree, "/opt/agents/a b"),))
    async with provider.open(spec) as sandbox:
        result = await sh(
            sandbox, "'/opt/agents/a b/bin/hello'; touch '/opt/agents/a b/x' '/opt/agents/a b/bin/hello'"
        )
    assert result.stdout == b"hello\n"
    assert result.exit_code != 0
    assert sorted(path.name for path in tree.rglob("*")) == ["bin", "hello"]


async def test_many_sandboxes_run_concurrently(provider: SandboxProvider) -> None:
    async def one(number: int) -> None:
        async with provider.open(SandboxSpec(f"test {number}")) as sandbox:
            await sandbox.put(make_archive(("testbed/number", str(number).encode())))
            assert (await sandbox.run(["cat", "number"])).stdout == str(number).encode()

    async with anyio.create_task_group() as tasks:
        for number in range(6):
            tasks.start_soon(one, number)


@pytest.mark.parametrize("name", ["KILL", "TERM", "HUP"])
async def test_command_killing_the_supervisor_ends_sandbox_by_agent(sandbox: Sandbox, name: str) -> None:
    with pytest.raises(SandboxError, match="a command in it killed its supervisor"):
        await sh(sandbox, f"touch before; kill -{name} -1; sleep 60")
    end = await wait_for_end(sandbox)
    assert end == SandboxEnd(EndReason.SUPERVISOR_KILLED)
    assert end.reason.caused_by_agent
    assert "testbed/before" in await get_members(sandbox, "/testbed")


def find_in_namespace(pid: int) -> int:
    """Return the process of the host that is ``pid`` in the only sandbox of this process."""
    for one in find_descendants():
        line = next(line for line in Path(f"/proc/{one}/status").read_text().splitlines() if "NSpid" in line)
        if line.split()[2:] == [str(pid)]:
            return one
    raise LookupError(pid)


@pytest.mark.parametrize(
    ("pid", "number", "reason"),
    [
        pytest.param(1, signal.SIGKILL, EndReason.KILLED, id="sandbox-killed"),
        pytest.param(2, signal.SIGSEGV, EndReason.EXITED, id="supervisor-crashed"),
    ],
)
async def test_sandbox_killed_from_host_or_crashed_did_not_end_by_agent(
    bubblewrap: Path, tmp_path: Path, pid: int, number: int, reason: EndReason
) -> None:
    async with bubblewrap_provider(tmp_path).open(SandboxSpec("test")) as sandbox:
        os.kill(find_in_namespace(pid), number)
        end = await wait_for_end(sandbox)
        assert end is not None
        assert (end.reason, end.reason.caused_by_agent) == (reason, False)


async def test_killing_all_user_processes_leaves_sandbox_running(sandbox: Sandbox) -> None:
    script = """
for one in /proc/[0-9]*; do
  [ "${one#/proc/}" = $$ ] && continue
  { cat $one/comm; tr '\\0' ' ' <$one/cmdline; } | grep -q -e node -e mjs && kill -9 "${one#/proc/}"
done 2>/dev/null
echo here
"""
    assert (await sh(sandbox, script)).stdout == b"here\n"
    assert (await sandbox.run(["echo", "still"])).stdout == b"still\n"


async def test_first_process_cannot_be_ended_from_the_sandbox(sandbox: Sandbox) -> None:
    result = await sh(
        sandbox, "for name in TERM INT HUP KILL STOP QUIT USR1; do kill -$name 1; done; echo here"
    )
    assert result.stdout == b"here\n"
    assert (await sandbox.run(["echo", "still"], limits=CommandLimits(wall_s=20))).stdout == b"still\n"


KILLED = """
import sys, anyio
from pathlib import Path
from codetaste.sandbox.base import SandboxSpec
from codetaste.sandbox.local.sandbox import bubblewrap_provider
async def main():
    token = sys.argv[2]
    async with bubblewrap_provider(Path(sys.argv[1])).open(SandboxSpec("test")) as sandbox:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(sandbox.run, ["sh", "-c", f"setsid sleep {token} & exec sleep {token}"])
            await anyio.sleep(float(sys.argv[3]))
            print("now", flush=True)
anyio.run(main)
"""


@pytest.mark.parametrize("after_s", [0.0, 0.3])
def test_killed_run_leaves_no_sandbox_and_folders_are_removed(
    tmp_path: Path, token: str, after_s: float
) -> None:
    command = [sys.executable, "-c", KILLED, str(tmp_path), token, str(after_s)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as run:
        assert run.stdout is not None
        assert run.stdout.readline() == b"now\n"
        run.kill()
    deadline = time.monotonic() + 200
    while (find_command_lines(token) or find_command_lines(str(tmp_path))) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert find_command_lines(token) == []
    assert len(list(tmp_path.iterdir())) == 1
    bubblewrap_provider(tmp_path)
    assert list(tmp_path.iterdir()) == []
