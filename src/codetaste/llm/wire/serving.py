"""What a server of each protocol says and understands, side by side: the other end of a ``Dialect``."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
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
    """How one protocol is served, from ``wire/``.

    Attributes:
        read_request: reads a request's parsed body.
        write_reply: writes a reply in one piece: ``(reply, wire, name=…)``.
        stream_reply: writes a reply as events; arguments as ``write_reply``.
        error_from: turns a status that is no success, its parsed body and its headers into an error.
        ping: says between two events that the connection is alive.
        request_id: the header with the name of a request.
    """

    read_request: Callable[[Any], WireRequest]
    write_reply: Callable[..., dict[str, Any]]
    stream_reply: Callable[..., Iterator[bytes]]
    error_from: Callable[[int, Any, Mapping[str, str]], ModelError]
    ping: bytes
    request_id: str
    _assembly: Callable[[str], Assembly]
    _whole: Callable[[Any, str], Reply]

    def tap(self, *, streamed: bool, request_id: str = "") -> Tap:
        """Return what listens to a relayed answer with status 200.

        Args:
            streamed: whether the answer is an event stream; its content type says so.
            request_id: the provider's name for the request.
        """
        return Tap(
            self._assembly(request_id) if streamed else None,
            partial(_in_one_piece, self._whole, request_id),
        )


def _in_one_piece(whole: Callable[[Any, str], Reply], request_id: str, body: object) -> Reply:
    return whole(body, request_id)


SERVING: dict[Protocol, Serving] = {
    "anthropic": Serving(
        read_request=anthropic_request.read_request,
        write_reply=anthropic_reply.write_reply,
        stream_reply=anthropic_reply.stream_reply,
        error_from=anthropic.error_from,
        ping=anthropic_reply.PING,
        request_id=anthropic_reply.REQUEST_ID,
        _assembly=anthropic_stream.Assembly,
        _whole=anthropic.whole_reply,
    ),
    "openai": Serving(
        read_request=openai_responses_request.read_request,
        write_reply=openai_responses_reply.write_reply,
        stream_reply=openai_responses_reply.stream_reply,
        error_from=openai_errors.error_from,
        ping=openai_responses_reply.PING,
        request_id=openai_responses_reply.REQUEST_ID,
        _assembly=openai_responses_stream.Assembly,
        _whole=openai_responses.whole_reply,
    ),
    "openai-chat": Serving(
        read_request=openai_chat_request.read_request,
        write_reply=openai_chat_reply.write_reply,
        stream_reply=openai_chat_reply.stream_reply,
        error_from=openai_errors.error_from,
        ping=openai_chat_reply.PING,
        request_id=openai_chat_reply.REQUEST_ID,
        _assembly=openai_chat_stream.Assembly,
        _whole=openai_chat.whole_reply,
    ),
}
"""By protocol."""
