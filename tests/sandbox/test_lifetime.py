"""A box ends when it is told to, when it uses too much, when its time is over, and with who opened it."""

from __future__ import annotations

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
from support.sandbox.containment import processes_saying
from support.sandbox.providers import archive, descendants, fetched, sh

pytestmark = pytest.mark.anyio
MIB = 1024 * 1024


def open_descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


async def until_ended(box: Sandbox, within_s: float = 30.0) -> SandboxEnd | None:
    with anyio.move_on_after(within_s):
        while box.end is None:  # noqa: ASYNC110 (all that a box says of it)
            await anyio.sleep(0.02)
    return box.end


async def test_stopped_sandbox_runs_nothing_and_has_no_end_reason(box: Sandbox, token: str) -> None:
    async with anyio.create_task_group() as tasks:
        failed = anyio.Event()

        async def run() -> None:
            with pytest.raises(SandboxError):
                await sh(box, f"touch begun; sleep {token}")
            failed.set()

        tasks.start_soon(run)
        while not any(line.startswith("sleep") for line in processes_saying(token)):  # noqa: ASYNC110
            await anyio.sleep(0.02)
        await box.stop()
        await box.stop()
        with anyio.fail_after(200):
            await failed.wait()
    assert processes_saying(token) == []
    with pytest.raises(SandboxError):
        await box.run(["true"])
    assert box.end is None
    assert "testbed/begun" in await fetched(box, "/testbed")


async def test_closed_sandboxes_leave_nothing(boxes: SandboxProvider, token: str) -> None:
    before = descendants()
    descriptors = open_descriptors()
    for _ in range(3):
        async with boxes.open(SandboxSpec("test")) as box:
            await sh(box, f"mkdir -p a/b; chmod 000 a/b a; (setsid sleep {token} &) ; true")
    with pytest.raises(ValueError, match="of the block"):
        async with boxes.open(SandboxSpec("test")):
            raise ValueError("of the block")
    with anyio.move_on_after(0.05):
        async with boxes.open(SandboxSpec("test")) as box:
            await sh(box, f"sleep {token}")
    assert processes_saying(token) == []
    assert descendants() - before == set()
    # Connections to an engine are kept and used again.
    assert open_descriptors() - descriptors <= (0 if boxes.kind == "bubblewrap" else 2)


async def test_sandboxes_are_isolated_from_each_other(boxes: SandboxProvider) -> None:
    async with boxes.open(SandboxSpec("one")) as one, boxes.open(SandboxSpec("two")) as two:
        await sh(one, "touch /tmp/mine ~/mine")
        assert (await sh(two, "ls /tmp ~ /testbed")).stdout.split() == [
            b"/home/agent:",
            b"/testbed:",
            b"/tmp:",
        ]
        assert one.end is two.end is None


async def test_sandbox_past_time_limit_ends(boxes: SandboxProvider, token: str) -> None:
    async with boxes.open(SandboxSpec("test", lifetime_s=2.0)) as box:
        with pytest.raises(SandboxError):
            await sh(box, f"sleep {token}")
        assert await until_ended(box) == SandboxEnd(EndReason.LIFETIME_OVER)
        assert processes_saying(token) == []


async def test_memory_that_is_used_up_is_named(boxes: SandboxProvider) -> None:
    script = """
import time
held = []
for _ in range(60):
    held.append(bytearray(10**7))
    time.sleep(0.02)
time.sleep(60)
"""
    async with boxes.open(SandboxSpec("test", memory_bytes=300 * MIB)) as box:
        try:
            done = await box.run(["python3", "-c", script])
        except SandboxError as error:
            said = str(error)
        else:
            said = done.stderr.decode()
            assert not done.timed_out
        assert "out of memory" in said
        assert await fetched(box, "/testbed")


async def test_a_disk_that_is_full_is_named_and_what_was_written_is_there(boxes: SandboxProvider) -> None:
    async with boxes.open(SandboxSpec("test", disk_bytes=20 * MIB)) as box:
        script = (
            "echo first >first; i=0; while i=$((i+1)); do head -c 1000000 /dev/zero >f$i; sleep 0.01; done"
        )
        with pytest.raises(SandboxError, match="disk full"):
            await sh(box, script)
        assert await until_ended(box) == SandboxEnd(EndReason.DISK_FULL)
        assert (await fetched(box, "/testbed/first"))["first"][1] == b"first\n"


async def test_stopped_sandbox_has_no_end_although_its_disk_fills(boxes: SandboxProvider) -> None:
    async with boxes.open(SandboxSpec("test", disk_bytes=20 * MIB)) as box:
        await box.stop()
        await box.put(archive(("testbed/large", bytes(30 * MIB))))
        await anyio.sleep(1.5)  # longer than between two looks at the disk
        assert box.end is None


async def test_mounts_are_seen_and_cannot_be_changed(boxes: SandboxProvider, tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    (tree / "bin").mkdir(parents=True)
    (tree / "bin" / "hello").write_text("#!/bin/sh\necho hello\n")
    (tree / "bin" / "hello").chmod(0o755)
    spec = SandboxSpec("test", mounts=(Mount(tree, "/opt/agents/a b"),))
    async with boxes.open(spec) as box:
        done = await sh(
            box, "'/opt/agents/a b/bin/hello'; touch '/opt/agents/a b/x' '/opt/agents/a b/bin/hello'"
        )
    assert done.stdout == b"hello\n"
    assert done.exit_code != 0
    assert sorted(path.name for path in tree.rglob("*")) == ["bin", "hello"]


async def test_many_sandboxes_run_concurrently(boxes: SandboxProvider) -> None:
    async def one(number: int) -> None:
        async with boxes.open(SandboxSpec(f"test {number}")) as box:
            await box.put(archive(("testbed/number", str(number).encode())))
            assert (await box.run(["cat", "number"])).stdout == str(number).encode()

    async with anyio.create_task_group() as tasks:
        for number in range(6):
            tasks.start_soon(one, number)


async def test_killing_the_supervisor_ends_the_sandbox(box: Sandbox) -> None:
    with pytest.raises(SandboxError):
        await sh(box, "touch before; kill -9 -1; sleep 60")
    assert await until_ended(box)
    assert "testbed/before" in await fetched(box, "/testbed")


async def test_killing_all_user_processes_leaves_sandbox_running(box: Sandbox) -> None:
    script = """
for one in /proc/[0-9]*; do
  [ "${one#/proc/}" = $$ ] && continue
  { cat $one/comm; tr '\\0' ' ' <$one/cmdline; } | grep -q -e node -e mjs && kill -9 "${one#/proc/}"
done 2>/dev/null
echo here
"""
    assert (await sh(box, script)).stdout == b"here\n"
    assert (await box.run(["echo", "still"])).stdout == b"still\n"


async def test_the_first_process_cannot_be_ended_from_inside(box: Sandbox) -> None:
    done = await sh(box, "for name in TERM INT HUP KILL STOP QUIT USR1; do kill -$name 1; done; echo here")
    assert done.stdout == b"here\n"
    assert (await box.run(["echo", "still"], limits=CommandLimits(wall_s=20))).stdout == b"still\n"


KILLED = """
import sys, anyio
from pathlib import Path
from codetaste.sandbox.base import SandboxSpec
from codetaste.sandbox.local.sandbox import bubblewrap_provider
async def main():
    token = sys.argv[2]
    async with bubblewrap_provider(Path(sys.argv[1])).open(SandboxSpec("test")) as box:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(box.run, ["sh", "-c", f"setsid sleep {token} & exec sleep {token}"])
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
    while (processes_saying(token) or processes_saying(str(tmp_path))) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert processes_saying(token) == []
    assert len(list(tmp_path.iterdir())) == 1
    bubblewrap_provider(tmp_path)
    assert list(tmp_path.iterdir()) == []
