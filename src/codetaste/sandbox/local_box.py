"""Sandboxes on the host: bubblewrap around folders of codetaste.

Memory, processes and disk are measured periodically, and a sandbox that exceeds a limit is ended. Cores are
not limited.
"""

from __future__ import annotations

import contextlib
import os
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from subprocess import DEVNULL, PIPE
from typing import TYPE_CHECKING

import anyio
from anyio import to_thread

from codetaste.errors import SandboxError
from codetaste.sandbox import cgroup
from codetaste.sandbox.beside import beside
from codetaste.sandbox.box import TESTBED
from codetaste.sandbox.ending import end_namespace, gone
from codetaste.sandbox.engine import BUBBLEWRAP, Engine, choose_engine
from codetaste.sandbox.local_box_get import packed
from codetaste.sandbox.local_box_places import Owner, make_places, new_folder, remove, remove_abandoned
from codetaste.sandbox.local_box_put import unpack
from codetaste.sandbox.local_box_start import OWN_PROCESSES, BoxStart, privileged, start
from codetaste.sandbox.local_box_watch import until_full, until_used_up
from codetaste.sandbox.output import Kept
from codetaste.sandbox.status import Report
from codetaste.sandbox.warden import Control, Liveness, control

if TYPE_CHECKING:
    from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Mapping, Sequence
    from contextlib import AbstractAsyncContextManager
    from pathlib import Path

    from anyio.abc import Process

    from codetaste.sandbox.box import BoxSpec
    from codetaste.sandbox.sandbox import Completed, Limits

_END_WITHIN_S = 10.0
_ERROR_BYTES = 4096
_ARCHIVES_AT_ONCE = 4
"""Each takes a thread and some megabytes. With threads of the shared pool, many at once
could deadlock with the code that reads and writes the archives."""


@dataclass(slots=True)
class LocalBox:
    """One open sandbox: a contained supervisor, and the host folders that it has mounted."""

    spec: BoxSpec
    control: Control
    places: Mapping[str, Path]
    process: Process
    start: BoxStart
    report: Report
    archives: anyio.CapacityLimiter
    words: Kept = field(default_factory=lambda: Kept(_ERROR_BYTES))
    _reason: str = ""
    _end_expected: bool = False
    _gone: anyio.Event = field(default_factory=anyio.Event)

    @property
    def kind(self) -> str:
        """What contains: "bubblewrap"."""
        return BUBBLEWRAP

    @property
    def workdir(self) -> str:
        """Where commands start."""
        return TESTBED

    @property
    def ended(self) -> str:
        """Why the sandbox ended without ``stop``, "" if it did not; all its processes are gone then."""
        return self._reason if self._gone.is_set() else ""

    async def run(
        self,
        command: Sequence[str],
        *,
        limits: Limits | None = None,
        stdin: bytes = b"",
        env: Mapping[str, str] | None = None,
        workdir: str | None = None,
        sink: Callable[[bytes], Awaitable[None]] | None = None,
    ) -> Completed:
        """Run ``command`` as ``Box.run`` describes.

        Raises:
            SandboxError: the sandbox is gone, or could not run the command; ``ended`` has the reason.
        """
        try:
            return await self.control.run(
                command, limits=limits, stdin=stdin, env=env, workdir=workdir, sink=sink
            )
        except SandboxError as fault:
            if not self.control.lost.is_set():
                raise
            with anyio.move_on_after(_END_WITHIN_S):
                await self._gone.wait()
            raise SandboxError(f"the sandbox ended: {self._reason or fault}") from fault

    async def put(self, archive: AsyncIterable[bytes] | bytes) -> None:
        """Unpack a trusted tar archive; its members lie in the writable folders.

        Raises:
            SandboxError: it could not be unpacked.
        """
        await unpack(archive, self.places, Owner(privileged()), self.archives)

    def get(self, path: str) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        """Read ``path`` as ``Box.get`` describes.

        Raises:
            SandboxError: ``path`` does not exist, or cannot be read.
        """
        return packed(path, self.places, self.archives)

    async def stop(self) -> None:
        """End all processes in the sandbox at once; files stay readable. May be called again."""
        self._end_expected = True
        await self.kill()
        await self.control.lose("the sandbox was stopped")

    async def aclose(self) -> None:
        """End the sandbox; the provider removes its folders."""
        await self.stop()

    async def end(self, reason: str) -> None:
        """End the sandbox because of ``reason``; the first reason is recorded."""
        if not self._end_expected and not self._reason:
            self._reason = reason
        await self.control.lose(reason)
        await self.kill()

    async def kill(self) -> None:
        """Kill all processes in the sandbox from the host, and wait until they are gone.

        Raises:
            SandboxError: they are not, in bounded time.
        """
        if self._gone.is_set():
            return
        with anyio.move_on_after(_END_WITHIN_S, shield=True):
            with anyio.move_on_after(_END_WITHIN_S / 2):
                await end_namespace(self.process, self.report)
            if self.process.returncode is None:
                self.process.kill()
                await self.process.wait()
            first_pid = self.report.first_inside()
            if first_pid is not None:
                await gone(first_pid)
            self._gone.set()
        if not self._gone.is_set():
            raise SandboxError(
                f"a sandbox could not be ended within {_END_WITHIN_S:g} s: process {self.process.pid}"
            )

    async def attend(self) -> None:
        """Wait for the end of the supervisor, and kill what is left."""
        await self.control.lost.wait()
        await self.end(self.control.problem)

    async def listen(self) -> None:
        """Collect the error output of bubblewrap and the supervisor; both have ended when it ends."""
        stream = self.process.stderr
        with contextlib.suppress(anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError):
            while stream is not None:
                self.words.add(await stream.receive())
        message = " ".join(self.words.content().decode(errors="replace").split())
        await self.control.lose(message or "all processes in the sandbox were ended")

    async def guard(self, until: Callable[[], Awaitable[str]]) -> None:
        """End the sandbox with the reason that ``until`` returns."""
        await self.end(await until())


@dataclass(frozen=True, slots=True)
class LocalBoxes:
    """Opens sandboxes in ``folder``, which belongs to the run."""

    folder: Path
    program: Path
    archives: anyio.CapacityLimiter = field(default_factory=lambda: anyio.CapacityLimiter(_ARCHIVES_AT_ONCE))
    liveness: Liveness = field(default_factory=Liveness)

    @property
    def kind(self) -> str:
        """What contains: "bubblewrap"."""
        return BUBBLEWRAP

    @asynccontextmanager
    async def open(self, spec: BoxSpec) -> AsyncIterator[LocalBox]:
        """Start a sandbox; it and everything written in it are removed at the end of the block.

        Raises:
            SandboxError: it cannot be started; the message has the fix.
            ToolMissing: Node is missing.
        """
        async with self._folder() as folder, self._running(spec, folder) as sandbox, beside() as tasks:
            tasks.start_soon(sandbox.attend)
            tasks.start_soon(sandbox.listen)
            await sandbox.control.connected()
            pid, folders = sandbox.process.pid, tuple(sandbox.places.values())
            tasks.start_soon(sandbox.guard, lambda: until_used_up(pid, spec))
            tasks.start_soon(sandbox.guard, lambda: until_full(folders, spec))
            yield sandbox

    @asynccontextmanager
    async def _folder(self) -> AsyncIterator[Path]:
        """Give a new folder with a locked file, which shows that its run lives."""
        try:
            folder, lock = await to_thread.run_sync(new_folder, self.folder)
        except OSError as fault:
            raise SandboxError(f"cannot create a sandbox in {self.folder}: {fault}") from fault
        try:
            yield folder
        finally:
            with anyio.CancelScope(shield=True):
                await to_thread.run_sync(remove, folder)
            os.close(lock)

    @asynccontextmanager
    async def _running(self, spec: BoxSpec, folder: Path) -> AsyncIterator[LocalBox]:
        opening = control(
            folder / "control", ways=spec.egress.ways, lifetime_s=spec.lifetime_s, liveness=self.liveness
        )
        async with opening as supervisor:
            sandbox, group = await self._start(spec, folder, supervisor)
            try:
                yield sandbox
            finally:
                with anyio.CancelScope(shield=True):
                    await sandbox.stop()
                    await sandbox.process.aclose()
                    await sandbox.start.guard.dismiss()
                    sandbox.report.close()
                    await to_thread.run_sync(cgroup.remove, group)

    async def _start(self, spec: BoxSpec, folder: Path, supervisor: Control) -> tuple[LocalBox, Path | None]:
        """Start a sandbox; shielded, because a cancelled start would leave an unknown process."""
        with anyio.CancelScope(shield=True):
            folders = await to_thread.run_sync(make_places, folder, Owner(privileged()))
            launch = await to_thread.run_sync(start, self.program, spec, supervisor, folders)
            group = await to_thread.run_sync(cgroup.bounded_group, spec.processes + OWN_PROCESSES)
            try:
                process = await anyio.open_process(
                    cgroup.joining(group, launch.argv),
                    stdin=DEVNULL,
                    stdout=DEVNULL,
                    stderr=PIPE,
                    cwd="/",
                    env={},
                    pass_fds=launch.passed,
                    start_new_session=True,
                )
            except (OSError, ValueError) as fault:
                os.close(launch.status)
                launch.guard.release()
                await to_thread.run_sync(cgroup.remove, group)
                raise SandboxError(f"cannot start {self.program}: {fault}") from fault
            finally:
                for descriptor in launch.passed:
                    os.close(descriptor)
        return LocalBox(
            spec, supervisor, folders, process, launch, Report(launch.status), self.archives
        ), group


def local_boxes(folder: Path, *, engine: Engine | None = None) -> LocalBoxes:
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
        remove_abandoned(folder)
    except OSError as fault:
        raise SandboxError(f"cannot create a sandbox in {folder}: {fault}") from fault
    return LocalBoxes(folder.resolve(), chosen.program)
