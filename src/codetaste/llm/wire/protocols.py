"""The table of protocols: all that is known of one except its encodings, which ``codecs.py`` has."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Mapping

ProtocolName = Literal["anthropic", "openai", "openai-chat"]

_NEWEST_CAP_ONLY = (".openai.com", ".azure.com")
"""Hosts that accept only the newer name of the output cap, and refuse a request with both names."""

_OLDEST_CAP_ONLY = ".mistral.ai"
"""Hosts that accept only the older name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WireProtocol:
    """One protocol.

    Attributes:
        name: the provider's name in a config, and the protocol's in ``agent.toml``.
        base_url: the provider's usual address.
        path: of requests, below the base URL.
        key_variable: the environment variable that usually has the API key.
        needs_key: whether servers at other addresses need a key too.
        default_headers: headers of a client's request that has none of that name.
        request_id_header: the header with the id of a request.
        messages_key: the key of the conversation in a request.
        system_key: the key of the system prompt, None if it is part of the conversation.
        has_template: whether a template of the server's model makes the prompt of the messages.
        cap_names: the names of the output cap, the oldest one first.
        default_options: options of a request unless the config has them, by host.
    """

    name: ProtocolName
    base_url: str
    path: str
    key_variable: str
    needs_key: bool = True
    default_headers: Mapping[str, str] = field(default_factory=dict)
    request_id_header: str
    messages_key: str
    system_key: str | None
    has_template: bool = False
    cap_names: tuple[str, ...]
    default_options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @property
    def route(self) -> str:
        """The path of requests below the provider's host."""
        return urlsplit(self.base_url).path + self.path

    def caps_at(self, address: str) -> tuple[str, ...]:
        """Return the names of the cap for a server: all, unless it refuses one.

        A server ignores a name that it does not know, so all names are sent if the right one is unknown.
        """
        host = urlsplit(address).hostname or ""
        if host.endswith(_NEWEST_CAP_ONLY):
            return self.cap_names[-1:]
        return self.cap_names[:1] if host.endswith(_OLDEST_CAP_ONLY) else self.cap_names

    def options_at(self, address: str) -> Mapping[str, Any]:
        """Return the options of requests to a server unless the config has them."""
        return self.default_options.get(urlsplit(address).hostname or "", {})


ANTHROPIC = WireProtocol(
    name="anthropic",
    base_url="https://api.anthropic.com",
    path="/v1/messages",
    key_variable="ANTHROPIC_API_KEY",
    default_headers={"anthropic-version": "2023-06-01"},
    request_id_header="request-id",
    messages_key="messages",
    system_key="system",
    cap_names=("max_tokens",),
)

OPENAI_RESPONSES = WireProtocol(
    name="openai",
    base_url="https://api.openai.com/v1",
    path="/responses",
    key_variable="OPENAI_API_KEY",
    request_id_header="x-request-id",
    messages_key="input",
    system_key="instructions",
    cap_names=("max_output_tokens",),
    # Without it, a setting of the OpenAI project could make all calls more expensive than the price table.
    default_options={"api.openai.com": {"service_tier": "default"}},
)

OPENAI_CHAT = replace(
    OPENAI_RESPONSES,
    name="openai-chat",
    path="/chat/completions",
    needs_key=False,
    messages_key="messages",
    system_key=None,
    has_template=True,
    cap_names=("max_tokens", "max_completion_tokens"),
)

PROTOCOLS: dict[str, WireProtocol] = {
    protocol.name: protocol for protocol in (ANTHROPIC, OPENAI_RESPONSES, OPENAI_CHAT)
}
"""By name."""
