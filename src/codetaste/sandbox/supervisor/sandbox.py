"""What all sandboxes share: a supervisor runs the commands, and its end is the end of the sandbox.

An engine adds how archives get in and out, how everything in the sandbox is killed, and how to find out why
it ended.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import anyio

from codetaste.errors import SandboxError
from codetaste.sandbox.base import TESTBED, EndReason, Privileges, SandboxEnd
from codetaste.sandbox.supervisor.client import SUPERVISOR_KILLED

if TYPE_CHECKING:
    from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Mapping, Sequence
    from contextlib import AbstractAsyncContextManager

    from codetaste.sandbox.base import CommandLimits, CommandResult, SandboxSpec
    from codetaste.sandbox.supervisor.client import SupervisorClient

_DIAGNOSIS_S = 30.0
_EXPIRED, _KILLED = 3, 137
"""Exit codes: of the supervisor when its lifetime is over, of a process that gets SIGKILL."""


@dataclass(slots=True)
class SupervisedSandbox(ABC):
    """One open sandbox, a ``Sandbox``; its provider starts ``watch_end`` once the supervisor runs."""

    spec: SandboxSpec
    supervisor: SupervisorClient
    _end: SandboxEnd | None = field(default=None, init=False)
    _end_known: anyio.Event = field(default_factory=anyio.Event, init=False)
    _end_expected: bool = field(default=False, init=False)
    _stopped: bool = field(default=False, init=False)

    @property
    @abstractmethod
    def kind(self) -> str:
        """What contains the commands: "docker", "podman", "bubblewrap"."""

    @property
    def workdir(self) -> str:
        """Where commands start."""
        return TESTBED

    @property
    def end(self) -> SandboxEnd | None:
        """Why the sandbox ended without ``stop``, None if it did not; all its processes are gone then."""
        return self._end if self._end_known.is_set() else None

    async def run(
        self,
        command: Sequence[str],
        *,
        limits: CommandLimits | None = None,
        stdin: bytes = b"",
        env: Mapping[str, str] | None = None,
        workdir: str | None = None,
        sink: Callable[[bytes], Awaitable[None]] | None = None,
        root: bool = False,
    ) -> CommandResult:
        """Run ``command`` as ``Sandbox.run`` describes.

        Raises:
            SandboxError: the sandbox is gone, or could not run the command; ``end`` has the reason. Or
                ``root``, and the privileges of the sandbox are NONE.
        """
        if root and self.spec.privileges is Privileges.NONE:
            raise SandboxError(
                f"{command[0]} cannot be run as root in a sandbox without privileges: "
                "open it with privileges system or sudo"
            )
        try:
            return await self.supervisor.run(
                command, limits=limits, stdin=stdin, env=env, workdir=workdir, sink=sink, root=root
            )
        except SandboxError as error:
            if not self.supervisor.failed.is_set() or self._end_expected:
                raise
            with anyio.move_on_after(_DIAGNOSIS_S):
                await self._end_known.wait()
            raise SandboxError(f"the sandbox ended: {self._end or error}") from error

    @abstractmethod
    async def put(self, archive: AsyncIterable[bytes] | bytes) -> None:
        """Unpack a trusted tar archive as ``Sandbox.put`` describes."""

    @abstractmethod
    def get(self, path: str) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        """Read ``path`` as a tar archive as ``Sandbox.get`` describes."""

    @abstractmethod
    async def written_bytes(self) -> int:
        """Return the size of what was written in the sandbox as ``Sandbox.written_bytes`` describes."""

    async def stop(self) -> None:
        """End all processes in the sandbox at once; files stay readable. May be called again.

        Raises:
            SandboxError: they could not be ended, even after several tries.
        """
        if not self._stopped:
            self.expect_end()
            with anyio.CancelScope(shield=True):
                await self.supervisor.stop()
                await self._kill()
            self._stopped = True

    def expect_end(self) -> None:
        """Record that from now on the end of the sandbox is expected."""
        self._end_expected = True
        self._end_known.set()

    async def end_early(self, reason: EndReason) -> None:
        """End all processes in the sandbox because of ``reason``, unless its end is expected already.

        The first reason is recorded.
        """
        if self._end_expected:
            return
        self._end = self._end or SandboxEnd(reason)
        with anyio.CancelScope(shield=True):
            await self.supervisor.fail(str(self._end))
            with suppress(SandboxError):  # the supervisor has ended by now, and all processes with it
                await self._kill()
        self._end_known.set()

    async def watch_end(self) -> None:
        """Wait for the end of the supervisor; unless it was requested, find out the reason."""
        await self.supervisor.failed.wait()
        if not self._end_expected and self._end is None:
            end = await self._diagnose()
            self._end = self._end or end
            self._end_known.set()

    @abstractmethod
    async def _kill(self) -> None:
        """Kill all processes in the sandbox from outside, and wait until they are gone."""

    @abstractmethod
    async def _diagnose(self) -> SandboxEnd:
        """Return why the sandbox has ended without the host; all its processes are gone then."""

    def _end_of_exit(self, code: int, detail: str = "") -> SandboxEnd:
        """Return the end that the exit code of the first process shows."""
        if code == _EXPIRED:
            return SandboxEnd(EndReason.LIFETIME_OVER)
        if code == SUPERVISOR_KILLED:
            return SandboxEnd(EndReason.SUPERVISOR_KILLED)
        if code == _KILLED:
            return SandboxEnd(EndReason.KILLED)
        return SandboxEnd(
            EndReason.EXITED, f"exit code {code}, {' '.join((detail or self.supervisor.problem).split())}"
        )
