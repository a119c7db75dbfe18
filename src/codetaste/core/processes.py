"""Processes: whether one lives, also after its id was reused, and the end of a whole process group."""

from __future__ import annotations

import contextlib
import os
import signal
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import anyio

if TYPE_CHECKING:
    from anyio.abc import Process

_PARTS = 4
_START_FIELD = 19
"""Field of /proc/PID/stat after the name in brackets: start of the process, in ticks since boot."""


async def kill_process_group(process: Process, timeout_s: float) -> None:
    """Kill ``process``, started as the leader of a session, with its group, and wait for it.

    Shielded from cancellation, and bounded by ``timeout_s`` seconds.
    """
    with anyio.move_on_after(timeout_s, shield=True):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.aclose()


def process_exists(pid: int) -> bool:
    """Return whether a process has that id in this PID namespace."""
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return True


def process_identity() -> str:
    """Return the identity of this process, for ``identity_alive``.

    Unlike an id, which is reused one day, it means no process of another PID namespace or of another boot.
    """
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


@lru_cache(maxsize=1)
def _boot_and_namespace() -> tuple[str, str]:
    """Return the ids of this boot and of this PID namespace, "?" for what cannot be read."""
    boot = namespace = "?"
    with contextlib.suppress(OSError):
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip() or "?"
    with contextlib.suppress(OSError):
        namespace = str(Path("/proc/self/ns/pid").stat().st_ino)
    return boot, namespace


def process_stat(pid: int) -> list[bytes]:
    """Return the fields of /proc/PID/stat that follow the name in brackets.

    Raises:
        OSError: there is no such process.
    """
    return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()


def _start_ticks(pid: int) -> str:
    try:
        stat = process_stat(pid)
        return stat[_START_FIELD].decode() if stat[0] not in {b"Z", b"X"} else "gone"
    except (OSError, IndexError):
        return "gone"
