"""Boxes on this very machine: bubblewrap around folders of our own.

Memory, processes and disk are watched, a box that exceeds them is ended. Cores are not held: what runs inside
shares the machine with everything else.
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
_WORDS_BYTES = 4096
_ARCHIVES_AT_ONCE = 4
"""Each takes a thread and some megabytes. Without threads of their own, many at once would wait for ever for
those who read and write the archives."""


@dataclass(slots=True)
class LocalBox:
    """One open box: a contained program, and the folders that it sees as its own."""

    spec: BoxSpec
    control: Control
    places: Mapping[str, Path]
    process: Process
    start: BoxStart
    report: Report
    archives: anyio.CapacityLimiter
    words: Kept = field(default_factory=lambda: Kept(_WORDS_BYTES))
    _reason: str = ""
    _told: bool = False
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
        """Why the box ended before it was told to, "" if it did not; nothing of it runs any more then."""
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
        """Run ``command`` as ``Box.run`` promises.

        Raises:
            SandboxError: the box is gone, or could not run it; ``ended`` says why.
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
            raise SandboxError(f"the box ended: {self._reason or fault}") from fault

    async def put(self, archive: AsyncIterable[bytes] | bytes) -> None:
        """Unpack a tar archive that we made; its members lie below the writable places.

        Raises:
            SandboxError: it could not be unpacked.
        """
        await unpack(archive, self.places, Owner(privileged()), self.archives)

    def get(self, path: str) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        """Read ``path`` as ``Box.get`` promises.

        Raises:
            SandboxError: it is not there, or cannot be read.
        """
        return packed(path, self.places, self.archives)

    async def stop(self) -> None:
        """End all that runs inside, at once; files stay readable. May be called again."""
        self._told = True
        await self.kill()
        await self.control.lose("the box was stopped")

    async def aclose(self) -> None:
        """End the box; its folders are removed by whoever made them."""
        await self.stop()

    async def end(self, reason: str) -> None:
        """End the box because of ``reason``, unless it has ended; the first reason stands."""
        if not self._told and not self._reason:
            self._reason = reason
        await self.control.lose(reason)
        await self.kill()

    async def kill(self) -> None:
        """Kill all that runs inside, from out here, and wait until it is gone.

        Raises:
            SandboxError: it is not, in bounded time.
        """
        if self._gone.is_set():
            return
        with anyio.move_on_after(_END_WITHIN_S, shield=True):
            with anyio.move_on_after(_END_WITHIN_S / 2):
                await end_namespace(self.process, self.report)
            if self.process.returncode is None:
                self.process.kill()
                await self.process.wait()
            inside = self.report.first_inside()
            if inside is not None:
                await gone(inside)
            self._gone.set()
        if not self._gone.is_set():
            raise SandboxError(f"a box outlived its end by {_END_WITHIN_S:g} s: {self.process.pid}")

    async def attend(self) -> None:
        """Wait for the end of the program inside, and see to it that nothing is left."""
        await self.control.lost.wait()
        await self.end(self.control.problem)

    async def listen(self) -> None:
        """Keep what bubblewrap and the program inside complain about; at the end of it they have ended."""
        stream = self.process.stderr
        with contextlib.suppress(anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError):
            while stream is not None:
                self.words.add(await stream.receive())
        said = " ".join(self.words.content().decode(errors="replace").split())
        await self.control.lose(said or "everything inside was ended")

    async def guard(self, until: Callable[[], Awaitable[str]]) -> None:
        """End the box once ``until`` says why."""
        await self.end(await until())


@dataclass(frozen=True, slots=True)
class LocalBoxes:
    """Boxes in ``folder``, which is ours."""

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
        """Start a box; at the end of the block it and all that it wrote are gone.

        Raises:
            SandboxError: it cannot be had; the message says what to do.
            ToolMissing: there is no Node.
        """
        async with self._folder() as folder, self._started(spec, folder) as box, beside() as tasks:
            tasks.start_soon(box.attend)
            tasks.start_soon(box.listen)
            await box.control.connected()
            pid, folders = box.process.pid, tuple(box.places.values())
            tasks.start_soon(box.guard, lambda: until_used_up(pid, spec))
            tasks.start_soon(box.guard, lambda: until_full(folders, spec))
            yield box

    @asynccontextmanager
    async def _folder(self) -> AsyncIterator[Path]:
        """A new folder that others can tell from one whose maker was killed: a file in it is locked."""
        try:
            folder, lock = await to_thread.run_sync(new_folder, self.folder)
        except OSError as fault:
            raise SandboxError(f"no box can be made in {self.folder}: {fault}") from fault
        try:
            yield folder
        finally:
            with anyio.CancelScope(shield=True):
                await to_thread.run_sync(remove, folder)
            os.close(lock)

    @asynccontextmanager
    async def _started(self, spec: BoxSpec, folder: Path) -> AsyncIterator[LocalBox]:
        inside = folder / "control"
        opening = control(inside, ways=spec.egress.ways, lifetime_s=spec.lifetime_s, liveness=self.liveness)
        async with opening as held:
            box, group = await self._box(spec, folder, held)
            try:
                yield box
            finally:
                with anyio.CancelScope(shield=True):
                    await box.stop()
                    await box.process.aclose()
                    await box.start.guard.dismiss()
                    box.report.close()
                    await to_thread.run_sync(cgroup.remove, group)

    async def _box(self, spec: BoxSpec, folder: Path, held: Control) -> tuple[LocalBox, Path | None]:
        """Start a box; shielded, for a start cancelled half-way leaves a process that nobody knows."""
        with anyio.CancelScope(shield=True):
            places = await to_thread.run_sync(make_places, folder, Owner(privileged()))
            begun = await to_thread.run_sync(start, self.program, spec, held, places)
            group = await to_thread.run_sync(cgroup.bounded_group, spec.processes + OWN_PROCESSES)
            try:
                process = await anyio.open_process(
                    cgroup.joining(group, begun.argv),
                    stdin=DEVNULL,
                    stdout=DEVNULL,
                    stderr=PIPE,
                    cwd="/",
                    env={},
                    pass_fds=begun.passed,
                    start_new_session=True,
                )
            except (OSError, ValueError) as fault:
                os.close(begun.status)
                begun.guard.release()
                await to_thread.run_sync(cgroup.remove, group)
                raise SandboxError(f"cannot start {self.program}: {fault}") from fault
            finally:
                for descriptor in begun.passed:
                    os.close(descriptor)
        return LocalBox(spec, held, places, process, begun, Report(begun.status), self.archives), group


def local_boxes(folder: Path, *, engine: Engine | None = None) -> LocalBoxes:
    """Return what opens boxes on this machine, in ``folder``; what killed runs have left there is removed.

    Blocks: without ``engine`` bubblewrap is tried once in a process.

    Raises:
        SandboxError: bubblewrap does not work here; the message has the fix.
    """
    chosen = engine or choose_engine(BUBBLEWRAP)
    if chosen.program is None:
        raise SandboxError(
            f"{chosen.kind} cannot hold a coding agent, which needs files, processes and a loopback of its "
            "own: use bubblewrap or a container engine"
        )
    try:
        folder.mkdir(parents=True, exist_ok=True)
        remove_abandoned(folder)
    except OSError as fault:
        raise SandboxError(f"no box can be made in {folder}: {fault}") from fault
    return LocalBoxes(folder.resolve(), chosen.program)
