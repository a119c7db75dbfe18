"""Parse and format server-sent events, without any network.

The parser yields only the data of events, since every protocol repeats the event type there. An event that is
cut off at the end of the stream is dropped.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Literal

from codetaste.errors import MalformedReply

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

MAX_REPLY_BYTES = 128 * 1024 * 1024
"""Limit of the bytes of one reply, far above any real one."""

_PIECE = 256
"""Characters per piece of a text in an encoded stream."""
_LINE_END = re.compile(rb"\r\n|\r|\n")
_BOM = b"\xef\xbb\xbf"
_FIELD = re.compile(rb"(data|event|id|retry)?:")
_LONGEST_FIELD, _TELLING = len("retry:"), 1024
EVENT_STREAM, JSON_BODY = "text/event-stream", "application/json"
BodyForm = Literal["stream", "json", "other"]


def form_of(beginning: bytes, content_type: str, *, ended: bool = False) -> BodyForm | None:
    """Return what a body is, by its first bytes; None if more of them are needed.

    Servers and proxies give any content type; it counts only if the bytes do not tell.
    """
    start = beginning[:_TELLING].removeprefix(_BOM).lstrip()
    if start.startswith((b"{", b"[")):
        return "json"
    if _FIELD.match(start):
        return "stream"
    if start.startswith(b"<"):
        return "other"
    if len(start) < _LONGEST_FIELD and len(beginning) < _TELLING and not ended:
        return None
    return "stream" if content_type == EVENT_STREAM else "json" if content_type == JSON_BODY else "other"


class SseParser:
    """Incremental parser; takes a body in chunks of any size."""

    def __init__(self, *, max_bytes: int = MAX_REPLY_BYTES) -> None:
        self._left = max_bytes
        self._line: list[bytes] = []
        self._data: list[str] = []
        self._after_cr = False
        self._first = True

    def feed(self, chunk: bytes) -> Iterator[str]:
        """Yield the data of each event that ends in ``chunk``; exhaust the iterator.

        Raises:
            MalformedReply: the stream is not UTF-8, or is too long.
        """
        self._left -= len(chunk)
        if self._left < 0:
            raise MalformedReply("the reply does not come to an end; it was not read further")
        for line in self._lines(chunk):
            if (data := self._take(line)) is not None:
                yield data

    def _lines(self, chunk: bytes) -> Iterator[bytes]:
        """Yield the lines that end in ``chunk``; only new bytes are searched."""
        if not chunk:
            return
        start = 1 if self._after_cr and chunk.startswith(b"\n") else 0
        self._after_cr = chunk.endswith(b"\r")
        for end in _LINE_END.finditer(chunk, start):
            self._line.append(chunk[start : end.start()])
            yield b"".join(self._line)
            self._line.clear()
            start = end.end()
        if start < len(chunk):
            self._line.append(chunk[start:])

    def _take(self, line: bytes) -> str | None:
        try:
            text = line.decode()
        except UnicodeDecodeError as error:
            raise MalformedReply("the reply is not UTF-8") from error
        if self._first:
            self._first, text = False, text.removeprefix("\ufeff")
        if text:
            field, _, value = text.partition(":")
            if field == "data":
                self._data.append(value.removeprefix(" "))
            return None
        data = "\n".join(self._data)
        self._data.clear()
        return data or None


def format_event(data: Mapping[str, Any], *, name: str = "") -> bytes:
    """Return one event as bytes, with an event name if its protocol has one.

    A lone surrogate, which some JSON parsers refuse, becomes a question mark.
    """
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {json.dumps(data, ensure_ascii=False)}\n\n".encode("utf-8", "replace")


def split_text(text: str) -> Iterator[str]:
    """Split a text into pieces as a model would stream it; an empty text has none."""
    return (text[start : start + _PIECE] for start in range(0, len(text), _PIECE))
