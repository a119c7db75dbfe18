"""A container engine that answers on a socket: Docker's, or Podman's in Docker's language.

Every call goes through :func:`asking`, so that whatever can go wrong with an engine (it is down, it restarts
in mid-call, it is full, it does not have the image) becomes one line that says what to do.
"""

from __future__ import annotations

import json
import os
import re
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import anyio
from anyio import to_thread

from codetaste.errors import CodetasteError, SandboxError, SandboxMissing
from codetaste.sandbox.docker_socket import AUTO, DOCKER, NAMED, PODMAN, joining, places, unusable

if TYPE_CHECKING:
    from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from aiodocker import Docker
    from aiohttp import ClientResponse

    Params = Mapping[str, str] | Sequence[tuple[str, str]]

_T = TypeVar("_T")
CALL_S = 60.0
"""How long one call may take; an engine on a busy machine needs seconds to start a container."""
NO_ENGINE = "no container engine answers here: "
_GREETING_S = 5.0
_PAUSES_S = (0.5, 1.0, 2.0, 4.0, 8.0)
"""Between asking an engine that is gone: a restart takes some seconds."""
_OLDEST = (1, 40)
"""Docker 19.03: the first whose API has all that is asked here."""
_REASON = 500
_UNREACHABLE = 900
"""What aiodocker says where there is no status, for nobody answered."""
_FAULT, _NOT_FOUND, _CONFLICT = 400, 404, 409
_FULL = re.compile(r"no space left|disk quota exceeded", re.IGNORECASE)
_NO_IMAGE = re.compile(r"no such image|image not known|failed to find image|unable to find", re.IGNORECASE)


class EngineGone(SandboxError):
    """The engine does not answer, or broke off: it may be restarting. ``unheard``: it was never asked."""

    unheard = False


class _InTheWay(SandboxError):
    """What is asked for is not possible at this moment."""


@dataclass(slots=True)
class ContainerEngine:
    """An engine that has answered.

    Attributes:
        client: speaks to it.
        kind: "docker" or "podman".
        version: its own.
        socket: where it listens.
        quota: whether it can bound the size of a container's files itself; None until it was tried.
    """

    client: Docker
    kind: str
    version: str
    socket: Path
    quota: bool | None = None

    async def storage(self) -> str:
        """Return which storage driver it has, and on what.

        Raises:
            SandboxError: it does not answer.
        """
        with asking(self, "say how it stores files"):
            info = await self.client.system.info()
            below = dict(entry[:2] for entry in info.get("DriverStatus") or ())
            on = below.get("Backing Filesystem", "")
            return f"{info['Driver']}{f' on {on}' if on else ''}"

    async def call(
        self,
        method: str,
        path: str,
        params: Params | None = None,
        body: Any = None,  # noqa: ANN401
    ) -> Any:  # noqa: ANN401 - what the engine says
        """Make a call that aiodocker has no name for, and return the answer's JSON, None where it has none.

        Raises:
            DockerError: the engine refused. Use it within :func:`asking`.
        """
        data = None if body is None else json.dumps(body).encode()
        async with self.stream(method, path, params=params or {}, data=data) as answer:
            content = await answer.read()
            return json.loads(content) if content.strip() else None

    @asynccontextmanager
    async def stream(
        self,
        method: str,
        path: str,
        *,
        params: Params,
        data: bytes | AsyncIterable[bytes] | None = None,
    ) -> AsyncIterator[ClientResponse]:
        """Make a call whose answer is streamed, as is its body, an archive, unless it is bytes of JSON.

        Raises:
            DockerError: the engine refused. Use it within :func:`asking`.
        """
        from aiodocker import DockerError  # noqa: PLC0415 - heavy
        from aiohttp import ClientTimeout  # noqa: PLC0415

        url = f"{self.client.docker_host}/{self.client.api_version}/{path}"
        kind = "application/json" if isinstance(data, bytes) else "application/x-tar"
        headers = {} if data is None else {"Content-Type": kind}
        async with self.client.session.request(
            method, url, params=params, data=data, headers=headers, timeout=ClientTimeout()
        ) as response:
            if response.status >= _FAULT:
                raise DockerError(response.status, _message(await response.text()))
            yield response


@asynccontextmanager
async def connected(engine: str = AUTO, socket: Path | None = None) -> AsyncIterator[ContainerEngine]:
    """Reach the first engine that answers: "docker", "podman", or either ("auto").

    Args:
        engine: which kind is wanted.
        socket: where it listens; it is looked for in the usual places otherwise.

    Raises:
        SandboxMissing: none answers; the message says for each place why.
    """
    from aiodocker import Docker  # noqa: PLC0415 - heavy

    problems: list[str] = []
    for place in places(engine, socket):
        if not await to_thread.run_sync(os.path.exists, place.socket):
            if place.name in {NAMED, "DOCKER_HOST", "CONTAINER_HOST"}:
                problems.append(f"{place.socket} ({place.name}) is not there")
            continue
        if not os.access(place.socket, os.W_OK):
            problems.append(f"{place.socket} may not be used by this user: {joining(place.socket)}")
            continue
        client = Docker(url=f"unix://{place.socket}")
        try:
            try:
                found = await _greeted(client, place.socket)
            except SandboxError as error:
                problems.append(str(error))
                continue
            if engine not in {AUTO, found.kind}:
                problems.append(f"{place.socket} is {found.kind}'s")
                continue
            yield found
            return
        finally:
            with anyio.CancelScope(shield=True):
                await client.close()
    if socket is None:
        problems += unusable()
    raise SandboxMissing(f"{NO_ENGINE}{'; '.join(problems) or 'no socket'}; {_fix(engine)}")


@contextmanager
def asking(engine: ContainerEngine, what: str, within_s: float = CALL_S) -> Iterator[None]:
    """Put what goes wrong with calls in the block into words; ``what`` as in "Docker cannot … : reason".

    Raises:
        SandboxMissing: the image is not there: trying again does not help.
        EngineGone: nobody answers, in time or at all.
        SandboxError: anything else.
    """
    from aiodocker import DockerError  # noqa: PLC0415 - heavy
    from aiohttp import ClientError  # noqa: PLC0415

    said = f"{engine.kind} at {engine.socket} cannot {what}"
    try:
        with anyio.fail_after(within_s):
            yield
    except CodetasteError:
        raise
    except DockerError as error:
        raise _explained(said, error) from error
    except TimeoutError:
        raise EngineGone(f"{said}: no answer within {within_s:g} s; see the engine's own log") from None
    except (ClientError, OSError, ValueError, KeyError, TypeError) as error:
        reason = " ".join(f"{type(error).__name__} {error}".split())
        raise EngineGone(
            f"{said}: the connection was lost ({reason}); see that the engine is running"
        ) from error


async def patiently(engine: ContainerEngine, what: str, ask: Callable[[], Awaitable[_T]]) -> _T:
    """Ask, and again for some seconds as long as the engine is gone: it may be restarting.

    Raises:
        SandboxError: as of :func:`asking`.
    """
    for pause_s in _PAUSES_S:
        try:
            with asking(engine, what):
                return await ask()
        except (EngineGone, _InTheWay):
            await anyio.sleep(pause_s)
    with asking(engine, what):
        return await ask()


async def delete(engine: ContainerEngine, path: str, **params: str) -> None:
    """Delete what is at ``path`` of the engine's API; it may be gone already.

    Raises:
        SandboxError: as of :func:`asking`; or it is still in use after some seconds.
    """
    from aiodocker import DockerError  # noqa: PLC0415 - heavy

    async def ask() -> None:
        try:
            await engine.call("DELETE", path, params)
        except DockerError as error:
            if error.status == _CONFLICT:
                # It is ending just now, or somebody else is deleting it.
                raise _InTheWay(f"{engine.kind} cannot delete {path}: {error.message}") from error
            if error.status != _NOT_FOUND:
                raise

    await patiently(engine, f"delete {path}", ask)


def _explained(said: str, error: Any) -> SandboxError:  # noqa: ANN401 - a DockerError, whose import is heavy
    from aiohttp import ClientConnectorError  # noqa: PLC0415 - heavy

    reason = " ".join(str(error.message).split())[:_REASON]
    if error.status == _UNREACHABLE:
        gone = EngineGone(f"{said}: it does not answer; see that the engine is running")
        gone.unheard = isinstance(error.__context__, ClientConnectorError)
        return gone
    if error.status == _NOT_FOUND and _NO_IMAGE.search(reason):
        return SandboxMissing(
            f"{said}: {reason}; build one (codetaste image build --lean) or name one that is there"
        )
    if _FULL.search(reason):
        return SandboxError(f"{said}: its disk is full ({reason}); free some space")
    return SandboxError(f"{said}: {reason}")


async def _greeted(client: Docker, socket: Path) -> ContainerEngine:
    from aiodocker import DockerError  # noqa: PLC0415 - heavy
    from aiohttp import ClientError  # noqa: PLC0415

    try:
        with anyio.fail_after(_GREETING_S):
            told = await client.version()
        api = tuple(int(part) for part in told["ApiVersion"].split("."))
        parts = {part.get("Name") for part in told.get("Components") or ()}
        version = str(told["Version"])
    except (ClientError, DockerError, OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        reason = " ".join(f"{type(error).__name__} {error}".split())[:_REASON]
        raise SandboxError(f"{socket} does not answer as an engine does: {reason}") from error
    kind = PODMAN if "Podman Engine" in parts else DOCKER
    if api < _OLDEST:
        needed = ".".join(map(str, _OLDEST))
        raise SandboxMissing(
            f"{kind} {version} at {socket} is too old: it speaks {told['ApiVersion']}, {needed} is needed; "
            "install Docker 19.03 or newer"
        )
    return ContainerEngine(client, kind, version, socket)


def _message(text: str) -> str:
    try:
        return str(json.loads(text)["message"])
    except (ValueError, LookupError, TypeError):
        return text[:500]


def _fix(engine: str) -> str:
    if engine == PODMAN:
        return "start one: podman system service --time 0 (or systemctl --user start podman.socket)"
    return "install and start one (sudo apt-get install docker.io), or name its socket in sandbox.socket"
