"""Decode a response with status 200 as it arrives: an event stream, or one JSON message.

The gateway forwards the same bytes without waiting for it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from codetaste.core.text import one_line
from codetaste.errors import MalformedReply, ModelError
from codetaste.llm.wire.codecs import CLIENTS, STREAM_DECODERS
from codetaste.llm.wire.common.http import read_json, text_of_error
from codetaste.llm.wire.common.sse import MAX_REPLY_BYTES, SseParser, form_of
from codetaste.llm.wire.common.stream import TRAILING_S

if TYPE_CHECKING:
    from collections.abc import Collection

    from codetaste.llm.messages import Reply, Usage
    from codetaste.llm.wire.common.sse import BodyForm
    from codetaste.llm.wire.protocols import ProtocolName

_EXCERPT_BYTES = 4096
"""What is read of a body that is no reply."""


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
    """Takes the bytes of one response, in chunks of any size; never raises.

    Args:
        protocol: of the response.
        content_type: what its header says; counts only if the first bytes do not tell what it is.
        request_id: the provider's id of the request.
        taken: ids of earlier tool calls.

    Attributes:
        form: what the body is, None until its first bytes tell.
        body: what has arrived of a body that is not an event stream.
    """

    def __init__(
        self,
        protocol: ProtocolName,
        *,
        content_type: str = "",
        request_id: str = "",
        taken: Collection[str] = (),
    ) -> None:
        self._protocol, self._request_id, self._taken = protocol, request_id, taken
        self._kind = content_type.partition(";")[0].strip().lower()
        self._decoder = STREAM_DECODERS[protocol](request_id, taken=taken)
        self._events = SseParser()
        self.form: BodyForm | None = None
        self.body = bytearray()
        self._reply: Reply | None = None
        self._error: ModelError | None = None

    @property
    def complete(self) -> bool:
        """Whether the rest of the response is irrelevant: the reply is complete, or an error occurred."""
        return self._decoder.complete or self._reply is not None or self._error is not None

    @property
    def patience_s(self) -> float:
        """How long to wait for more of the response; infinite as long as the reply is not whole."""
        return TRAILING_S if self.complete else self._decoder.patience_s

    def feed(self, chunk: bytes) -> None:
        """Take the next bytes."""
        if self.complete:
            return
        try:
            if self.form != "stream":
                self.body += chunk
            if self.form is None:
                chunk = bytes(self.body)
                self.form = form_of(chunk, self._kind)
            if self.form == "stream":
                for data in self._events.feed(chunk):
                    if not self._decoder.complete:
                        self._decoder.feed(data)
            elif self.form == "other" and len(self.body) > _EXCERPT_BYTES:
                self._decode_body()
            elif len(self.body) > MAX_REPLY_BYTES:
                raise MalformedReply(f"the reply has more than {MAX_REPLY_BYTES:,} bytes; reading stopped")
        except ModelError as error:
            # Whatever follows a whole reply, the reply is valid.
            self._decoder.complete = self._decoder.has_ended
            self._error = None if self._decoder.has_ended else error

    def result(self) -> TapResult:
        """Return the result, after the last byte or an interruption."""
        if self._reply is None and self._error is None:
            self.form = self.form or form_of(bytes(self.body), self._kind, ended=True)
            try:
                reply = self._decoder.reply() if self.form == "stream" else self._decode_body()
                # No reply has no tokens: a count of zero means that nothing was counted.
                uncounted = reply.usage is not None and not reply.usage.output and reply.message.raw
                self._reply = replace(reply, usage=None) if uncounted else reply
            except ModelError as error:
                self._error = error
        counted = self._decoder.usage
        usage = counted if self._reply is None or self._reply.usage is None else self._reply.usage
        return TapResult(self._reply, usage, self._error)

    def _decode_body(self) -> Reply:
        if self.form == "other":
            shown = one_line(text_of_error(self.body[:_EXCERPT_BYTES].decode("utf-8", "replace")))
            raise MalformedReply(f"not a reply but {self._kind or 'an unknown content type'}: {shown}")
        try:
            text = self.body.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise MalformedReply("the reply is not UTF-8") from error
        client = CLIENTS[self._protocol]
        return client.whole_reply(read_json(text), self._request_id, taken=self._taken)
