"""One box in a container, while it is open."""

from __future__ import annotations

from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import anyio
from anyio import to_thread

from codetaste.errors import SandboxError
from codetaste.sandbox.box import TESTBED
from codetaste.sandbox.docker_archive import (
    CHUNK,
    Sent,
    followed_link,
    pieces,
    place_of,
    split,
    spooled,
)
from codetaste.sandbox.docker_engine import EngineGone, asking, patiently
from codetaste.sandbox.docker_socket import PODMAN
from codetaste.sandbox.docker_spec import PLACES
from codetaste.sandbox.tar_walk import TarWalk

if TYPE_CHECKING:
    from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Mapping, Sequence

    from aiohttp import ClientResponse

    from codetaste.sandbox.box import BoxSpec
    from codetaste.sandbox.docker_engine import ContainerEngine
    from codetaste.sandbox.sandbox import Completed, Limits
    from codetaste.sandbox.warden import Control

_PUT_S = 1800.0
_DIAGNOSIS_S = 30.0
_AGAIN_S = 0.5
_SETTLED_S, _SOON_S = 10.0, 0.02
_ENDING = {"running", "stopping", "stopped"}
"""States that Podman has on the way to its last one: until then its files cannot be read."""
_TRIES = 40
_EXPIRED, _KILLED = 3, 137
"""Exit codes: of the warden when its time is over, of whoever gets SIGKILL."""
_NOT_RUNNING = {404, 409}
_STOPPED = "container state improper"
"""Podman's words for it."""
_REMOVED = "its container was removed by somebody else"


@dataclass(slots=True)
class DockerBox:
    """Commands go to the program inside; the engine is asked for archives, and to stop everything."""

    engine: ContainerEngine
    name: str
    spec: BoxSpec
    control: Control
    _reason: str = ""
    _told: bool = False
    _stopped: bool = False
    _known: anyio.Event = field(default_factory=anyio.Event)

    @property
    def kind(self) -> str:
        """What contains: "docker" or "podman"."""
        return self.engine.kind

    @property
    def workdir(self) -> str:
        """Where commands start."""
        return TESTBED

    @property
    def ended(self) -> str:
        """Why the box ended before it was told to, "" if it did not; nothing of it runs any more then."""
        return self._reason if self._known.is_set() else ""

    async def ready(self) -> None:
        """Wait until commands can be run.

        Raises:
            SandboxError: the program inside did not come up; the message has its last words.
        """
        try:
            await self.control.connected()
        except SandboxError as error:
            said = await self._last_words()
            raise SandboxError(f"a box of {self.spec.image or 'the default image'}: {error}{said}") from error

    async def attend(self) -> None:
        """Wait for the end of the program inside, and find out why, unless it was told to end."""
        await self.control.lost.wait()
        if not self._told and not self._reason:
            self._reason = await self._diagnosis()
            self._known.set()

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
        """Run ``command`` as ``Box.run`` promises: no call of the engine.

        Raises:
            SandboxError: the box is gone, or could not run it; ``ended`` says why.
        """
        try:
            return await self.control.run(
                command, limits=limits, stdin=stdin, env=env, workdir=workdir, sink=sink
            )
        except SandboxError as error:
            if not self.control.lost.is_set() or self._told:
                raise
            with anyio.move_on_after(_DIAGNOSIS_S):
                await self._known.wait()
            raise SandboxError(f"the box ended: {self._reason or error}") from error

    async def put(self, archive: AsyncIterable[bytes] | bytes) -> None:
        """Unpack a tar archive that we made: one call of the engine, and more where the root is read-only.

        Raises:
            SandboxError: it could not be unpacked.
        """
        sent = Sent(archive, PLACES)
        if not self.spec.read_only_root:
            await self._put("/", sent)
            return
        # The engine takes an archive only for what can be written to, one mount at a time.
        with await spooled(sent) as whole:
            parts = split(whole, PLACES)
            try:
                for place, part in (await to_thread.run_sync(parts.__enter__)).items():
                    await self._put(place, Sent(pieces(part)))
            finally:
                parts.__exit__(None, None, None)

    async def _put(self, place: str, sent: Sent) -> None:
        try:
            with asking(self.engine, "unpack an archive in a box", _PUT_S):
                path = f"containers/{self.name}/archive"
                async with self.engine.stream("PUT", path, params={"path": place}, data=sent) as answer:
                    await answer.read()
        except SandboxError:
            if sent.fault is not None:
                raise sent.fault from None
            raise

    @asynccontextmanager
    async def get(self, path: str) -> AsyncIterator[AsyncIterator[bytes]]:
        """Read ``path`` as a tar archive, at the reader's pace; works on a box that has ended, too.

        Raises:
            SandboxError: it is not there, or cannot be read.
        """
        place_of(path, PLACES)
        what = f"read {path} of a box"

        async def ask() -> Any:  # noqa: ANN401 - what a context manager enters
            reading = self.engine.stream("GET", f"containers/{self.name}/archive", params={"path": path})
            return reading, await reading.__aenter__()

        reading, answer = await patiently(self.engine, what, ask)
        try:
            link = followed_link(path, answer.headers) if self.kind == PODMAN else None
            yield self._chunks(answer, what) if link is None else aiter(Sent(link))
        finally:
            await reading.__aexit__(None, None, None)

    async def _chunks(self, answer: ClientResponse, what: str) -> AsyncIterator[bytes]:
        walk = TarWalk()
        while True:
            with asking(self.engine, what):
                chunk = await answer.content.read(CHUNK)
            if not chunk:
                break
            walk.feed(chunk)
            yield chunk
        if not walk.complete:
            raise SandboxError(f"cannot {what} to the end: something was changing it; stop the box first")

    async def stop(self) -> None:
        """End all that runs inside, at once; files stay readable. May be called again.

        Raises:
            SandboxError: the engine does not answer, not even after some seconds.
        """
        if not self._stopped:
            self.close()
            with anyio.CancelScope(shield=True):
                await self.control.stop()
                await self._kill()
            self._stopped = True

    async def fill(self) -> None:
        """End the box because it has written more than it may."""
        await self._end("disk full")

    async def aclose(self) -> None:
        """Give back what the box holds: whoever opened it does."""

    def close(self) -> None:
        """Take note that whatever ends now was told to."""
        self._told = True
        self._known.set()

    async def _end(self, reason: str) -> None:
        self._reason = self._reason or reason
        with anyio.CancelScope(shield=True):
            await self.control.lose(reason)
            with suppress(SandboxError):  # its program has ended by now, and with it everything
                await self._kill()
        self._known.set()

    async def _kill(self) -> None:
        from aiodocker import DockerError  # noqa: PLC0415 - heavy

        async def ask() -> None:
            try:
                await self.engine.call("POST", f"containers/{self.name}/kill")
            except DockerError as error:
                if error.status not in _NOT_RUNNING and _STOPPED not in str(error.message):
                    raise

        await patiently(self.engine, "stop a box", ask)
        if self.kind == PODMAN:
            with suppress(SandboxError), asking(self.engine, "see a box end", _SETTLED_S):
                await self._put_away()

    async def _put_away(self) -> None:
        while (await self._state()).get("Status") in _ENDING:  # noqa: ASYNC110 - all that is said of it
            await anyio.sleep(_SOON_S)

    async def _diagnosis(self) -> str:
        """Ask the engine what became of the container: it may be ending only now."""
        gone = ""
        for _ in range(_TRIES):
            try:
                with asking(self.engine, "say why a box ended"):
                    state = await self._state()
            except EngineGone as error:
                gone = str(error)
            except SandboxError:
                return _REMOVED
            else:
                if state.get("Status") == "removing":
                    return _REMOVED
                if not state.get("Running") and state.get("Status") not in _ENDING:
                    return "the container engine was restarted" if gone else self._reason_of(state)
            await anyio.sleep(_AGAIN_S)
        return f"the container engine is gone: {gone}" if gone else self.control.problem

    async def _state(self) -> Mapping[str, Any]:
        state: Mapping[str, Any] = (await self.engine.call("GET", f"containers/{self.name}/json"))["State"]
        return state

    def _reason_of(self, state: Mapping[str, Any]) -> str:
        code = state.get("ExitCode")
        if state.get("OOMKilled"):
            return "out of memory"
        if code == _EXPIRED:
            return "its time is over"
        if code == _KILLED:
            return "killed: from outside, or its own program by something inside"
        said = " ".join(str(state.get("Error") or self.control.problem).split())
        return f"it ended with exit code {code}: {said}"

    async def _last_words(self) -> str:
        """Return what the program inside has said, which is only why it could not start."""
        with suppress(SandboxError), asking(self.engine, "read what a box has said"):
            params = {"stdout": "1", "stderr": "1", "tail": "5"}
            async with self.engine.stream("GET", f"containers/{self.name}/logs", params=params) as answer:
                # Eight bytes in front of each piece say which stream it is of.
                said = "".join(filter(str.isprintable, (await answer.read()).decode(errors="ignore")))
                return f" ({' '.join(said.split())[:500]})" if said.strip() else ""
        return ""
