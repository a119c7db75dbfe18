"""A process limit for root, to whom RLIMIT_NPROC does not apply.

Where control groups cannot be written (in most containers) there is no such group, and only the periodic
check of running commands limits them.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import time
from functools import lru_cache
from pathlib import Path

_HIERARCHIES = (Path("/sys/fs/cgroup/pids"), Path("/sys/fs/cgroup"))  # version 1, version 2
_COUNTER = itertools.count()
_JOIN = 'echo 0 >"$0/cgroup.procs" && exec "$@"'
_REMOVE_WITHIN_S = 2.0


def make_cgroup(processes: int) -> Path | None:
    """Create a control group of at most ``processes``; None where it is impossible or unnecessary."""
    top = _hierarchy() if os.geteuid() == 0 else None
    if top is None:
        return None
    group = top / f"codetaste-{os.getpid()}-{next(_COUNTER)}"
    try:
        group.mkdir()
        (group / "pids.max").write_text(str(processes))
    except OSError:
        with contextlib.suppress(OSError):
            group.rmdir()
        return None
    return group


def argv_in_cgroup(group: Path | None, argv: tuple[str, ...]) -> tuple[str, ...]:
    """Return ``argv`` changed so that it enters ``group`` before anything else."""
    return argv if group is None else ("/bin/sh", "-c", _JOIN, str(group), *argv)


def remove_cgroup(group: Path | None) -> None:
    """Remove ``group``, waiting a little for processes that are about to end."""
    deadline = time.monotonic() + _REMOVE_WITHIN_S
    while group is not None and group.exists() and time.monotonic() < deadline:
        with contextlib.suppress(OSError):
            group.rmdir()
            return
        time.sleep(0.005)


@lru_cache(maxsize=1)
def _hierarchy() -> Path | None:
    """Return the folder where groups can be created, after removing those of killed runs."""
    for top in _HIERARCHIES:
        if not os.access(top / "cgroup.procs", os.W_OK):
            continue
        for leftover in top.glob("codetaste-*"):
            if _abandoned(leftover):
                with contextlib.suppress(OSError):
                    leftover.rmdir()  # fails while it has processes
        trial = top / f"codetaste-{os.getpid()}-trial"
        with contextlib.suppress(OSError):
            trial.mkdir()
            usable = os.access(trial / "pids.max", os.W_OK)
            trial.rmdir()
            if usable:
                return top
    return None


def _abandoned(group: Path) -> bool:
    """Whether the run that created ``group`` is gone; a living one may be about to use it."""
    owner = group.name.split("-")[1]
    return not (owner.isdigit() and Path("/proc", owner).exists())
