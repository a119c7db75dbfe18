"""What speaks HTTP for the gateway: uvicorn on a Unix socket, and on the loopback where that is wanted.

It runs within a task group of ours, takes no signals, logs nothing, and is bounded in what strangers may
hold: connections, headers, and how long a connection may say nothing.
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

    from codetaste.gateway.app import App

_CONNECTIONS = 4096
"""At once, if as many files may be open twice."""
_SILENT_S = 60.0
"""How long the head of a request may take to come, from the beginning of the connection or of the head."""
_KEPT_S = 120.0
"""How long a connection is kept between two requests: longer than any of the programs keeps one."""
_HEADER_BYTES = 64 * 1024
_BACKLOG = 1024
_STOPPING_S = 1
"""How long requests are waited for at the end, when all jobs are over already."""


class _Server(uvicorn.Server):
    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals to those whose process this is."""
        yield


class _Connection(H11Protocol):
    """One connection; while no request is under way, it may be silent for a while only."""

    _silent: OrderedDict[_Connection, None]
    _most: int
    _since_s = 0.0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take a new connection; where there are too many, the one goes that has been silent longest."""
        super().connection_made(transport)
        self._wait()
        if len(self.connections) > self._most:
            oldest = next(iter(self._silent))
            oldest.give_up()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget a connection."""
        self._silent.pop(self, None)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take what came; a request that has begun must come to its end in time."""
        super().data_received(data)
        if self.cycle is None or self.cycle.response_complete:
            self._wait()
        else:
            self._silent.pop(self, None)
            self._since_s = 0.0

    def on_response_complete(self) -> None:
        """Wait for the next request."""
        super().on_response_complete()
        if not self.transport.is_closing():
            self._silent[self] = None

    def give_up(self) -> None:
        """Close a connection on which no request is under way."""
        self._silent.pop(self, None)
        if not self.transport.is_closing():
            self.transport.close()

    def _wait(self) -> None:
        """Wait for the whole head of a request, however little comes at a time."""
        self._silent.setdefault(self, None)
        self._since_s = self._since_s or self.loop.time()
        self._unset_keepalive_if_required()
        self.timeout_keep_alive_task = self.loop.call_at(self._since_s + _SILENT_S, self.give_up)


def _connections() -> type[_Connection]:
    """Return the kind of connection of one server: what they know of each other is that server's."""
    most = min(_CONNECTIONS, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 2)

    class Connection(_Connection):
        _silent, _most = OrderedDict[_Connection, None](), most

    return Connection


@asynccontextmanager
async def serving(app: App, sockets: Sequence[socket.socket]) -> AsyncIterator[None]:
    """Serve ``app`` on ``sockets``, which are closed at the end; that takes seconds at most."""
    config = uvicorn.Config(
        _as_asgi(app),
        http=_connections(),
        ws="none",
        lifespan="off",
        loop="none",
        log_config=None,
        log_level="critical",
        access_log=False,
        server_header=False,
        date_header=False,
        proxy_headers=False,
        h11_max_incomplete_event_size=_HEADER_BYTES,
        timeout_keep_alive=int(_KEPT_S),
        timeout_graceful_shutdown=_STOPPING_S,
        backlog=_BACKLOG,
    )
    server = _Server(config)
    error: Exception | None = None
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_serve, server, [*sockets])
        while not server.started:  # noqa: ASYNC110 - it says so nowhere else
            await anyio.sleep(0.005)
        try:
            yield
        except Exception as raised:  # noqa: BLE001 - raised again below, not wrapped into a group
            error = raised
        finally:
            server.should_exit = True
    if error is not None:
        raise error


async def _serve(server: uvicorn.Server, sockets: list[socket.socket]) -> None:
    with anyio.CancelScope(shield=True):
        await server.serve(sockets)


def _as_asgi(app: App) -> Any:  # noqa: ANN401 - uvicorn's own type
    async def asgi(scope: Any, receive: Any, send: Any) -> None:  # noqa: ANN401
        await app(scope, receive, send)

    return asgi


def unix_socket(path: Path) -> socket.socket:
    """Listen at ``path``; anybody who can see the folder may connect, as what they say there is guarded."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    folder = os.open(path.parent, os.O_PATH | os.O_DIRECTORY)
    try:
        # By its descriptor, as the whole path may be longer than the name of a socket can be.
        listener.bind(f"/proc/self/fd/{folder}/{path.name}")
        path.chmod(0o666)
        listener.listen(_BACKLOG)
    except BaseException:
        listener.close()
        raise
    finally:
        os.close(folder)
    listener.setblocking(False)  # noqa: FBT003 - its only argument
    return listener


def loopback_socket() -> socket.socket:
    """Listen at a free port of the loopback."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        listener.bind(("127.0.0.1", 0))
        listener.listen(_BACKLOG)
    except BaseException:
        listener.close()
        raise
    listener.setblocking(False)  # noqa: FBT003 - its only argument
    return listener


@contextmanager
def closing(sockets: Sequence[socket.socket]) -> Iterator[None]:
    """Close the sockets at the end, whoever has closed them before."""
    try:
        yield
    finally:
        for each in sockets:
            with suppress(OSError):
                each.close()
