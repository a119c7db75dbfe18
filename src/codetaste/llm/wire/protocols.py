"""The server side of each protocol in one table; the client side is ``ClientCodec``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from codetaste.llm.wire.anthropic import client as anthropic
from codetaste.llm.wire.anthropic import server as anthropic_reply
from codetaste.llm.wire.anthropic import server as anthropic_request
from codetaste.llm.wire.anthropic import stream as anthropic_stream
from codetaste.llm.wire.common import openai as openai_errors
from codetaste.llm.wire.openai_chat import client as openai_chat
from codetaste.llm.wire.openai_chat import server as openai_chat_reply
from codetaste.llm.wire.openai_chat import server as openai_chat_request
from codetaste.llm.wire.openai_chat import stream as openai_chat_stream
from codetaste.llm.wire.openai_responses import client as openai_responses
from codetaste.llm.wire.openai_responses import server as openai_responses_reply
from codetaste.llm.wire.openai_responses import server as openai_responses_request
from codetaste.llm.wire.openai_responses import stream as openai_responses_stream
from codetaste.llm.wire.usage_tap import UsageTap

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from codetaste.errors import ModelError
    from codetaste.llm.messages import Reply
    from codetaste.llm.wire.common.request import ProtocolName, WireRequest
    from codetaste.llm.wire.usage_tap import UsageStreamDecoder


@dataclass(frozen=True, slots=True)
class ServerCodec:
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
    request_id_header: str
    _stream_decoder: Callable[[str], UsageStreamDecoder]
    _whole_reply: Callable[[Any, str], Reply]

    def usage_tap(self, *, streamed: bool, request_id: str = "") -> UsageTap:
        """Return the tap for a forwarded response with status 200.

        Args:
            streamed: whether the response is an event stream, as its content type says.
            request_id: the provider's id of the request.
        """

        def whole_reply(body: object) -> Reply:
            return self._whole_reply(body, request_id)

        return UsageTap(self._stream_decoder(request_id) if streamed else None, whole_reply)


SERVER_CODECS: dict[ProtocolName, ServerCodec] = {
    "anthropic": ServerCodec(
        read_request=anthropic_request.read_request,
        write_reply=anthropic_reply.write_reply,
        stream_reply=anthropic_reply.stream_reply,
        error_from=anthropic.error_from,
        ping=anthropic_reply.PING,
        request_id_header=anthropic_reply.REQUEST_ID_HEADER,
        _stream_decoder=anthropic_stream.AnthropicStreamDecoder,
        _whole_reply=anthropic.whole_reply,
    ),
    "openai": ServerCodec(
        read_request=openai_responses_request.read_request,
        write_reply=openai_responses_reply.write_reply,
        stream_reply=openai_responses_reply.stream_reply,
        error_from=openai_errors.error_from,
        ping=openai_responses_reply.PING,
        request_id_header=openai_responses_reply.REQUEST_ID_HEADER,
        _stream_decoder=openai_responses_stream.ResponsesStreamDecoder,
        _whole_reply=openai_responses.whole_reply,
    ),
    "openai-chat": ServerCodec(
        read_request=openai_chat_request.read_request,
        write_reply=openai_chat_reply.write_reply,
        stream_reply=openai_chat_reply.stream_reply,
        error_from=openai_errors.error_from,
        ping=openai_chat_reply.PING,
        request_id_header=openai_chat_reply.REQUEST_ID_HEADER,
        _stream_decoder=openai_chat_stream.ChatStreamDecoder,
        _whole_reply=openai_chat.whole_reply,
    ),
}
"""By protocol."""
