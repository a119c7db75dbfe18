"""Watches the resources of a local sandbox, because no kernel limit bounds all its processes together."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import anyio
from anyio import to_thread

from codetaste.sandbox.local_box_start import OWN_PROCESSES
from codetaste.sandbox.usage import measure_folder, measure_process_tree

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from codetaste.sandbox.box import SandboxSpec

OUT_OF_MEMORY, DISK_FULL, TOO_MANY_PROCESSES = "out of memory", "disk full", "too many processes"
_MEMORY_EVERY_S, _DISK_EVERY_S = 0.25, 1.0
_SHARE = 20
"""Measuring takes at most one part in this many of the time: a million files must not cost a core."""


async def wait_over_limits(pid: int, spec: SandboxSpec) -> str:
    """Wait until the descendants of ``pid`` exceed memory or processes; return which."""
    while True:
        began = time.monotonic()
        used = await to_thread.run_sync(measure_process_tree, pid, spec.memory_bytes)
        if used.memory_bytes > spec.memory_bytes:
            return OUT_OF_MEMORY
        # A kernel limit, where there is one, is reached first: a fork then fails, and the sandbox lives on.
        if used.threads > spec.processes + 2 * OWN_PROCESSES:
            return TOO_MANY_PROCESSES
        await anyio.sleep(max(_MEMORY_EVERY_S, _SHARE * (time.monotonic() - began)))


async def wait_disk_full(folders: Sequence[Path], spec: SandboxSpec) -> str:
    """Wait until the files in ``folders`` exceed the disk limit; return the reason."""
    while True:
        began, total = time.monotonic(), 0
        for folder in folders:
            total += await to_thread.run_sync(measure_folder, folder, spec.disk_bytes - total)
            if total > spec.disk_bytes:
                return DISK_FULL
        await anyio.sleep(max(_DISK_EVERY_S, _SHARE * (time.monotonic() - began)))
