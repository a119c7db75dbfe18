"""The identity of a process, for container labels: tells whether that process still lives.

A process id alone would be reused one day, and means another process in another PID namespace or after a
reboot; so the identity contains all of that.
"""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path

_PARTS = 4
_START_FIELD = 19
"""Field of /proc/PID/stat after the name in brackets: start of the process, in ticks since boot."""


@lru_cache(maxsize=1)
def _boot_and_namespace() -> tuple[str, str]:
    return _read_text("/proc/sys/kernel/random/boot_id"), _namespace()


def process_identity() -> str:
    """Return the identity of this process."""
    boot, namespace = _boot_and_namespace()
    return f"{boot} {namespace} {os.getpid()} {_start_ticks(os.getpid())}"


def identity_alive(name: str) -> bool | None:
    """Return whether the process of that identity lives; None if this process cannot know."""
    parts = name.split(" ")
    if len(parts) != _PARTS or not parts[2].isdigit() or not parts[3].isdigit():
        return None
    if (parts[0], parts[1]) != _boot_and_namespace() or "?" in parts:
        return None
    return _start_ticks(int(parts[2])) == parts[3]


def _start_ticks(pid: int) -> str:
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
        return stat[_START_FIELD].decode() if stat[0] not in {b"Z", b"X"} else "gone"
    except (OSError, IndexError):
        return "gone"


def _read_text(path: str) -> str:
    try:
        return Path(path).read_text().strip() or "?"
    except OSError:
        return "?"


def _namespace() -> str:
    try:
        return str(Path("/proc/self/ns/pid").stat().st_ino)
    except OSError:
        return "?"
