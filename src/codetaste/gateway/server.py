"""The gateway's HTTP server: uvicorn on a Unix socket, and optionally on the loopback.

It runs in the caller's task group, handles no signals and logs nothing. Untrusted clients are limited in
connections, header bytes and idle time.
"""

from __future__ import annotations

import os
import resource
import socket
from collections import OrderedDict
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import TYPE_CHECKING, Any

import anyio
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

if TYPE_CHECKING:
    import asyncio
    from collections.abc import AsyncIterator, Iterator, Sequence
    from pathlib import Path

    from starlette.types import ASGIApp

_MAX_CONNECTIONS = 4096
"""Maximum open connections, if twice as many files may be open."""
_HEAD_TIMEOUT_S = 60.0
"""Maximum time for the head of a request, from the beginning of the connection or of the head."""
_KEEP_ALIVE_S = 120.0
"""Maximum time between two requests of a connection: longer than any of the CLI agents keeps one."""
_MAX_HEADER_BYTES = 64 * 1024
_BACKLOG = 1024
_SHUTDOWN_S = 1
"""Maximum wait for requests at shutdown, when all jobs have ended already."""


class _Server(uvicorn.Server):
    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals to the run."""
        yield


class _Connection(H11Protocol):
    """One connection, closed if it stays idle for too long between requests."""

    _idle: OrderedDict[_Connection, None]
    _limit: int
    _idle_since_s = 0.0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Accept a new connection; if there are too many, close the one idle for longest."""
        super().connection_made(transport)
        self._await_head()
        if len(self.connections) > self._limit:
            oldest = next(iter(self._idle))
            oldest.give_up()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget a connection."""
        self._idle.pop(self, None)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Receive data; the head of a request must be complete in time."""
        super().data_received(data)
        if self.cycle is None or self.cycle.response_complete:
            self._await_head()
        else:
            self._idle.pop(self, None)
            self._idle_since_s = 0.0

    def on_response_complete(self) -> None:
        """Wait for the next request."""
        super().on_response_complete()
        if not self.transport.is_closing():
            self._idle[self] = None

    def give_up(self) -> None:
        """Close a connection that has no request in progress."""
        self._idle.pop(self, None)
        if not self.transport.is_closing():
            self.transport.close()

    def _await_head(self) -> None:
        """Wait for the whole head of a request; partial data does not extend the time."""
        self._idle.setdefault(self, None)
        self._idle_since_s = self._idle_since_s or self.loop.time()
        self._unset_keepalive_if_required()
        self.timeout_keep_alive_task = self.loop.call_at(self._idle_since_s + _HEAD_TIMEOUT_S, self.give_up)


def _connection_class() -> type[_Connection]:
    """Return a connection class for one server, so that its idle connections are the server's own."""
    limit = min(_MAX_CONNECTIONS, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 2)

    class ServerConnection(_Connection):
        _idle, _limit = OrderedDict[_Connection, None](), limit

    return ServerConnection


@asynccontextmanager
async def open_server(app: ASGIApp, sockets: Sequence[socket.socket]) -> AsyncIterator[None]:
    """Serve ``app`` on ``sockets`` until the end of the block; shutdown takes seconds at most."""

    async def asgi(scope: Any, receive: Any, send: Any) -> None:  # noqa: ANN401 - uvicorn's own types
        await app(scope, receive, send)

    async def serve() -> None:
        with anyio.CancelScope(shield=True):
            await server.serve([*sockets])

    config = uvicorn.Config(
        asgi,
        http=_connection_class(),
        ws="none",
        lifespan="off",
        loop="none",
        log_config=None,
        log_level="critical",
        access_log=False,
        server_header=False,
        date_header=False,
        proxy_headers=False,
        h11_max_incomplete_event_size=_MAX_HEADER_BYTES,
        timeout_keep_alive=int(_KEEP_ALIVE_S),
        timeout_graceful_shutdown=_SHUTDOWN_S,
        backlog=_BACKLOG,
    )
    server = _Server(config)
    error: Exception | None = None
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(serve)
        while not server.started:  # noqa: ASYNC110 - uvicorn has no event for it
            await anyio.sleep(0.005)
        try:
            yield
        except Exception as raised:  # noqa: BLE001 - raised again below, not wrapped into a group
            error = raised
        finally:
            server.should_exit = True
    if error is not None:
        raise error


def unix_socket(path: Path) -> socket.socket:
    """Listen at ``path``; any user who can enter the folder may connect, as each request needs a token."""
    folder = os.open(path.parent, os.O_PATH | os.O_DIRECTORY)
    try:
        # Via the folder's descriptor, as the whole path may exceed the length limit of a socket's name.
        with _listening(socket.AF_UNIX) as listener:
            listener.bind(f"/proc/self/fd/{folder}/{path.name}")
            path.chmod(0o666)
    finally:
        os.close(folder)
    return listener


def loopback_socket() -> socket.socket:
    """Listen at a free port of the loopback."""
    with _listening(socket.AF_INET) as listener:
        listener.bind(("127.0.0.1", 0))
    return listener


@contextmanager
def _listening(family: socket.AddressFamily) -> Iterator[socket.socket]:
    """Yield a socket to bind, which listens after the block; it is closed if that fails."""
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        yield listener
        listener.listen(_BACKLOG)
    except BaseException:
        listener.close()
        raise
    listener.setblocking(False)  # noqa: FBT003 - its only argument


@contextmanager
def close_on_exit(sockets: Sequence[socket.socket]) -> Iterator[None]:
    """Close the sockets at the end of the block; sockets already closed are ignored."""
    try:
        yield
    finally:
        for each in sockets:
            with suppress(OSError):
                each.close()
