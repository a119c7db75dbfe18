"""Decode a forwarded response on the side, for its reply and usage, without delaying or changing it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from codetaste.errors import ModelError
from codetaste.llm.wire.codecs import CLIENTS, STREAM_DECODERS
from codetaste.llm.wire.common.http import read_json
from codetaste.llm.wire.common.sse import MAX_REPLY_BYTES, SseParser

if TYPE_CHECKING:
    from codetaste.llm.messages import Reply, Usage
    from codetaste.llm.wire.protocols import ProtocolName


@dataclass(frozen=True, slots=True)
class TapResult:
    """The decoded response.

    Attributes:
        reply: the reply with its final usage, None if it is incomplete.
        usage: the usage reported up to the end or the interruption; None if there was none.
        error: why there is no reply; ``unbilled`` if the provider certainly did not begin one.
    """

    reply: Reply | None
    usage: Usage | None
    error: ModelError | None

    @property
    def complete(self) -> bool:
        """Whether ``usage`` is final, so that the provider bills it."""
        return self.reply is not None and self.reply.usage is not None


class UsageTap:
    """Takes the bytes of one forwarded response with status 200, in chunks of any size; never raises.

    Args:
        protocol: of the response.
        streamed: whether the response is an event stream, as its content type says.
        request_id: the provider's id of the request.
    """

    def __init__(self, protocol: ProtocolName, *, streamed: bool, request_id: str = "") -> None:
        self._protocol, self._request_id = protocol, request_id
        self._decoder = STREAM_DECODERS[protocol](request_id) if streamed else None
        self._events = SseParser()
        self._body = bytearray()
        self._complete = False
        self._reply: Reply | None = None
        self._error: ModelError | None = None

    @property
    def streamed(self) -> bool:
        """Whether the response is an event stream."""
        return self._decoder is not None

    @property
    def complete(self) -> bool:
        """Whether the rest of the response is irrelevant: the reply is complete, or an error occurred."""
        return self._complete or self._reply is not None or self._error is not None

    def feed(self, chunk: bytes) -> None:
        """Take the next bytes."""
        if self.complete:
            return
        if self._decoder is None:
            # One byte above the limit is stored, so that a body that is too long fails to parse.
            self._body += chunk[: MAX_REPLY_BYTES + 1 - len(self._body)]
            return
        try:
            for data in self._events.feed(chunk):
                self._decoder.feed(data)
                if self._decoder.complete:
                    self._complete = True
                    return
        except ModelError as error:
            self._error = error

    def result(self) -> TapResult:
        """Return the result, after the last byte or an interruption."""
        if self._reply is None and self._error is None:
            try:
                if self._decoder is not None:
                    self._reply = self._decoder.reply()
                else:
                    body = read_json(self._body.decode("utf-8", "replace"))
                    self._reply = CLIENTS[self._protocol].whole_reply(body, self._request_id)
            except ModelError as error:
                self._error = error
        counted = None if self._decoder is None else self._decoder.usage
        usage = counted if self._reply is None or self._reply.usage is None else self._reply.usage
        return TapResult(self._reply, usage, self._error)
