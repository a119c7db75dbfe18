"""Ending a PID namespace: killing its first process ends all others with it."""

from __future__ import annotations

import contextlib
import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING

import anyio

if TYPE_CHECKING:
    from anyio.abc import Process

    from codetaste.sandbox.status import StatusPipe

_REPORT_WITHIN_S = 2.0


async def kill_namespace(process: Process, report: StatusPipe) -> None:
    """Kill the first process in the namespace of ``process``, and wait for ``process``."""
    with contextlib.suppress(ProcessLookupError):
        with anyio.move_on_after(_REPORT_WITHIN_S):
            # Polled, because the pid arrives within a millisecond or two.
            while report.first_pid() is None and process.returncode is None:  # noqa: ASYNC110
                await anyio.sleep(0.002)
        first_pid = report.first_pid()
        if first_pid is not None and _parent(first_pid) == process.pid:
            os.kill(first_pid, signal.SIGKILL)
    await process.wait()


async def wait_gone(pid: int) -> None:
    """Wait until ``pid`` has ended; the first process of a namespace ends after all others."""
    try:
        descriptor = os.pidfd_open(pid)
    except OSError:
        return
    try:
        await anyio.wait_readable(descriptor)
    finally:
        os.close(descriptor)


def _parent(pid: int) -> int | None:
    with contextlib.suppress(OSError, ValueError, IndexError):
        return int(Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[1])
    return None
