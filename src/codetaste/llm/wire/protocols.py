"""The table of protocols: everything that is known of one, from its addresses to its error words."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import urlsplit

from codetaste.llm.wire.anthropic import client as anthropic
from codetaste.llm.wire.anthropic import server as anthropic_server
from codetaste.llm.wire.anthropic.stream import AnthropicStreamDecoder
from codetaste.llm.wire.common import openai
from codetaste.llm.wire.openai_chat import client as chat
from codetaste.llm.wire.openai_chat import server as chat_server
from codetaste.llm.wire.openai_chat.stream import ChatStreamDecoder
from codetaste.llm.wire.openai_responses import client as responses
from codetaste.llm.wire.openai_responses import server as responses_server
from codetaste.llm.wire.openai_responses.stream import ResponsesStreamDecoder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from codetaste.errors import ModelError
    from codetaste.llm.messages import Reply, Request, Usage
    from codetaste.llm.wire.common.error_codes import ErrorCode, ErrorKind
    from codetaste.llm.wire.common.request import ProtocolName, WireRequest


class StreamDecoder(Protocol):
    """Decodes a streamed reply."""

    @property
    def complete(self) -> bool:
        """Whether the reply is complete."""
        ...

    @property
    def usage(self) -> Usage | None:
        """The usage that the provider has reported so far."""
        ...

    def feed(self, data: str) -> None:
        """Take the data of one event."""
        ...

    def reply(self) -> Reply:
        """Return the complete reply, or raise the reason why there is none."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class WireProtocol:
    """One protocol, without any network.

    Attributes:
        name: the provider's name in a config, and the protocol's in ``agent.toml``.
        base_url: the provider's usual address.
        path: of requests, below the base URL.
        key_variable: the environment variable that usually has the API key.
        needs_key: whether servers at other addresses need a key too.
        key_headers: returns the headers with an API key, "" for none.
        default_headers: headers of a client's request that has none of that name.
        request_id_header: the header with the id of a request.
        messages_key: the key of the conversation in a request.
        system_key: the key of the system prompt, None if it is part of the conversation.
        cap_names: the names of the output cap.
        default_options: options of a request unless the config has them, by host.
        request_body: encodes a request to the model of this name, with the cap by these names.
        request_headers: additional headers for a request.
        stream_decoder: returns the decoder of a streamed reply, given the provider's request id.
        whole_reply: decodes a reply that was not streamed, given its parsed body and the request id.
        error_from: turns an error status, its parsed body and its headers into an exception.
        read_request: decodes a client's request from its parsed body.
        capped_body: returns a client's body with the cap by these names.
        write_reply: encodes a reply that is not streamed: ``(reply, wire, name=…)``.
        stream_reply: encodes a reply as events; arguments as ``write_reply``.
        ping: a keep-alive event, valid between any two events.
        error_codes: status and words of each error.
        error_body: encodes an error and its message.
        error_events: encodes an error as the last events of a stream.
    """

    name: ProtocolName
    base_url: str
    path: str
    key_variable: str
    needs_key: bool = True
    key_headers: Callable[[str], dict[str, str]]
    default_headers: Mapping[str, str] = field(default_factory=dict)
    request_id_header: str
    messages_key: str
    system_key: str | None = None
    cap_names: tuple[str, ...]
    default_options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    request_body: Callable[[Request, str, Sequence[str]], dict[str, Any]]
    request_headers: Callable[[Request], Mapping[str, str]] = lambda _request: {}
    stream_decoder: Callable[..., StreamDecoder]
    whole_reply: Callable[..., Reply]
    error_from: Callable[[int, Any, Mapping[str, str]], ModelError]
    read_request: Callable[[Any], WireRequest]
    capped_body: Callable[[WireRequest, int, Sequence[str]], dict[str, Any]]
    write_reply: Callable[..., dict[str, Any]]
    stream_reply: Callable[..., Iterator[bytes]]
    ping: bytes
    error_codes: Mapping[ErrorKind, ErrorCode]
    error_body: Callable[[ErrorCode, str], dict[str, Any]]
    error_events: Callable[[ErrorCode, str], bytes]

    @property
    def route(self) -> str:
        """The path of requests below the provider's host."""
        return urlsplit(self.base_url).path + self.path

    def caps_at(self, address: str) -> tuple[str, ...]:
        """Return the names of the cap for a server: all, unless it refuses the older one.

        A server ignores a name that it does not know, so all names are sent if the right one is unknown.
        """
        newest_only = (urlsplit(address).hostname or "").endswith(openai.NEWEST_CAP_ONLY)
        return self.cap_names[-1:] if newest_only else self.cap_names

    def options_at(self, address: str) -> Mapping[str, Any]:
        """Return the options of requests to a server unless the config has them."""
        return self.default_options.get(urlsplit(address).hostname or "", {})


_ANTHROPIC = WireProtocol(
    name="anthropic",
    base_url="https://api.anthropic.com",
    path="/v1/messages",
    key_variable="ANTHROPIC_API_KEY",
    key_headers=anthropic.key_headers,
    default_headers=anthropic.DEFAULT_HEADERS,
    request_id_header="request-id",
    messages_key="messages",
    system_key="system",
    cap_names=anthropic.CAP_NAMES,
    request_body=anthropic.request_body,
    request_headers=anthropic.request_headers,
    stream_decoder=AnthropicStreamDecoder,
    whole_reply=anthropic.whole_reply,
    error_from=anthropic.error_from,
    read_request=anthropic_server.read_request,
    capped_body=anthropic_server.capped_body,
    write_reply=anthropic_server.write_reply,
    stream_reply=anthropic_server.stream_reply,
    ping=anthropic_server.PING,
    error_codes=anthropic_server.ERROR_CODES,
    error_body=anthropic_server.error_body,
    error_events=anthropic_server.error_events,
)

_OPENAI_RESPONSES = WireProtocol(
    name="openai",
    base_url=openai.BASE_URL,
    path="/responses",
    key_variable=openai.KEY_VARIABLE,
    key_headers=openai.key_headers,
    request_id_header=openai.REQUEST_ID_HEADER,
    messages_key="input",
    system_key="instructions",
    cap_names=responses.CAP_NAMES,
    default_options=openai.DEFAULT_OPTIONS,
    request_body=responses.request_body,
    stream_decoder=ResponsesStreamDecoder,
    whole_reply=responses.whole_reply,
    error_from=openai.error_from,
    read_request=responses_server.read_request,
    capped_body=responses_server.capped_body,
    write_reply=responses_server.write_reply,
    stream_reply=responses_server.stream_reply,
    ping=openai.PING,
    error_codes=responses_server.ERROR_CODES,
    error_body=openai.error_body,
    error_events=responses_server.error_events,
)

_OPENAI_CHAT = WireProtocol(
    name=chat.PROTOCOL,
    base_url=openai.BASE_URL,
    path="/chat/completions",
    key_variable=openai.KEY_VARIABLE,
    needs_key=False,
    key_headers=openai.key_headers,
    request_id_header=openai.REQUEST_ID_HEADER,
    messages_key="messages",
    cap_names=chat.CAP_NAMES,
    default_options=openai.DEFAULT_OPTIONS,
    request_body=chat.request_body,
    stream_decoder=ChatStreamDecoder,
    whole_reply=chat.whole_reply,
    error_from=openai.error_from,
    read_request=chat_server.read_request,
    capped_body=chat_server.capped_body,
    write_reply=chat_server.write_reply,
    stream_reply=chat_server.stream_reply,
    ping=openai.PING,
    error_codes=openai.ERROR_CODES,
    error_body=openai.error_body,
    error_events=chat_server.error_events,
)

PROTOCOLS: dict[str, WireProtocol] = {
    protocol.name: protocol for protocol in (_ANTHROPIC, _OPENAI_RESPONSES, _OPENAI_CHAT)
}
"""By name."""
