"""The server side of each protocol in one table; the client side is ``ClientCodec``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from codetaste.llm.wire import (
    anthropic,
    anthropic_reply,
    anthropic_request,
    anthropic_stream,
    openai_chat,
    openai_chat_reply,
    openai_chat_request,
    openai_chat_stream,
    openai_errors,
    openai_responses,
    openai_responses_reply,
    openai_responses_request,
    openai_responses_stream,
)
from codetaste.llm.wire.tap import Tap

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from codetaste.errors import ModelError
    from codetaste.llm.messages import Reply
    from codetaste.llm.wire.request import Protocol, WireRequest
    from codetaste.llm.wire.tap import Assembly


@dataclass(frozen=True, slots=True)
class Serving:
    """The server side of one protocol.

    Attributes:
        read_request: decodes a request's parsed body.
        write_reply: encodes a reply that is not streamed: ``(reply, wire, name=…)``.
        stream_reply: encodes a reply as events; arguments as ``write_reply``.
        error_from: turns an error status, its parsed body and its headers into an exception.
        ping: a keep-alive event, valid between any two events.
        request_id_header: the header with the id of a request.
    """

    read_request: Callable[[Any], WireRequest]
    write_reply: Callable[..., dict[str, Any]]
    stream_reply: Callable[..., Iterator[bytes]]
    error_from: Callable[[int, Any, Mapping[str, str]], ModelError]
    ping: bytes
    request_id: str
    _stream_decoder: Callable[[str], Assembly]
    _whole_reply: Callable[[Any, str], Reply]

    def tap(self, *, streamed: bool, request_id: str = "") -> Tap:
        """Return the tap for a forwarded response with status 200.

        Args:
            streamed: whether the response is an event stream, as its content type says.
            request_id: the provider's id of the request.
        """

        def whole_reply(body: object) -> Reply:
            return self._whole_reply(body, request_id)

        return Tap(self._stream_decoder(request_id) if streamed else None, whole_reply)


SERVING: dict[Protocol, Serving] = {
    "anthropic": Serving(
        read_request=anthropic_request.read_request,
        write_reply=anthropic_reply.write_reply,
        stream_reply=anthropic_reply.stream_reply,
        error_from=anthropic.error_from,
        ping=anthropic_reply.PING,
        request_id=anthropic_reply.REQUEST_ID,
        _stream_decoder=anthropic_stream.Assembly,
        _whole_reply=anthropic.whole_reply,
    ),
    "openai": Serving(
        read_request=openai_responses_request.read_request,
        write_reply=openai_responses_reply.write_reply,
        stream_reply=openai_responses_reply.stream_reply,
        error_from=openai_errors.error_from,
        ping=openai_responses_reply.PING,
        request_id=openai_responses_reply.REQUEST_ID,
        _stream_decoder=openai_responses_stream.Assembly,
        _whole_reply=openai_responses.whole_reply,
    ),
    "openai-chat": Serving(
        read_request=openai_chat_request.read_request,
        write_reply=openai_chat_reply.write_reply,
        stream_reply=openai_chat_reply.stream_reply,
        error_from=openai_errors.error_from,
        ping=openai_chat_reply.PING,
        request_id=openai_chat_reply.REQUEST_ID,
        _stream_decoder=openai_chat_stream.Assembly,
        _whole_reply=openai_chat.whole_reply,
    ),
}
"""By protocol."""
