"""Who made a container: a process, named so that it can be told whether it still lives.

A process id alone would be taken by somebody else one day, and means another process in another process
namespace or after a restart of the machine; so all of that is in the name.
"""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path

_PARTS = 4
_STARTED = 19
"""Field of /proc/PID/stat after the name in brackets: when the process began, in ticks since boot."""


@lru_cache(maxsize=1)
def _here() -> tuple[str, str]:
    """Return the machine's boot and our process namespace."""
    return _read("/proc/sys/kernel/random/boot_id"), _namespace()


def owner() -> str:
    """Return the name of this process."""
    boot, namespace = _here()
    return f"{boot} {namespace} {os.getpid()} {_started(os.getpid())}"


def is_alive(name: str) -> bool | None:
    """Tell whether the process of that name lives; None where that cannot be known from here."""
    parts = name.split(" ")
    if len(parts) != _PARTS or not parts[2].isdigit() or not parts[3].isdigit():
        return None
    if (parts[0], parts[1]) != _here() or "?" in parts:
        return None
    return _started(int(parts[2])) == parts[3]


def _started(pid: int) -> str:
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
        return stat[_STARTED].decode() if stat[0] not in {b"Z", b"X"} else "gone"
    except (OSError, IndexError):
        return "gone"


def _read(path: str) -> str:
    try:
        return Path(path).read_text().strip() or "?"
    except OSError:
        return "?"


def _namespace() -> str:
    try:
        return str(Path("/proc/self/ns/pid").stat().st_ino)
    except OSError:
        return "?"
