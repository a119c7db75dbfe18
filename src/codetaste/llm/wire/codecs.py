"""The encodings of each protocol in ``protocols.py``, client and server side, without any network."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from codetaste.llm.wire.anthropic import client as anthropic_client
from codetaste.llm.wire.anthropic import server as anthropic_server
from codetaste.llm.wire.anthropic.stream import AnthropicStreamDecoder
from codetaste.llm.wire.openai_chat import client as chat_client
from codetaste.llm.wire.openai_chat import server as chat_server
from codetaste.llm.wire.openai_chat.stream import ChatStreamDecoder
from codetaste.llm.wire.openai_responses import client as responses_client
from codetaste.llm.wire.openai_responses import server as responses_server
from codetaste.llm.wire.openai_responses.stream import ResponsesStreamDecoder
from codetaste.llm.wire.protocols import ANTHROPIC, OPENAI_CHAT, OPENAI_RESPONSES

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
    from datetime import datetime

    from codetaste.errors import ModelError
    from codetaste.llm.messages import Reply, Request
    from codetaste.llm.wire.common.error_codes import ErrorCode, ErrorKind
    from codetaste.llm.wire.common.request import WireRequest
    from codetaste.llm.wire.common.stream import StreamDecoder


class ClientCodec(Protocol):
    """What the ``client`` module of a protocol has."""

    def key_headers(self, key: str) -> dict[str, str]:
        """Return the headers with an API key, "" for none."""
        ...

    def request_headers(self, request: Request) -> dict[str, str]:
        """Return additional headers for a request."""
        ...

    def request_body(self, request: Request, model: str, caps: Sequence[str]) -> dict[str, Any]:
        """Encode a request to the model of this name, with the cap by these names."""
        ...

    def whole_reply(self, body: object, request_id: str = "", *, taken: Collection[str] = ()) -> Reply:
        """Decode a reply that was not streamed; a call with a ``taken`` id, or none, gets a new one.

        Raises:
            ModelError: the response is an error or malformed.
        """
        ...

    def error_from(
        self, status: int, body: object, headers: Mapping[str, str], *, now: datetime | None = None
    ) -> ModelError:
        """Return the error for a response with an error status.

        Args:
            status: the HTTP status.
            body: parsed JSON, or text.
            headers: of the response, names in lower case.
            now: the current time, for a Retry-After that is a date.
        """
        ...


class ServerCodec(Protocol):
    """What the ``server`` module of a protocol has; ``ERROR_CODES`` are status and words of each error."""

    ERROR_CODES: dict[ErrorKind, ErrorCode]

    def read_request(self, body: Any) -> WireRequest:  # noqa: ANN401 - JSON data
        """Decode a client's request from its parsed body.

        Raises:
            MalformedRequest: it is malformed; the message has one line.
        """
        ...

    def capped_body(self, wire: WireRequest, cap: int, caps: Sequence[str]) -> dict[str, Any]:
        """Return a client's body with the cap by these names."""
        ...

    def write_reply(self, reply: Reply, wire: WireRequest, *, name: str) -> dict[str, Any]:
        """Encode a reply that is not streamed; ``name`` is its id: letters, digits and dashes."""
        ...

    def reply_messages(self, whole: dict[str, Any]) -> list[Any]:
        """Return a reply that ``write_reply`` encoded as messages of a later request."""
        ...

    def stream_reply(self, reply: Reply, wire: WireRequest, *, name: str) -> Iterator[bytes]:
        """Encode a reply as events; arguments as ``write_reply``."""
        ...

    def error_body(self, error: ErrorCode, message: str) -> dict[str, Any]:
        """Encode an error and its message."""
        ...

    def error_events(self, error: ErrorCode, message: str) -> bytes:
        """Encode an error as the last events of a stream."""
        ...


CLIENTS: dict[str, ClientCodec] = {
    ANTHROPIC.name: anthropic_client,
    OPENAI_RESPONSES.name: responses_client,
    OPENAI_CHAT.name: chat_client,
}

STREAM_DECODERS: dict[str, Callable[..., StreamDecoder]] = {
    ANTHROPIC.name: AnthropicStreamDecoder,
    OPENAI_RESPONSES.name: ResponsesStreamDecoder,
    OPENAI_CHAT.name: ChatStreamDecoder,
}

SERVERS: dict[str, ServerCodec] = {
    ANTHROPIC.name: anthropic_server,
    OPENAI_RESPONSES.name: responses_server,
    OPENAI_CHAT.name: chat_server,
}
