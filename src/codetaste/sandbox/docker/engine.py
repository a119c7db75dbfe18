"""A container engine and the sockets where one may listen: Docker, or Podman by the Docker API.

Every call is made within ``engine_errors``, so every failure of an engine (not running, restarted during a
call, disk full, image missing) becomes one line with its fix.
"""

from __future__ import annotations

import grp
import json
import os
import re
import stat
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

import anyio
from aiodocker import Docker, DockerError
from aiohttp import ClientConnectorError, ClientError, ClientTimeout
from anyio import to_thread

from codetaste.errors import CodetasteError, SandboxError, SandboxMissing

if TYPE_CHECKING:
    from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence

    from aiohttp import ClientResponse

    Params = Mapping[str, str] | Sequence[tuple[str, str]]

_T = TypeVar("_T")

DOCKER, PODMAN, AUTO = "docker", "podman", "auto"
NAMED = "as named"
_DOCKER_HOST, _CONTAINER_HOST = "DOCKER_HOST", "CONTAINER_HOST"
CALL_S = 60.0
"""Timeout of one call; an engine on a busy machine needs seconds to start a container."""
NO_ENGINE = "no container engine answers here: "
_GREETING_S = 20.0
_PAUSES_S = (0.5, 1.0, 2.0, 4.0, 8.0)
"""Between retries while the engine is down: a restart takes some seconds."""
_MIN_API = (1, 40)
"""API of Docker 19.03, the first with all calls that are used here."""
_REASON = 500
_UNREACHABLE = 900
"""The status that aiodocker sets where there was no response."""
_FAULT, _NOT_FOUND, _CONFLICT = 400, 404, 409
_FULL = re.compile(r"no space left|disk quota exceeded", re.IGNORECASE)
_HAS_CHILDREN = re.compile(r"dependent child", re.IGNORECASE)
_NO_IMAGE = re.compile(r"no such image|image not known|failed to find image|unable to find", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class EngineSocket:
    """A socket where an engine may listen; ``name`` is how it was found."""

    name: str
    socket: Path


def candidate_sockets(engine: str = AUTO, socket: Path | None = None) -> tuple[EngineSocket, ...]:
    """Return the sockets to try for ``engine`` ("docker", "podman", "auto"), best first, each once.

    A named ``socket`` is the only one. Otherwise DOCKER_HOST and CONTAINER_HOST come first, then the usual
    paths, the (rootless) engines of this user after the Docker of the system. Engines of other machines
    (tcp://, ssh://) are left out: folders of this host are mounted.
    """
    if socket is not None:
        return (EngineSocket(NAMED, socket),)
    own = Path(os.environ.get("XDG_RUNTIME_DIR") or f"/run/user/{os.getuid()}")
    found = {
        DOCKER: [
            *_from_variable(_DOCKER_HOST),
            EngineSocket("docker", Path("/var/run/docker.sock")),
            EngineSocket("docker, rootless", own / "docker.sock"),
        ],
        PODMAN: [
            *_from_variable(_CONTAINER_HOST),
            *(_from_variable(_DOCKER_HOST) if engine == PODMAN else ()),
            EngineSocket("podman, rootless", own / "podman" / "podman.sock"),
            EngineSocket("podman", Path("/run/podman/podman.sock")),
        ],
    }
    wanted = [*found[DOCKER], *found[PODMAN]] if engine == AUTO else found[engine]
    return tuple({place.socket: place for place in reversed(wanted)}.values())[::-1]


def permission_hint(socket: Path) -> str:
    """Return what to do if this user may not use ``socket``."""
    try:
        status = socket.stat()
        group = grp.getgrgid(status.st_gid).gr_name
    except (OSError, KeyError):
        return "start codetaste as a user with access"
    if status.st_gid == 0 or not status.st_mode & stat.S_IWGRP:
        return "start codetaste as its owner"
    return f"join the {group} group (sudo usermod -aG {group} $USER) and log in again"


def _from_variable(variable: str) -> list[EngineSocket]:
    value = os.environ.get(variable, "")
    scheme, _, path = value.partition("://")
    return [EngineSocket(variable, Path(path))] if scheme == "unix" and path else []


class EngineGone(SandboxError):
    """The engine does not answer, or closed the connection; ``never_sent``: it did not get the request."""

    never_sent = False


class _Conflict(SandboxError):
    """The request conflicts with the current state of the object."""


@dataclass(slots=True)
class ContainerEngine:
    """An engine that has answered.

    Attributes:
        client: its API client.
        kind: "docker" or "podman".
        version: of the engine.
        socket: its address.
        quota: whether it can limit the disk usage of a container; None until it was tried.
    """

    client: Docker
    kind: str
    version: str
    socket: Path
    quota: bool | None = None

    async def describe_storage(self) -> str:
        """Return its storage driver and backing file system.

        Raises:
            SandboxError: it does not answer.
        """
        with engine_errors(self, "describe its storage"):
            info = await self.client.system.info()
            below = dict(entry[:2] for entry in info.get("DriverStatus") or ())
            on = below.get("Backing Filesystem", "")
            return f"{info['Driver']}{f' on {on}' if on else ''}"

    async def call(self, method: str, path: str, params: Params) -> Any:  # noqa: ANN401 - JSON of the engine
        """Make a call that aiodocker has no method for; return the JSON of the response, None if it is empty.

        Raises:
            DockerError: the engine refused. Use it within ``engine_errors``.
        """
        async with self.stream(method, path, params=params) as answer:
            content = await answer.read()
            return json.loads(content) if content.strip() else None

    @asynccontextmanager
    async def stream(
        self,
        method: str,
        path: str,
        *,
        params: Params,
        data: AsyncIterable[bytes] | None = None,
        headers: Mapping[str, str] = MappingProxyType({}),
    ) -> AsyncIterator[ClientResponse]:
        """Make a call with a streamed response; ``data`` is an archive.

        Raises:
            DockerError: the engine refused. Use it within ``engine_errors``.
        """
        url = f"{self.client.docker_host}/{self.client.api_version}/{path}"
        content = {} if data is None else {"Content-Type": "application/x-tar"}
        async with self.client.session.request(
            method, url, params=params, data=data, headers={**content, **headers}, timeout=ClientTimeout()
        ) as response:
            if response.status >= _FAULT:
                text = await response.text()
                with suppress(ValueError, LookupError, TypeError):
                    text = str(json.loads(text)["message"])
                raise DockerError(response.status, text[:_REASON])
            yield response


@asynccontextmanager
async def connect_engine(engine: str = AUTO, socket: Path | None = None) -> AsyncIterator[ContainerEngine]:
    """Connect to the first engine that answers: "docker", "podman", or either ("auto").

    Args:
        engine: the kind.
        socket: its address; by default the usual paths are tried.

    Raises:
        SandboxMissing: no engine answers; the message has the reason for each path.
    """
    problems: list[str] = []
    for candidate in candidate_sockets(engine, socket):
        if not await to_thread.run_sync(os.path.exists, candidate.socket):
            if candidate.name in {NAMED, _DOCKER_HOST, _CONTAINER_HOST}:
                problems.append(f"{candidate.socket} ({candidate.name}) does not exist")
            continue
        if not os.access(candidate.socket, os.W_OK):
            problems.append(
                f"{candidate.socket} is not writable for this user: {permission_hint(candidate.socket)}"
            )
            continue
        client = Docker(url=f"unix://{candidate.socket}")
        try:
            try:
                found = await _greet(client, candidate.socket)
            except SandboxError as error:
                problems.append(str(error))
                continue
            if engine not in {AUTO, found.kind}:
                problems.append(f"{candidate.socket} is {found.kind}'s")
                continue
            yield found
            return
        finally:
            with anyio.CancelScope(shield=True):
                await client.close()
    if socket is None:
        problems += [
            f"{variable} is not a socket of this host (unix:///…)"
            for variable in (_DOCKER_HOST, _CONTAINER_HOST)
            if os.environ.get(variable) and not _from_variable(variable)
        ]
    fix = "install and start one (sudo apt-get install docker.io), or name its socket in sandbox.socket"
    if engine == PODMAN:
        fix = "start one: podman system service --time 0 (or systemctl --user start podman.socket)"
    raise SandboxMissing(f"{NO_ENGINE}{'; '.join(problems) or 'no socket'}; {fix}")


@contextmanager
def engine_errors(engine: ContainerEngine, what: str, within_s: float = CALL_S) -> Iterator[None]:
    """Translate the exceptions of engine calls in the block; ``what`` completes "docker cannot …: reason".

    Raises:
        SandboxMissing: the image does not exist: retrying does not help.
        EngineGone: no answer in time, or no connection.
        SandboxError: any other failure.
    """
    summary = f"{engine.kind} at {engine.socket} cannot {what}"
    try:
        with anyio.fail_after(within_s):
            yield
    except CodetasteError:
        raise
    except DockerError as error:
        raise _translate(summary, error) from error
    except TimeoutError:
        raise EngineGone(f"{summary}: no answer within {within_s:g} s; see the engine's log") from None
    except (ClientError, OSError, ValueError, KeyError, TypeError) as error:
        reason = " ".join(f"{type(error).__name__} {error}".split())
        raise EngineGone(
            f"{summary}: the connection was lost ({reason}); check that the engine is running"
        ) from error


async def retry_while_down(engine: ContainerEngine, what: str, function: Callable[[], Awaitable[_T]]) -> _T:
    """Return the result of ``function``, retried for some seconds while the engine is down.

    Raises:
        SandboxError: as of ``engine_errors``.
    """
    for pause_s in _PAUSES_S:
        try:
            with engine_errors(engine, what):
                return await function()
        except (EngineGone, _Conflict):
            await anyio.sleep(pause_s)
    with engine_errors(engine, what):
        return await function()


async def delete_resource(engine: ContainerEngine, path: str, **params: str) -> None:
    """Delete the object at ``path`` of the engine's API, if it exists and no image was made of it.

    Raises:
        SandboxError: as of ``engine_errors``; or it is still in use after some seconds.
    """

    async def function() -> None:
        try:
            await engine.call("DELETE", path, params)
        except DockerError as error:
            if error.status == _CONFLICT and _HAS_CHILDREN.search(error.message):
                return  # An image was made of it; the engine removes both together.
            if error.status == _CONFLICT:
                # It is just ending, or another program is deleting it.
                raise _Conflict(f"{engine.kind} cannot delete {path}: {error.message}") from error
            if error.status != _NOT_FOUND:
                raise

    await retry_while_down(engine, f"delete {path}", function)


def _translate(summary: str, error: DockerError) -> SandboxError:
    reason = " ".join(str(error.message).split())[:_REASON]
    if error.status == _UNREACHABLE:
        gone = EngineGone(f"{summary}: it does not answer; check that the engine is running")
        gone.never_sent = isinstance(error.__context__, ClientConnectorError)
        return gone
    if error.status in {_NOT_FOUND, _FAULT} and _NO_IMAGE.search(reason):  # 400: it cannot be a name
        return SandboxMissing(
            f"{summary}: {reason}; build one (codetaste image build --lean) or name an existing one"
        )
    if _FULL.search(reason):
        return SandboxError(f"{summary}: its disk is full ({reason}); free some space")
    return SandboxError(f"{summary}: {reason}")


async def _greet(client: Docker, socket: Path) -> ContainerEngine:
    try:
        with anyio.fail_after(_GREETING_S):
            about = await client.version()
        api = tuple(int(part) for part in about["ApiVersion"].split("."))
        parts = {part.get("Name") for part in about.get("Components") or ()}
        version = str(about["Version"])
    except (ClientError, DockerError, OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        reason = " ".join(f"{type(error).__name__} {error}".split())[:_REASON]
        raise SandboxError(f"{socket} did not answer like a container engine: {reason}") from error
    kind = PODMAN if "Podman Engine" in parts else DOCKER
    if api < _MIN_API:
        needed = ".".join(map(str, _MIN_API))
        raise SandboxMissing(
            f"{kind} {version} at {socket} is too old: its API is {about['ApiVersion']}, {needed} is needed; "
            "install Docker 19.03 or newer"
        )
    return ContainerEngine(client, kind, version, socket)
