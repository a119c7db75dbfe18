"""What a tree of processes uses now, read from /proc: no kernel limit bounds all of it together."""

from __future__ import annotations

import contextlib
import os
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

_PAGE = os.sysconf("SC_PAGE_SIZE")
_PARENT, _THREADS, _RESIDENT = 1, 17, 21  # fields of /proc/PID/stat, counted after the name in brackets
_KIB, _BLOCK = 1024, 512
_DEEP = 3000  # characters; Linux takes 4095


@dataclass(frozen=True, slots=True)
class Usage:
    """A process and all its descendants at one moment."""

    pids: tuple[int, ...]
    threads: int
    memory_bytes: int


def tree_usage(pid: int, enough_bytes: int) -> Usage:
    """Return what ``pid`` and its descendants use.

    Pages that several of them share are counted once for each of them as long as the sum stays within
    ``enough_bytes``, and in fair shares beyond: exact counting is dear.
    """
    children: dict[int, list[int]] = defaultdict(list)
    threads: dict[int, int] = {}
    resident: dict[int, int] = {}
    for name in os.listdir("/proc"):  # noqa: PTH208 (of thousands only names are wanted)
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
    """Return the size of all below ``folder``, an entry being at least a KiB, as far as ``enough_bytes``.

    Folders nested so deeply that a path could no longer name them count as more than enough.
    """
    total, waiting = 0, [str(folder)]
    while waiting and total <= enough_bytes:
        parent = waiting.pop()
        if len(parent) > _DEEP:
            return enough_bytes + 1
        with contextlib.suppress(OSError), os.scandir(parent) as entries:
            for entry in entries:
                total += max(_KIB, entry.stat(follow_symlinks=False).st_blocks * _BLOCK)
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
                if total > enough_bytes:
                    break
    return total


def _fair_share(pid: int, otherwise: int) -> int:
    with contextlib.suppress(OSError, ValueError, IndexError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_bytes().splitlines():
            if line.startswith(b"Pss:"):
                return int(line.split()[1]) * _KIB
    return otherwise
