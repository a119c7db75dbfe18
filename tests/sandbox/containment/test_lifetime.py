"""A guard ends a program, its children and its process group when its starter dies, and nothing else."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from codetaste.sandbox.containment.lifetime import make_guard

STARTER = """
import os, subprocess, sys, time
from codetaste.sandbox.containment.lifetime import make_guard
guard = make_guard()
subprocess.Popen(
    guard.wrap(("/bin/sh", "-c", sys.argv[1])),
    pass_fds=(guard.read_fd,),
    start_new_session=sys.argv[2] == "leads",
)
print("started", flush=True)
if sys.argv[3] == "release":
    time.sleep(0.3)
    guard.release()
time.sleep(float(sys.argv[4]))
"""


def find_processes(mark: str) -> list[str]:
    """Return the command lines with ``mark`` of live processes."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
            state = path.with_name("stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            continue
        if mark in line and state != "Z" and "STARTER" not in line and "-c \nimport" not in line:
            found.append(line)
    return found


def kill_processes(mark: str) -> None:
    """Kill the processes whose command line starts with ``mark``."""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if path.read_bytes().replace(b"\0", b" ").decode(errors="replace").startswith(mark):
                os.kill(int(path.parent.name), signal.SIGKILL)


def wait_for_end(mark: str) -> bool:
    for _ in range(1200):
        if not find_processes(mark):
            return True
        time.sleep(0.05)
    return False


def start(script: str, group: str, action: str, stay_s: float) -> subprocess.Popen[bytes]:
    process = subprocess.Popen(
        [sys.executable, "-c", STARTER, script, group, action, str(stay_s)],
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"started\n"
    return process


@pytest.mark.parametrize("group", ["leads", "follows"])
@pytest.mark.parametrize("delay_s", [0.0, 0.005, 0.2])
def test_program_ends_when_its_starter_is_killed(group: str, delay_s: float) -> None:
    mark = f"sleep 98{os.getpid() % 10000}.{int(delay_s * 1000)}{len(group)}"
    # Redirected, or the program would hold the pipe of the starter open.
    process = start(f"exec >/dev/null 2>&1 </dev/null; {mark} & exec {mark}", group, "stay", 60)
    time.sleep(delay_s)
    process.kill()
    process.wait()
    assert process.stdout is not None
    process.stdout.close()
    if group == "leads":
        assert wait_for_end(mark)
    else:
        # In another process's group only the program and its children may be ended.
        assert wait_for_end(f"exec {mark}")
        kill_processes(mark)


def test_child_that_left_the_group_is_ended() -> None:
    mark = f"sleep 97{os.getpid() % 10000}.5"
    process = start(
        f"exec >/dev/null 2>&1 </dev/null; setsid {mark} & setsid {mark} & exec sleep 60", "leads", "stay", 60
    )
    time.sleep(0.3)
    process.kill()
    process.wait()
    assert process.stdout is not None
    process.stdout.close()
    assert wait_for_end(mark)


def test_released_guard_does_not_end_the_program() -> None:
    mark = f"sleep 96{os.getpid() % 10000}.5"
    process = start(f"exec >/dev/null 2>&1 </dev/null; exec {mark}", "leads", "release", 0.5)
    process.wait(200)
    assert process.stdout is not None
    process.stdout.close()
    time.sleep(0.3)
    try:
        assert find_processes(mark)
    finally:
        kill_processes(mark)


def test_guard_does_not_end_the_group_it_was_started_in() -> None:
    """A program without a session of its own is in the group of its starter."""
    script = "exec >/dev/null 2>&1 </dev/null; exec sleep 60"
    witness = subprocess.Popen(
        [
            "/bin/sh",
            "-c",
            f"{sys.executable} -c '{STARTER}' '{script}' follows stay 0.2 >/dev/null; sleep 1; exit 7",
        ],
        start_new_session=True,
    )
    assert witness.wait(200) == 7


def test_guard_can_be_released_twice_and_closed() -> None:
    guard = make_guard()
    guard.release()
    guard.close()
    assert guard.write_fd == -1
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(guard.read_fd)
    assert signal.getsignal(signal.SIGPIPE) is signal.SIG_IGN
