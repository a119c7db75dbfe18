"""Sandboxes on the host: bubblewrap around folders of codetaste.

Memory, processes and disk are measured periodically, and a sandbox that exceeds a limit is ended. Cores are
not limited.
"""

from __future__ import annotations

import os
import sys
import time
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import anyio
from anyio import to_thread

from codetaste.core.concurrency import background_tasks
from codetaste.core.files import make_locked_folder, remove_abandoned, remove_tree
from codetaste.errors import SandboxError, SandboxMissing
from codetaste.sandbox.base import EndReason, Privileges, SandboxEnd
from codetaste.sandbox.containment.command import END_WITHIN_S, start_contained
from codetaste.sandbox.containment.engine import BUBBLEWRAP, ContainmentEngine, choose_engine
from codetaste.sandbox.containment.resources import measure_folder, measure_process_tree
from codetaste.sandbox.local.archive_in import write_archive
from codetaste.sandbox.local.archive_out import read_archive
from codetaste.sandbox.local.folders import (
    FileOwner,
    make_folders,
)
from codetaste.sandbox.local.start import OWN_PROCESSES, is_privileged, plan_sandbox_launch
from codetaste.sandbox.output import BoundedOutput
from codetaste.sandbox.supervisor.client import Heartbeat, connect_supervisor
from codetaste.sandbox.supervisor.sandbox import SupervisedSandbox

if TYPE_CHECKING:
    from collections.abc import AsyncIterable, AsyncIterator, Mapping
    from contextlib import AbstractAsyncContextManager
    from pathlib import Path

    from codetaste.sandbox.base import SandboxSpec
    from codetaste.sandbox.containment.command import ContainedProgram


_PREFIX = "sandbox-"
_EXIT_WITHIN_S = 5.0
"""Until a sandbox without its supervisor has ended by itself, and has an exit code."""
_MEMORY_EVERY_S, _DISK_EVERY_S = 0.25, 1.0

_SHARE = 20
"""Measuring takes at most one part in this many of the time: a million files must not cost a core."""

_ERROR_BYTES = 4096

_ARCHIVES_AT_ONCE = 4
"""Each takes a thread and some megabytes. With threads of the shared pool, many at once
could deadlock with the code that reads and writes the archives."""


@dataclass(slots=True)
class BubblewrapSandbox(SupervisedSandbox):
    """A sandbox of bubblewrap: the host folders that it has mounted, and its processes."""

    folders: Mapping[str, Path]
    program: ContainedProgram
    archive_limiter: anyio.CapacityLimiter

    @property
    def kind(self) -> str:
        """What contains: "bubblewrap"."""
        return BUBBLEWRAP

    async def put(self, archive: AsyncIterable[bytes] | bytes) -> None:
        """Unpack a trusted tar archive; its members lie in the writable folders.

        Raises:
            SandboxError: it could not be unpacked.
        """
        await write_archive(archive, self.folders, FileOwner(is_privileged()), self.archive_limiter)

    def get(self, path: str) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        """Read ``path`` as ``Sandbox.get`` describes.

        Raises:
            SandboxError: ``path`` does not exist, or cannot be read.
        """
        return read_archive(path, self.folders, self.archive_limiter)

    async def written_bytes(self) -> int:
        """Return the size on disk of the writable folders."""
        return await self._measure_folders(sys.maxsize)

    async def collect_errors(self) -> None:
        """Collect the error output of bubblewrap and the supervisor; both have ended when it ends."""
        stream, output = self.program.process.stderr, BoundedOutput(_ERROR_BYTES)
        with suppress(anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError):
            while stream is not None:
                output.add(await stream.receive())
        message = " ".join(output.content().decode(errors="replace").split())
        await self.supervisor.fail(message or "all processes in the sandbox were ended")

    async def watch_processes(self) -> None:
        """End the sandbox once its processes exceed the limit of memory or processes."""
        while True:
            began = time.monotonic()
            pid = self.program.process.pid
            used = await to_thread.run_sync(measure_process_tree, pid, self.spec.memory_bytes)
            if used.memory_bytes > self.spec.memory_bytes:
                return await self.end_early(EndReason.OUT_OF_MEMORY)
            # Where the kernel limits processes, that is reached first: fork fails, and the sandbox lives on.
            if used.threads > self.spec.processes + 2 * OWN_PROCESSES:
                return await self.end_early(EndReason.TOO_MANY_PROCESSES)
            await anyio.sleep(max(_MEMORY_EVERY_S, _SHARE * (time.monotonic() - began)))

    async def watch_disk(self) -> None:
        """End the sandbox once its files exceed the disk limit."""
        while True:
            began = time.monotonic()
            if await self._measure_folders(self.spec.disk_bytes) > self.spec.disk_bytes:
                return await self.end_early(EndReason.DISK_FULL)
            await anyio.sleep(max(_DISK_EVERY_S, _SHARE * (time.monotonic() - began)))

    async def _measure_folders(self, enough_bytes: int) -> int:
        """Return the size of the writable folders, or any size above ``enough_bytes``."""
        total = 0
        for folder in self.folders.values():
            if total <= enough_bytes:
                total += await to_thread.run_sync(measure_folder, folder, enough_bytes - total)
        return total

    async def _kill(self) -> None:
        """Kill all processes in the sandbox from the host, and wait until they are gone.

        Raises:
            SandboxError: they are not, in bounded time.
        """
        await self.program.end()
        if not self.program.ended:
            raise SandboxError(
                f"a sandbox could not be ended within {END_WITHIN_S:g} s: process {self.program.process.pid}"
            )

    async def _diagnose(self) -> SandboxEnd:
        process = self.program.process
        with anyio.move_on_after(_EXIT_WITHIN_S):
            await process.wait()
        code = process.returncode
        with suppress(SandboxError):
            await self._kill()
        if code is None:
            return SandboxEnd(EndReason.SUPERVISOR_LOST, self.supervisor.problem)
        return self._end_of_exit(code)


@dataclass(frozen=True, slots=True)
class BubblewrapSandboxProvider:
    """Opens sandboxes in ``folder``, which belongs to the run."""

    folder: Path
    program: Path
    archive_limiter: anyio.CapacityLimiter = field(
        default_factory=lambda: anyio.CapacityLimiter(_ARCHIVES_AT_ONCE)
    )
    heartbeat: Heartbeat = field(default_factory=Heartbeat)

    @property
    def kind(self) -> str:
        """What contains: "bubblewrap"."""
        return BUBBLEWRAP

    @asynccontextmanager
    async def open(self, spec: SandboxSpec) -> AsyncIterator[BubblewrapSandbox]:
        """Start a sandbox; it and everything written in it are removed at the end of the block.

        Raises:
            SandboxError: it cannot be started; the message has the fix.
            ToolMissing: Node is missing.
        """
        if spec.privileges is not Privileges.NONE:
            raise SandboxMissing(
                f"{spec.job}: bubblewrap cannot give the privileges {spec.privileges}, which need a "
                "container engine: set sandbox.engine to docker or podman"
            )
        async with (
            self._folder() as folder,
            connect_supervisor(
                folder / "control",
                forwards=spec.egress.forwards,
                lifetime_s=spec.lifetime_s,
                heartbeat=self.heartbeat,
            ) as supervisor,
        ):
            with anyio.CancelScope(shield=True):  # a cancelled start would leave an unknown process
                folders = await to_thread.run_sync(make_folders, folder, FileOwner(is_privileged()))
                plan = await to_thread.run_sync(plan_sandbox_launch, self.program, spec, supervisor, folders)
                program = await start_contained(plan, spec.processes + OWN_PROCESSES)
            sandbox = BubblewrapSandbox(spec, supervisor, folders, program, self.archive_limiter)
            try:
                async with background_tasks() as tasks:
                    tasks.start_soon(sandbox.watch_end)
                    tasks.start_soon(sandbox.collect_errors)
                    await supervisor.wait_connected()
                    tasks.start_soon(sandbox.watch_processes)
                    tasks.start_soon(sandbox.watch_disk)
                    yield sandbox
            finally:
                with anyio.CancelScope(shield=True):
                    await sandbox.stop()
                    await program.close()

    @asynccontextmanager
    async def _folder(self) -> AsyncIterator[Path]:
        """Give a new folder with a locked file, which shows that its run lives."""
        try:
            folder, lock = await to_thread.run_sync(make_locked_folder, self.folder, _PREFIX)
        except OSError as fault:
            raise SandboxError(f"cannot create a sandbox in {self.folder}: {fault}") from fault
        try:
            yield folder
        finally:
            with anyio.CancelScope(shield=True):
                await to_thread.run_sync(remove_tree, folder)
            os.close(lock)


def bubblewrap_provider(
    folder: Path, *, engine: ContainmentEngine | None = None
) -> BubblewrapSandboxProvider:
    """Return the provider of sandboxes on the host, in ``folder``, after removing those of killed runs.

    Blocking; without ``engine`` bubblewrap is tried once in a process.

    Raises:
        SandboxError: bubblewrap does not work; the message has the fix.
    """
    chosen = engine or choose_engine(BUBBLEWRAP)
    if chosen.program is None:
        raise SandboxError(
            f"{chosen.kind} cannot contain a coding agent, which needs its own files, processes and "
            "loopback: use bubblewrap or a container engine"
        )
    try:
        folder.mkdir(parents=True, exist_ok=True)
        remove_abandoned(folder, _PREFIX)
    except OSError as fault:
        raise SandboxError(f"cannot create a sandbox in {folder}: {fault}") from fault
    return BubblewrapSandboxProvider(folder.resolve(), chosen.program)
