"""What a tree of processes uses now, read from /proc: for limits that no kernel limit of one process can hold."""

from __future__ import annotations

import contextlib
import os
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

_PAGE = os.sysconf("SC_PAGE_SIZE")
_PARENT, _THREADS, _RESIDENT = 1, 17, 21  # fields of /proc/PID/stat, counted after the name in brackets
_KIB = 1024


@dataclass(frozen=True, slots=True)
class Usage:
    """A process and all its descendants at one moment."""

    pids: tuple[int, ...]
    threads: int
    memory_bytes: int


def tree_usage(pid: int, enough_bytes: int) -> Usage:
    """Return what ``pid`` and its descendants use.

    Pages that several of them share are counted once for each of them as long as the sum stays within ``enough_bytes``, and in
    fair shares beyond: exact counting is dear.
    """
    children: dict[int, list[int]] = defaultdict(list)
    threads: dict[int, int] = {}
    resident: dict[int, int] = {}
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        with contextlib.suppress(OSError, ValueError, IndexError):
            fields = Path(f"/proc/{name}/stat").read_bytes().rpartition(b")")[2].split()
            one = int(name)
            children[int(fields[_PARENT])].append(one)
            threads[one], resident[one] = int(fields[_THREADS]), int(fields[_RESIDENT]) * _PAGE
    tree, waiting = [pid], [pid]
    while waiting:
        below = children.get(waiting.pop(), [])
        tree += below
        waiting += below
    memory = sum(resident.get(one, 0) for one in tree)
    if memory > enough_bytes:
        memory = sum(_fair_share(one, resident.get(one, 0)) for one in tree)
    return Usage(tuple(tree), sum(threads.get(one, 0) for one in tree), memory)


def folder_bytes(folder: Path, enough_bytes: int) -> int:
    """Return the size of all files below ``folder``, an entry counting at least a KiB; stops counting beyond ``enough_bytes``."""
    total = 0
    for parent, folders, files in os.walk(folder, onerror=None):
        for name in (*folders, *files):
            with contextlib.suppress(OSError):
                total += max(_KIB, os.lstat(f"{parent}/{name}").st_blocks * 512)
            if total > enough_bytes:
                return total
    return total


def _fair_share(pid: int, otherwise: int) -> int:
    with contextlib.suppress(OSError, ValueError, IndexError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_bytes().splitlines():
            if line.startswith(b"Pss:"):
                return int(line.split()[1]) * _KIB
    return otherwise
