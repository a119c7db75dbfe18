"""The server name in a TLS client hello, read from the first bytes of a connection (RFC 8446, RFC 6066)."""

from __future__ import annotations

_HANDSHAKE, _CLIENT_HELLO = 22, 1
_RECORD_HEADER, _MESSAGE_HEADER = 5, 4
_VERSION_AND_RANDOM = 34
_SERVER_NAME, _HOST_NAME = 0, 0
MAX_HELLO_BYTES = 64 * 1024
"""A longer client hello is rejected."""


class NotTls(ValueError):
    """The bytes do not begin a TLS connection."""


def parse_server_name(data: bytes) -> str | None:
    """Return the server name of the hello, "" if it has none; None while the hello is incomplete.

    Raises:
        NotTls: the bytes are not a client hello.
    """
    message = b""
    at = 0
    while len(data) - at >= _RECORD_HEADER:
        size = int.from_bytes(data[at + 3 : at + 5], "big")
        if data[at] != _HANDSHAKE or data[at + 1] != 3 or not size:  # noqa: PLR2004 (TLS is version 3.x)
            raise NotTls("not a handshake")
        message += data[at + _RECORD_HEADER : at + _RECORD_HEADER + size]
        at += _RECORD_HEADER + size
        if message[0:1] not in {b"", bytes([_CLIENT_HELLO])}:
            raise NotTls("not a client hello")
        if len(message) >= _MESSAGE_HEADER:
            length = int.from_bytes(message[1:4], "big")
            if length > MAX_HELLO_BYTES:
                raise NotTls("the client hello is too long")
            if len(message) >= _MESSAGE_HEADER + length:
                return _parse_hello(_Reader(message[_MESSAGE_HEADER : _MESSAGE_HEADER + length]))
    if data[:1] not in {b"", bytes([_HANDSHAKE])} or len(data) > MAX_HELLO_BYTES:
        raise NotTls("not a handshake")
    return None


class _Reader:
    """Takes length-prefixed fields from the front of a message."""

    def __init__(self, data: bytes) -> None:
        self.data = data

    def take(self, size: int) -> bytes:
        if len(self.data) < size:
            raise NotTls("the client hello is truncated")
        taken, self.data = self.data[:size], self.data[size:]
        return taken

    def number(self, size: int) -> int:
        return int.from_bytes(self.take(size), "big")

    def vector(self, length_bytes: int) -> _Reader:
        return _Reader(self.take(self.number(length_bytes)))


def _parse_hello(hello: _Reader) -> str:
    hello.take(_VERSION_AND_RANDOM)
    for length_bytes in (1, 2, 1):  # session, ciphers, compressions
        hello.vector(length_bytes)
    extensions = hello.vector(2) if hello.data else hello
    while extensions.data:
        kind, content = extensions.number(2), extensions.vector(2)
        if kind == _SERVER_NAME:
            names = content.vector(2)
            if names.number(1) != _HOST_NAME:
                raise NotTls("the server name extension has no host name")
            try:
                return names.vector(2).data.decode("ascii").lower()
            except UnicodeDecodeError:
                raise NotTls("the server name is not ASCII") from None
    return ""
