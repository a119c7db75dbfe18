"""The resources of a process tree: measured from /proc, and the control group that limits its processes.

It is measured because no kernel limit bounds the memory of all its processes together.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import threading
import time
from collections import defaultdict
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from codetaste.core.processes import process_exists, process_stat

if TYPE_CHECKING:
    from collections.abc import Callable

_PAGE = os.sysconf("SC_PAGE_SIZE")
_PARENT, _THREADS, _RESIDENT = 1, 17, 21  # fields of /proc/PID/stat, counted after the name in brackets
_KIB, _BLOCK = 1024, 512
_MAX_PATH = 3000  # characters; Linux allows 4095
_HIERARCHIES = (Path("/sys/fs/cgroup/pids"), Path("/sys/fs/cgroup"))  # version 1, version 2
_COUNTER = itertools.count()
_SEARCH = threading.Lock()
"""Sandboxes open at once; two searches at once would take each other's trial group for a fault."""
_JOIN = 'echo 0 >"$0/cgroup.procs" && exec "$@"'
_REMOVE_WITHIN_S = 2.0


@dataclass(frozen=True, slots=True)
class ProcessTreeUsage:
    """A process and all its descendants at one moment."""

    pids: tuple[int, ...]
    threads: int
    memory_bytes: int


def measure_process_tree(pid: int, enough_bytes: int) -> ProcessTreeUsage:
    """Return the usage of ``pid`` and its descendants.

    Shared pages are counted once for each process while the sum stays within ``enough_bytes``, and in
    proportional shares beyond, because exact counting is expensive.
    """
    threads: dict[int, int] = {}
    resident: dict[int, int] = {}
    tree, waiting, children = [pid], [pid], _children()
    while waiting:
        one = waiting.pop()
        with contextlib.suppress(OSError, ValueError, IndexError):
            fields = process_stat(one)
            threads[one], resident[one] = int(fields[_THREADS]), int(fields[_RESIDENT]) * _PAGE
            below = children(one)
            tree += below
            waiting += below
    memory = sum(resident.get(one, 0) for one in tree)
    if memory > enough_bytes:
        memory = sum(_proportional_share(one, resident.get(one, 0)) for one in tree)
    return ProcessTreeUsage(tuple(tree), sum(threads.get(one, 0) for one in tree), memory)


def _children() -> Callable[[int], list[int]]:
    """Return a function that lists the children of a process."""
    if Path("/proc/self/task", str(os.getpid()), "children").exists():
        return _listed_children
    known: dict[int, list[int]] = defaultdict(list)
    for name in os.listdir("/proc"):  # noqa: PTH208 (of thousands only names are wanted)
        if name.isdigit():
            with contextlib.suppress(OSError, ValueError, IndexError):
                known[int(process_stat(int(name))[_PARENT])].append(int(name))
    return lambda pid: known.get(pid, [])


def _listed_children(pid: int) -> list[int]:
    found: list[int] = []
    for thread in os.listdir(f"/proc/{pid}/task"):  # noqa: PTH208
        with contextlib.suppress(OSError):
            found += map(int, Path(f"/proc/{pid}/task/{thread}/children").read_bytes().split())
    return found


def measure_folder(folder: Path, enough_bytes: int) -> int:
    """Return the size of all files below ``folder``, at least a KiB each, up to about ``enough_bytes``.

    Folders nested too deeply for a path count as more than enough.
    """
    total, waiting = 0, [str(folder)]
    while waiting and total <= enough_bytes:
        parent = waiting.pop()
        if len(parent) > _MAX_PATH:
            return enough_bytes + 1
        with contextlib.suppress(OSError), os.scandir(parent) as entries:
            for entry in entries:
                total += max(_KIB, entry.stat(follow_symlinks=False).st_blocks * _BLOCK)
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
                if total > enough_bytes:
                    break
    return total


def _proportional_share(pid: int, default: int) -> int:
    with contextlib.suppress(OSError, ValueError, IndexError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_bytes().splitlines():
            if line.startswith(b"Pss:"):
                return int(line.split()[1]) * _KIB
    return default


def make_cgroup(processes: int) -> Path | None:
    """Create a control group of at most ``processes``; None where it is impossible or unnecessary."""
    if os.geteuid() != 0:
        return None
    with _SEARCH:
        top = _hierarchy()
    if top is None:
        return None
    group = _free_name(top)
    try:
        group.mkdir()
        (group / "pids.max").write_text(str(processes))
    except OSError:
        with contextlib.suppress(OSError):
            group.rmdir()
        return None
    return group


def _free_name(top: Path) -> Path:
    """Return the path of a new group: a killed process with the same id may have left some."""
    names = (top / f"codetaste-{os.getpid()}-{number}" for number in _COUNTER)
    return next(name for name in names if not name.exists())


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
            owner = leftover.name.split("-")[1]
            # A living run may be about to use its group.
            if not (owner.isdigit() and process_exists(int(owner))):
                with contextlib.suppress(OSError):
                    leftover.rmdir()  # fails while it has processes
        trial = top / f"codetaste-{os.getpid()}-trial"
        with contextlib.suppress(OSError):
            trial.mkdir(exist_ok=True)
            usable = os.access(trial / "pids.max", os.W_OK)
            trial.rmdir()
            if usable:
                return top
    return None
