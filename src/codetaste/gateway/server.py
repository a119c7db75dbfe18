"""What speaks HTTP for the gateway: uvicorn on a Unix socket, and on the loopback where that is wanted.

It runs within a task group of ours, takes no signals, logs nothing, and is bounded in what strangers may
hold: connections, headers, and how long a connection may say nothing.
"""

from __future__ import annotations

import os
import socket
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
_SILENT_S = 60.0
"""How long a connection may be open before its first request has come whole."""
_KEPT_S = 120.0
"""How long a connection is kept between two requests: longer than any of the programs keeps one."""
_HEADER_BYTES = 64 * 1024
_BACKLOG = 1024
_STOPPING_S = 5


class _Server(uvicorn.Server):
    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals to those whose process this is."""
        yield


class _Connection(H11Protocol):
    """One connection; it is closed where there are too many, or when no request comes."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if len(self.connections) > _CONNECTIONS:
            transport.close()
            return
        self.timeout_keep_alive_task = self.loop.call_later(_SILENT_S, self._close_if_silent)

    def data_received(self, data: bytes) -> None:
        """Take what came; a request that is begun must not take for ever either."""
        if self.cycle is not None:
            super().data_received(data)
            return
        timer, self.timeout_keep_alive_task = self.timeout_keep_alive_task, None
        super().data_received(data)
        if self.cycle is None and self.timeout_keep_alive_task is None:
            self.timeout_keep_alive_task = timer
        elif timer is not None:
            timer.cancel()

    def _close_if_silent(self) -> None:
        if self.cycle is None and not self.transport.is_closing():
            self.transport.close()


@asynccontextmanager
async def serving(app: App, sockets: Sequence[socket.socket]) -> AsyncIterator[None]:
    """Serve ``app`` on ``sockets``, which are closed at the end; that takes seconds at most."""
    config = uvicorn.Config(
        _as_asgi(app),
        http=_Connection,
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
