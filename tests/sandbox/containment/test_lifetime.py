"""A guard ends a program, its children and its group when whoever started it is gone, and nothing else."""

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


def left(mark: str) -> list[str]:
    """The processes whose command line has ``mark``."""
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


def end(mark: str) -> None:
    """Kill what is left."""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if path.read_bytes().replace(b"\0", b" ").decode(errors="replace").startswith(mark):
                os.kill(int(path.parent.name), signal.SIGKILL)


def gone(mark: str) -> bool:
    for _ in range(100):
        if not left(mark):
            return True
        time.sleep(0.05)
    return False


def starter(script: str, leads: str, then: str, stay: float) -> subprocess.Popen[bytes]:
    process = subprocess.Popen(
        [sys.executable, "-c", STARTER, script, leads, then, str(stay)],
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"started\n"
    return process


@pytest.mark.parametrize("leads", ["leads", "follows"])
@pytest.mark.parametrize("delay_s", [0.0, 0.005, 0.2])
def test_a_killed_starter_takes_the_program_with_it(leads: str, delay_s: float) -> None:
    mark = f"sleep 98{os.getpid() % 10000}.{int(delay_s * 1000)}{len(leads)}"
    # Redirected, or the starter's end of our pipe would never be seen.
    process = starter(f"exec >/dev/null 2>&1 </dev/null; {mark} & exec {mark}", leads, "stay", 60)
    time.sleep(delay_s)
    process.kill()
    process.wait()
    assert process.stdout is not None
    process.stdout.close()
    if leads == "leads":
        assert gone(mark)
    else:
        # In somebody else's group only the program itself and its children may be ended.
        assert gone(f"exec {mark}")
        end(mark)


def test_a_program_that_left_the_group_is_ended_as_a_child() -> None:
    mark = f"sleep 97{os.getpid() % 10000}.5"
    process = starter(
        f"exec >/dev/null 2>&1 </dev/null; setsid {mark} & setsid {mark} & exec sleep 60", "leads", "stay", 60
    )
    time.sleep(0.3)
    process.kill()
    process.wait()
    assert process.stdout is not None
    process.stdout.close()
    assert gone(mark)


def test_a_released_guard_leaves_the_program_alone() -> None:
    mark = f"sleep 96{os.getpid() % 10000}.5"
    process = starter(f"exec >/dev/null 2>&1 </dev/null; exec {mark}", "leads", "release", 0.5)
    process.wait(10)
    assert process.stdout is not None
    process.stdout.close()
    time.sleep(0.3)
    try:
        assert left(mark)
    finally:
        end(mark)


def test_the_guards_own_group_is_not_mistaken_for_the_programs() -> None:
    """Started without a session of its own, a guard must never end the group that it was born into."""
    script = "exec >/dev/null 2>&1 </dev/null; exec sleep 60"
    witness = subprocess.Popen(
        [
            "/bin/sh",
            "-c",
            f"{sys.executable} -c '{STARTER}' '{script}' follows stay 0.2 >/dev/null; sleep 1; exit 7",
        ],
        start_new_session=True,
    )
    assert witness.wait(20) == 7


def test_releasing_twice_and_closing_are_safe() -> None:
    guard = make_guard()
    guard.release()
    guard.close()
    assert guard.write_fd == -1
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(guard.read_fd)
    assert signal.getsignal(signal.SIGPIPE) is signal.SIG_IGN
