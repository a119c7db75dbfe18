"""A contained command is bounded in time, output, memory and processes, and nothing of it is left."""

# ruff: noqa: E501 (scripts for another interpreter stand as they are run)
from __future__ import annotations

import json
import os
import signal
import time
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest

from support.sandbox.containment import Place, Shell, Stage, open_shell, places, processes_saying

MIB = 1024 * 1024


@pytest.fixture
def token() -> str:
    """A number to sleep for, that no other process sleeps for."""
    return f"9{uuid.uuid4().int % 10**9:09d}"


def gone(token: str, within_s: float = 60.0) -> bool:
    deadline = time.monotonic() + within_s
    while processes_saying(token) and time.monotonic() < deadline:
        time.sleep(0.02)
    return not processes_saying(token)


def test_a_command_that_takes_too_long_is_killed_with_all_it_started(shell: Shell, token: str) -> None:
    done = shell.sh(
        f"echo begun; trap '' TERM INT HUP; setsid sleep {token} & (setsid sh -c 'trap \"\" TERM; sleep {token}' &) ; "
        f"nohup sleep {token} >/dev/null 2>&1 & sleep {token}",
        wall_s=2.0,
    )
    assert done.timed_out
    assert done.exit_code is None
    assert done.out == "begun\n"
    assert done.wall_s > 1.9
    assert processes_saying(token) == []


def test_what_a_finished_command_left_in_the_background_is_ended(shell: Shell, token: str) -> None:
    done = shell.sh(
        f"setsid sleep {token} & (sleep {token} &); (setsid nohup sleep {token} >/dev/null 2>&1 </dev/null &); echo done; exit 7"
    )
    assert (done.exit_code, done.out) == (7, "done\n"), done.said
    assert processes_saying(token) == []


def test_a_daemon_that_forks_away_and_moves_on_is_ended(shell: Shell, token: str) -> None:
    done = shell.py(
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
    assert done.out == "left it\n", done.said
    assert gone(token)


def test_a_cancelled_command_leaves_no_process(shell: Shell, token: str) -> None:
    for after in (0.0, 0.002, 0.01, 0.03, 0.06, 0.3):
        command = ["bash", "-c", f"setsid sleep {token} & (sleep {token} &); sleep {token}"]
        reply = shell.ask(command=command, cancel_after=after)
        assert reply["cancelled"]
        assert processes_saying(token) == []
        assert shell.left_behind() == []
    assert reply["open"] == shell.ask(command=["true"])["open"]


def test_descriptors_are_given_back(shell: Shell) -> None:
    first = shell.sh("true").open_descriptors
    for _ in range(5):
        shell.sh("true")
    assert shell.sh("true").open_descriptors == first


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_long_output_keeps_its_beginning_and_its_end(stream: str, shell: Shell) -> None:
    done = shell.sh(f"(echo first; seq 1 1000000; echo last) >/dev/{stream}", output_bytes=2000)
    text = done.out if stream == "stdout" else done.err
    assert done.exit_code == 0
    assert done.truncated
    assert text.startswith("first\n1\n2\n")
    assert text.endswith("999999\n1000000\nlast\n")
    assert "bytes left out" in text
    assert len(text) <= 2000


def test_output_that_fits_is_whole(shell: Shell) -> None:
    done = shell.sh("head -c 5000 /dev/zero", output_bytes=5000)
    assert done.raw == bytes(5000)
    assert not done.truncated


def test_a_flood_of_output_is_cut_off(shell: Shell) -> None:
    done = shell.sh("yes | head -c 1000000000; echo end", output_bytes=4096)
    assert done.exit_code == 137
    assert "bytes of output" in done.err
    assert done.truncated
    assert len(done.raw) <= 4096
    assert peak_memory(shell.host_pid) < 400 * MIB


def peak_memory(pid: int) -> int:
    line = next(
        one for one in Path(f"/proc/{pid}/status").read_text().splitlines() if one.startswith("VmHWM")
    )
    return int(line.split()[1]) * 1024


def test_a_fork_bomb_is_bounded_and_ended(shell: Shell, token: str) -> None:
    done = shell.sh(
        f"bomb() {{ bomb {token} | bomb {token} & }}; bomb; sleep 3; echo end", wall_s=6, processes=64
    )
    assert done.wall_s < 60, done.said[:300]
    assert gone(token)
    assert shell.sh("echo alive").out == "alive\n"


def test_threads_and_processes_are_limited_in_number(shell: Shell) -> None:
    done = shell.py(
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
    assert "made 400" not in done.out, done.said
    assert "refused" in done.out or "processes" in done.err, done.said


def test_memory_is_limited_in_one_process(shell: Shell) -> None:
    done = shell.py("b = bytearray(300 * 2**20); print('had it')", memory_bytes=200 * MIB)
    assert "had it" not in done.out
    assert done.exit_code != 0
    assert shell.py("b = bytearray(50 * 2**20); print('had it')", memory_bytes=200 * MIB).out == "had it\n"


def test_memory_is_limited_over_all_processes_together(shell: Shell) -> None:
    done = shell.py(
        """
        import time
        for _ in range(8):
            if os.fork() == 0: break
        b = bytearray(60 * 2**20); time.sleep(5); print("had it")
        """,
        memory_bytes=200 * MIB,
    )
    assert "had it" not in done.out
    assert "bytes of memory" in done.err, done.said


def test_shared_memory_counts_as_well(shell: Shell) -> None:
    done = shell.py(
        "import mmap, time; m = mmap.mmap(-1, 600 * 2**20); m.write(b'x' * (600 * 2**20)); time.sleep(3); print('had it')",
        memory_bytes=200 * MIB,
    )
    assert "had it" not in done.out, done.said


def test_temporary_files_are_limited(shell: Shell) -> None:
    done = shell.sh(
        "for i in 1 2 3 4 5 6; do head -c 40000000 /dev/zero > $TMPDIR/$i; sleep 0.1; done; du -sm $TMPDIR; echo end",
        wall_s=10,
    )
    assert done.exit_code == 137 or "No space left" in done.err, done.said
    done = shell.sh("head -c 100000000 /dev/zero > $TMPDIR/one; stat -c %s $TMPDIR/one")
    assert int(done.out.split()[0] if done.out else 0) <= 64 * MIB


def test_standard_input_is_what_was_given_and_otherwise_empty(shell: Shell) -> None:
    assert shell.run("cat", stdin=b"given \xff").raw == b"given \xff"
    assert shell.run("cat").raw == b""
    big = os.urandom(MIB)
    assert shell.run("wc", "-c", stdin=big).out.split() == [str(MIB)]
    assert shell.run("true", stdin=big).exit_code == 0


def test_exit_codes_come_through(shell: Shell) -> None:
    assert shell.sh("exit 42").exit_code == 42
    ended = shell.sh("kill -TERM $$")
    # Without signal scopes in the kernel nobody can be signalled by number, not even oneself.
    assert ended.exit_code == 128 + 15 or (
        shell.place.engine == "landlock-1" and "not permitted" in ended.err
    )
    missing = shell.run("no-such-program-here")
    assert missing.exit_code == 127
    assert "no-such-program-here" in missing.err


def test_a_command_that_makes_no_sense_is_refused(shell: Shell) -> None:
    assert "not a command" in shell.ask(command=[])["error"]
    assert "not a command" in shell.ask(command=["a\0b"])["error"]


def descendants(pid: int) -> list[int]:
    """Return the process ids of all that ``pid`` has started, nearest first."""
    found = []
    waiting = [pid]
    while waiting:
        one = waiting.pop(0)
        for task in Path(f"/proc/{one}/task").glob("*"):
            try:
                below = [int(word) for word in (task / "children").read_text().split()]
            except OSError:
                continue
            found += below
            waiting += below
    return found


def containing(pid: int) -> list[int]:
    """The descendants of ``pid`` without the guard, which contains nothing."""
    return [
        one for one in descendants(pid) if b"kill -KILL 0" not in Path(f"/proc/{one}/cmdline").read_bytes()
    ]


def begin(shell: Shell, token: str) -> None:
    """Have a command run in ``shell`` that never ends, and wait until all its parts are there."""
    assert shell.process.stdin is not None
    command = [
        "bash",
        "-c",
        f"setsid sleep {token} & (setsid nohup sleep {token} >/dev/null 2>&1 &); sleep {token}",
    ]
    shell.process.stdin.write(json.dumps({"command": command}) + "\n")
    shell.process.stdin.flush()
    deadline = time.monotonic() + 200
    while sum(line.startswith("sleep") for line in processes_saying(token)) < 3:
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.parametrize("place", places(), ids=str)
def test_killing_codetaste_itself_ends_the_command(
    place: Place, stage: Stage, interpreter: Callable[[str], str], token: str
) -> None:
    shell = open_shell(place, stage, interpreter)
    begin(shell, token)
    os.kill(shell.host_pid, signal.SIGKILL)
    shell.process.communicate()
    assert gone(token, within_s=5)


@pytest.mark.parametrize("place", places(), ids=str)
@pytest.mark.parametrize("victim", [0, 1])
def test_killing_the_program_that_contains_a_command_ends_the_command(
    place: Place, victim: int, stage: Stage, interpreter: Callable[[str], str], token: str
) -> None:
    shell = open_shell(place, stage, interpreter)
    begin(shell, token)
    os.kill(containing(shell.host_pid)[victim], signal.SIGKILL)
    assert gone(token, within_s=5)
    out, _ = shell.process.communicate(timeout=20)
    answer = json.loads(out)
    assert "SandboxError" in answer.get("error", "") or answer["exit_code"] == 137, answer
    for folder in stage.temporary.iterdir():
        assert not list(folder.iterdir()), "the scratch folder has stayed"
