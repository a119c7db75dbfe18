"""A contained command is limited in time, output, memory and processes, and leaves no process."""

# ruff: noqa: E501 (scripts for another interpreter)
from __future__ import annotations

import json
import os
import signal
import time
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest

from support.sandbox.containment import (
    ClientVariant,
    HostFolders,
    ShellClient,
    client_variants,
    find_command_lines,
    open_shell,
)

MIB = 1024 * 1024


@pytest.fixture
def token() -> str:
    """A number of seconds to sleep that is unique to the test, to find its processes by."""
    return f"9{uuid.uuid4().int % 10**9:09d}"


def wait_for_end(token: str, within_s: float = 60.0) -> bool:
    deadline = time.monotonic() + within_s
    while find_command_lines(token) and time.monotonic() < deadline:
        time.sleep(0.02)
    return not find_command_lines(token)


def test_command_at_time_limit_is_killed_with_all_its_processes(shell: ShellClient, token: str) -> None:
    result = shell.sh(
        f"echo started; trap '' TERM INT HUP; setsid sleep {token} & (setsid sh -c 'trap \"\" TERM; sleep {token}' &) ; "
        f"nohup sleep {token} >/dev/null 2>&1 & sleep {token}",
        wall_s=2.0,
    )
    assert result.timed_out
    assert result.exit_code is None
    assert result.out == "started\n"
    assert result.wall_s > 1.9
    assert find_command_lines(token) == []


def test_background_processes_of_finished_command_are_ended(shell: ShellClient, token: str) -> None:
    result = shell.sh(
        f"setsid sleep {token} & (sleep {token} &); (setsid nohup sleep {token} >/dev/null 2>&1 </dev/null &); echo done; exit 7"
    )
    assert (result.exit_code, result.out) == (7, "done\n"), result.output
    assert find_command_lines(token) == []


def test_daemon_that_keeps_forking_is_ended(shell: ShellClient, token: str) -> None:
    result = shell.py(
        """
        import subprocess, time
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                libc.prctl(1, 0, 0, 0, 0); libc.prctl(36, 1, 0, 0, 0)
                for fd in range(3): os.close(fd)
                while True:
                    if os.fork(): os._exit(0)
                    os.setsid()
                    subprocess.Popen(["sleep", sys.argv[1]])
                    time.sleep(0.01)
            os._exit(0)
        os.wait(); time.sleep(0.3); print("left it")
        """,
        token,
    )
    assert result.out == "left it\n", result.output
    assert wait_for_end(token)


def test_cancelled_command_leaves_no_process(shell: ShellClient, token: str) -> None:
    for after in (0.0, 0.002, 0.01, 0.03, 0.06, 0.3):
        command = ["bash", "-c", f"setsid sleep {token} & (sleep {token} &); sleep {token}"]
        reply = shell.request(command=command, cancel_after=after)
        assert reply["cancelled"]
        assert find_command_lines(token) == []
        assert shell.find_leftovers() == []
    assert reply["open"] == shell.request(command=["true"])["open"]


def test_commands_leave_no_open_descriptors(shell: ShellClient) -> None:
    first = shell.sh("true").open_descriptors
    for _ in range(5):
        shell.sh("true")
    assert shell.sh("true").open_descriptors == first


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_truncated_output_has_the_beginning_and_the_end(stream: str, shell: ShellClient) -> None:
    result = shell.sh(f"(echo first; seq 1 1000000; echo last) >/dev/{stream}", output_bytes=2000)
    text = result.out if stream == "stdout" else result.err
    assert result.exit_code == 0
    assert result.truncated
    assert text.startswith("first\n1\n2\n")
    assert text.endswith("999999\n1000000\nlast\n")
    assert "bytes left out" in text
    assert len(text) <= 2000


def test_output_at_the_limit_is_complete(shell: ShellClient) -> None:
    result = shell.sh("head -c 5000 /dev/zero", output_bytes=5000)
    assert result.raw == bytes(5000)
    assert not result.truncated


def test_command_with_endless_output_is_ended(shell: ShellClient) -> None:
    result = shell.sh("yes | head -c 1000000000; echo end", output_bytes=4096)
    assert result.exit_code == 137
    assert "bytes of output" in result.err
    assert result.truncated
    assert len(result.raw) <= 4096
    assert peak_memory(shell.host_pid) < 400 * MIB


def peak_memory(pid: int) -> int:
    line = next(
        one for one in Path(f"/proc/{pid}/status").read_text().splitlines() if one.startswith("VmHWM")
    )
    return int(line.split()[1]) * 1024


def test_fork_bomb_is_limited_and_ended(shell: ShellClient, token: str) -> None:
    result = shell.sh(
        f"bomb() {{ bomb {token} | bomb {token} & }}; bomb; sleep 3; echo end", wall_s=6, processes=64
    )
    assert result.wall_s < 60, result.output[:300]
    assert wait_for_end(token)
    assert shell.sh("echo alive").out == "alive\n"


def test_number_of_processes_is_limited(shell: ShellClient) -> None:
    result = shell.py(
        """
        import time
        n = 0
        try:
            for _ in range(400):
                if os.fork() == 0: time.sleep(30); os._exit(0)
                n += 1
        except OSError as e: print("refused", e)
        time.sleep(1)
        print("made", n)
        """,
        processes=50,
    )
    assert "made 400" not in result.out, result.output
    assert "refused" in result.out or "processes" in result.err, result.output


def test_memory_of_one_process_is_limited(shell: ShellClient) -> None:
    result = shell.py("b = bytearray(300 * 2**20); print('allocated')", memory_bytes=200 * MIB)
    assert "allocated" not in result.out
    assert result.exit_code != 0
    assert (
        shell.py("b = bytearray(50 * 2**20); print('allocated')", memory_bytes=200 * MIB).out == "allocated\n"
    )


def test_memory_of_all_processes_together_is_limited(shell: ShellClient) -> None:
    result = shell.py(
        """
        import time
        for _ in range(8):
            if os.fork() == 0: break
        b = bytearray(60 * 2**20); time.sleep(5); print("allocated")
        """,
        memory_bytes=200 * MIB,
    )
    assert "allocated" not in result.out
    assert "bytes of memory" in result.err, result.output


def test_shared_memory_is_limited(shell: ShellClient) -> None:
    result = shell.py(
        "import mmap, time; m = mmap.mmap(-1, 600 * 2**20); m.write(b'x' * (600 * 2**20)); time.sleep(3); print('allocated')",
        memory_bytes=200 * MIB,
    )
    assert "allocated" not in result.out, result.output


def test_temporary_files_are_limited(shell: ShellClient) -> None:
    result = shell.sh(
        "for i in 1 2 3 4 5 6; do head -c 40000000 /dev/zero > $TMPDIR/$i; sleep 0.1; done; du -sm $TMPDIR; echo end",
        wall_s=10,
    )
    assert result.exit_code == 137 or "No space left" in result.err, result.output
    result = shell.sh("head -c 100000000 /dev/zero > $TMPDIR/one; stat -c %s $TMPDIR/one")
    assert int(result.out.split()[0] if result.out else 0) <= 64 * MIB


def test_standard_input_is_passed_on_and_empty_by_default(shell: ShellClient) -> None:
    assert shell.run("cat", stdin=b"given \xff").raw == b"given \xff"
    assert shell.run("cat").raw == b""
    big = os.urandom(MIB)
    assert shell.run("wc", "-c", stdin=big).out.split() == [str(MIB)]
    assert shell.run("true", stdin=big).exit_code == 0


def test_exit_codes_are_reported(shell: ShellClient) -> None:
    assert shell.sh("exit 42").exit_code == 42
    ended = shell.sh("kill -TERM $$")
    # Without signal scopes in the kernel no process can be signalled by number, not even itself.
    assert ended.exit_code == 128 + 15 or (
        shell.variant.engine == "landlock-1" and "not permitted" in ended.err
    )
    missing = shell.run("no-such-program-here")
    assert missing.exit_code == 127
    assert "no-such-program-here" in missing.err


def test_invalid_command_is_refused(shell: ShellClient) -> None:
    assert "not a command" in shell.request(command=[])["error"]
    assert "not a command" in shell.request(command=["a\0b"])["error"]


def find_descendants(pid: int) -> list[int]:
    """Return the process ids of the descendants of ``pid``, nearest first."""
    found = []
    queue = [pid]
    while queue:
        current = queue.pop(0)
        for task in Path(f"/proc/{current}/task").glob("*"):
            try:
                children = [int(word) for word in (task / "children").read_text().split()]
            except OSError:
                continue
            found += children
            queue += children
    return found


def containment_processes(pid: int) -> list[int]:
    """Return the descendants of ``pid`` without the guard, which contains nothing."""
    return [
        one
        for one in find_descendants(pid)
        if b"kill -KILL 0" not in Path(f"/proc/{one}/cmdline").read_bytes()
    ]


def start_endless_command(shell: ShellClient, token: str) -> None:
    """Start a command in ``shell`` that never ends, and wait until all its processes run."""
    assert shell.process.stdin is not None
    command = [
        "bash",
        "-c",
        f"setsid sleep {token} & (setsid nohup sleep {token} >/dev/null 2>&1 &); sleep {token}",
    ]
    shell.process.stdin.write(json.dumps({"command": command}) + "\n")
    shell.process.stdin.flush()
    deadline = time.monotonic() + 200
    while sum(line.startswith("sleep") for line in find_command_lines(token)) < 3:
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.parametrize("variant", client_variants(), ids=str)
def test_killing_codetaste_ends_the_command(
    variant: ClientVariant, host_folders: HostFolders, find_python: Callable[[str], str], token: str
) -> None:
    shell = open_shell(variant, host_folders, find_python)
    start_endless_command(shell, token)
    os.kill(shell.host_pid, signal.SIGKILL)
    shell.process.communicate()
    assert wait_for_end(token, within_s=30)


@pytest.mark.parametrize("variant", client_variants(), ids=str)
@pytest.mark.parametrize("victim", [0, 1])
def test_killing_the_containment_process_ends_the_command(
    variant: ClientVariant,
    victim: int,
    host_folders: HostFolders,
    find_python: Callable[[str], str],
    token: str,
) -> None:
    shell = open_shell(variant, host_folders, find_python)
    start_endless_command(shell, token)
    os.kill(containment_processes(shell.host_pid)[victim], signal.SIGKILL)
    assert wait_for_end(token, within_s=30)
    out, _ = shell.process.communicate(timeout=200)
    reply = json.loads(out)
    assert "SandboxError" in reply.get("error", "") or reply["exit_code"] == 137, reply
    for folder in host_folders.temporary.iterdir():
        assert not list(folder.iterdir()), "the scratch folder remains"
