"""One sandbox in a container, while it is open."""

from __future__ import annotations

from contextlib import ExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import anyio
from aiodocker import DockerError
from anyio import to_thread

from codetaste.core.text import printable
from codetaste.errors import SandboxError
from codetaste.sandbox.base import EndReason, SandboxEnd
from codetaste.sandbox.docker.archive import (
    CHUNK_BYTES,
    ArchiveUpload,
    MemberNames,
    link_archive,
    read_chunks,
    split_by_mount,
    spool_archive,
    writable_folder_of,
)
from codetaste.sandbox.docker.engine import PODMAN, EngineGone, engine_errors, retry_while_down
from codetaste.sandbox.docker.spec import WRITABLE_FOLDERS
from codetaste.sandbox.supervisor.sandbox import SupervisedSandbox

if TYPE_CHECKING:
    from collections.abc import AsyncIterable, AsyncIterator, Mapping

    from aiodocker.containers import DockerContainer
    from aiohttp import ClientResponse

    from codetaste.sandbox.docker.engine import ContainerEngine

_PUT_S = 1800.0
_MEASURE_S = 300.0
_AGAIN_S = 0.5
_FINAL_STATE_S, _POLL_S = 10.0, 0.02
_ENDING_STATES = {"running", "stopping", "stopped"}
"""States of Podman before the final one; until that is reached files cannot be read."""
_DIAGNOSIS_TRIES = 40
_NOT_RUNNING = {404, 409}
_STOPPED = "container state improper"
"""Podman's message for a container that is not running."""


@dataclass(slots=True)
class DockerSandbox(SupervisedSandbox):
    """A sandbox whose archives the engine transfers, and whose container it kills."""

    engine: ContainerEngine
    name: str

    @property
    def kind(self) -> str:
        """What contains: "docker" or "podman"."""
        return self.engine.kind

    @property
    def _container(self) -> DockerContainer:
        return self.engine.client.containers.container(self.name)

    async def wait_ready(self) -> None:
        """Wait until commands can be run.

        Raises:
            SandboxError: the supervisor did not start; the message has its last output.
        """
        try:
            await self.supervisor.wait_connected()
        except SandboxError as error:
            log = ""  # of the container: it has only the reason of a failed start
            with suppress(SandboxError), engine_errors(self.engine, "read the log of a sandbox"):
                lines = await self._container.log(stdout=True, stderr=True, tail=5)
                log = printable(" ".join(" ".join(lines).split()), 500)
            image = self.spec.image or "the default image"
            raise SandboxError(f"a sandbox of {image}: {error}{f' ({log})' if log else ''}") from error

    async def put(self, archive: AsyncIterable[bytes] | bytes) -> None:
        """Unpack a trusted tar archive: one call of the engine, or several where the root is read-only.

        Raises:
            SandboxError: it could not be unpacked.
        """
        sent = ArchiveUpload(archive, WRITABLE_FOLDERS)
        if not self.spec.read_only_root:
            await self._put("/", sent)
            return
        # The engine unpacks an archive only into one writable mount at a time.
        with await spool_archive(sent) as spool, ExitStack() as stack:
            parts = await to_thread.run_sync(split_by_mount, spool, WRITABLE_FOLDERS, stack)
            for folder, part in parts.items():
                await self._put(folder, ArchiveUpload(read_chunks(part)))

    async def _put(self, folder: str, sent: ArchiveUpload) -> None:
        try:
            with engine_errors(self.engine, "unpack an archive in a sandbox", _PUT_S):
                await self._container.put_archive(folder, sent)  # type: ignore[no-untyped-call]
        except SandboxError:
            if sent.fault is not None:
                raise sent.fault from None
            raise

    @asynccontextmanager
    async def get(self, path: str) -> AsyncIterator[AsyncIterator[bytes]]:
        """Read ``path`` as a tar archive, at the reader's pace; also works on a sandbox that has ended.

        Raises:
            SandboxError: ``path`` does not exist, or cannot be read.
        """
        writable_folder_of(path, WRITABLE_FOLDERS)
        what = f"read {path} of a sandbox"

        async def open_stream() -> Any:  # noqa: ANN401 - a context manager and its value
            request = self.engine.stream("GET", f"containers/{self.name}/archive", params={"path": path})
            return request, await request.__aenter__()

        request, answer = await retry_while_down(self.engine, what, open_stream)
        try:
            link = link_archive(path, answer.headers) if self.kind == PODMAN else None
            yield self._chunks(answer, what) if link is None else aiter(ArchiveUpload(link))
        finally:
            await request.__aexit__(None, None, None)

    async def _chunks(self, answer: ClientResponse, what: str) -> AsyncIterator[bytes]:
        names = MemberNames()
        while True:
            with engine_errors(self.engine, what):
                chunk = await answer.content.read(CHUNK_BYTES)
            if not chunk:
                break
            names.feed(chunk)
            yield chunk
        if not names.complete:
            raise SandboxError(f"cannot {what} completely: it changed meanwhile; stop the sandbox first")

    async def written_bytes(self) -> int:
        """Return the size of the writable layer, which the engine measures by walking it.

        Raises:
            SandboxError: the engine failed.
        """
        with engine_errors(self.engine, "measure the disk usage of a sandbox", _MEASURE_S):
            path = f"containers/{self.name}/json"
            return int((await self.engine.call("GET", path, {"size": "1"})).get("SizeRw") or 0)

    async def _kill(self) -> None:
        async def kill() -> None:
            try:
                await self._container.kill()
            except DockerError as error:
                if error.status not in _NOT_RUNNING and _STOPPED not in str(error.message):
                    raise

        await retry_while_down(self.engine, "stop a sandbox", kill)
        if self.kind == PODMAN:
            with (
                suppress(SandboxError),
                engine_errors(self.engine, "wait for the end of a sandbox", _FINAL_STATE_S),
            ):
                # Podman sends no event.
                while (await self._state()).get("Status") in _ENDING_STATES:  # noqa: ASYNC110
                    await anyio.sleep(_POLL_S)

    async def _diagnose(self) -> SandboxEnd:
        """Find out from the engine why the container ended; it may still be ending."""
        gone = ""
        for _ in range(_DIAGNOSIS_TRIES):
            try:
                with engine_errors(self.engine, "find out why a sandbox ended"):
                    state = await self._state()
            except EngineGone as error:
                gone = str(error)
            except SandboxError:
                return SandboxEnd(EndReason.REMOVED)
            else:
                if state.get("Status") == "removing":
                    return SandboxEnd(EndReason.REMOVED)
                if not state.get("Running") and state.get("Status") not in _ENDING_STATES:
                    return SandboxEnd(EndReason.ENGINE_RESTARTED) if gone else self._end_of(state)
            await anyio.sleep(_AGAIN_S)
        if gone:
            return SandboxEnd(EndReason.ENGINE_GONE, gone)
        return SandboxEnd(EndReason.SUPERVISOR_LOST, self.supervisor.problem)

    def _end_of(self, state: Mapping[str, Any]) -> SandboxEnd:
        if state.get("OOMKilled"):
            return SandboxEnd(EndReason.OUT_OF_MEMORY)
        return self._end_of_exit(state["ExitCode"], state.get("Error") or "")

    async def _state(self) -> Mapping[str, Any]:
        state: Mapping[str, Any] = (await self._container.show())["State"]
        return state
