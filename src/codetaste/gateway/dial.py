"""A connection without TLS, made and spoken on with as few steps as it takes: each of them delays a program.

What makes HTTP of it is ``httpcore2``; ``line.py`` says when a connection is made.
"""

from __future__ import annotations

import ipaddress
import os
import socket
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import anyio
import httpcore2
from anyio.abc import SocketStream

if TYPE_CHECKING:
    from collections.abc import Iterator


async def dial(host: str, port: int, timeout_s: float) -> Dialled:
    """Connect to ``host``, a name or an address, within ``timeout_s`` seconds.

    Raises:
        ConnectError: it cannot be reached; ConnectTimeout: not within that time (httpcore2's).
    """
    with _told(httpcore2.ConnectError, httpcore2.ConnectTimeout), anyio.fail_after(timeout_s):
        address = _address(host)
        if address is None:
            return Dialled(await anyio.connect_tcp(host, port))
        return Dialled(await _connected(address, port))


class Dialled(httpcore2.AsyncNetworkStream):
    """A connection for one request. Its head waits for the body's first bytes, to go out with them."""

    def __init__(self, stream: SocketStream) -> None:
        self._stream = stream
        self._head: bytes | None = None
        self._begun = False

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ASYNC109 - httpcore2's
        """Return what comes next; nothing at the end."""
        with _told(httpcore2.ReadError, httpcore2.ReadTimeout), anyio.fail_after(timeout):
            try:
                return await self._stream.receive(max_bytes)
            except anyio.EndOfStream:
                return b""

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ASYNC109 - httpcore2's
        """Send bytes, the first of them together with the next."""
        if not self._begun:
            self._begun, self._head = True, buffer
            return
        if self._head is not None:
            buffer, self._head = self._head + buffer, None
        with _told(httpcore2.WriteError, httpcore2.WriteTimeout), anyio.fail_after(timeout):
            await self._stream.send(buffer)

    async def aclose(self) -> None:
        """Close the connection."""
        await self._stream.aclose()

    def get_extra_info(self, info: str) -> Any:  # noqa: ANN401, ARG002 - httpcore2's
        """Return None: nothing is told of it."""
        return None


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


async def _connected(address: ipaddress.IPv4Address | ipaddress.IPv6Address, port: int) -> SocketStream:
    """Connect to an address: half the time that it takes where there may be several to choose from."""
    family = socket.AF_INET if address.version == 4 else socket.AF_INET6  # noqa: PLR2004 - its number
    raw = socket.socket(family, socket.SOCK_STREAM)
    try:
        raw.setblocking(False)  # noqa: FBT003 - its only argument
        raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        raw.connect_ex((str(address), port))
        await anyio.wait_writable(raw)
        _check(raw.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR))
        return await SocketStream.from_socket(raw)
    except BaseException:
        raw.close()
        raise


def _check(error: int) -> None:
    if error:
        raise OSError(error, os.strerror(error))


@contextmanager
def _told(failed: type[Exception], late: type[Exception]) -> Iterator[None]:
    try:
        yield
    except TimeoutError as error:
        raise late(str(error)) from error
    except (OSError, anyio.BrokenResourceError, anyio.ClosedResourceError) as error:
        raise failed(str(error)) from error
