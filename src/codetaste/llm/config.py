"""Schema of ``[[models]]``, the language models that the rest of the config refers to by id."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlsplit

from pydantic import AliasChoices, Field, field_validator, model_validator

from codetaste.core.section import FilePath, Section, toml_to_json
from codetaste.core.units import Seconds, Usd
from codetaste.llm.price import Price, cache_write_factor, fill_cache_write_price
from codetaste.llm.wire.protocols import PROTOCOLS, ProtocolName

if TYPE_CHECKING:
    from typing import Self

    from codetaste.llm.wire.protocols import WireProtocol


Provider = Literal[ProtocolName, "scripted", "replay"]

CassetteMode = Literal["record", "replay", "record-missing"]

PROMPT_OVERHEAD_TOKENS = 1024
"""Tokens that a provider may add to every prompt, such as its instructions for tool use."""

_RESERVED = {
    "model": "models[].model",
    "messages": "nothing: the agent fills it",
    "input": "nothing: the agent fills it",
    "system": "nothing: the prompt fills it",
    "instructions": "nothing: the prompt fills it",
    "stream": "nothing: replies are always streamed",
    "max_tokens": "models[].max_output_tokens",
    "max_output_tokens": "models[].max_output_tokens",
    "max_completion_tokens": "models[].max_output_tokens",
    "api_key": "models[].api_key_env",
    "headers": "models[].api_key_env",
    "extra_headers": "models[].api_key_env",
    "extra_body": "its contents as options of their own",
}

_LIST_OPTIONS = {"tools": dict, "betas": str, "include": str}
"""Options that extend a list in the request, and the type of their items."""


class ModelConfig(Section):
    """One model of a provider. It costs nothing until a flow uses it."""

    id: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$")
    """The id by which the rest of the file refers to it."""
    provider: Provider
    """The provider's protocol; "scripted" is a Python function, "replay" a recording."""
    model: str = Field(min_length=1)
    """The provider's name for it; for "scripted", "path/to/file.py:function" or "package.module:function"."""
    base_url: str | None = Field(default=None, pattern=r"^https?://[^\s]+$")
    """Another server that speaks the provider's protocol."""
    api_key_env: str | None = None
    """The environment variable that holds the API key; by default the provider's usual one."""
    max_concurrency: int = Field(default=16, ge=1, le=10_000)
    """The most requests in flight at once; fewer while the provider refuses some because of its load. Models
    with the same provider, address, key and name share one limit, the smallest of theirs."""
    rate_limit_timeout: Seconds = Field(
        default=600.0, validation_alias=AliasChoices("rate_limit_timeout", "rate_limit_patience")
    )
    """How long the provider may refuse everything (429, overloaded) before it is given up; no single wait is
    longer, whatever the provider asks for."""
    max_output_tokens: int | None = Field(default=None, ge=1)
    """Upper limit of the tokens of one reply; an agent may request fewer."""
    context_window: int | None = Field(default=None, ge=1024)
    """Tokens of prompt and reply together that the model can take, to which our own loop shortens its
    conversations; by default as the price table says, and else as the provider's refusals show."""
    timeout: Seconds = 1800.0
    """Time limit of one request, from sending it to the end of the reply."""
    read_timeout: Seconds = Field(default=300.0, validation_alias=AliasChoices("read_timeout", "silence"))
    """The longest time without any data from the provider; raise it for models that think silently."""
    prompt_overhead_tokens: int = Field(
        default=PROMPT_OVERHEAD_TOKENS, ge=PROMPT_OVERHEAD_TOKENS, le=10_000_000
    )
    """Tokens that the server may add to each prompt, such as a system prompt of its own."""
    strict: bool = False
    """One request at a time, whatever `max_concurrency` says: a reply that costs more than was reserved for
    it ends the model for the run, and then no other call is in flight."""
    options: dict[str, Any] = Field(default_factory=dict)
    """Sent to the provider unchanged: temperature, thinking, and so on. Some control the encoding:
    "anthropic" has `cache_control` and `betas`; "openai" takes `include = []` for models without reasoning;
    "openai-chat" has `output_cap`, the name of the cap that a server accepts (by default both names are
    sent), and `send_reasoning = false` and `stream_options = {}` for servers that refuse these."""
    allow: dict[str, Usd] = Field(default_factory=dict)
    """What requests may have that a budget refuses, by the name in the refusal, with the most
    US dollars that one request with it may cost besides its tokens. Each such request is charged as much."""
    price: Price | None = None
    """US dollars for a million tokens with these options; by default from the price table, if it certainly
    has the model at its usual address. A budget in dollars requires a price."""
    price_as: str | None = Field(default=None, pattern=r"^[a-z0-9_-]+/\S+$")
    """The entry of the price table to use, such as "anthropic/claude-sonnet-5-5", for a gateway, a proxy or a
    custom name that the table cannot know."""
    cassette: FilePath | None = None
    """Recorded conversations: a .jsonl file or a folder, relative to the config file."""
    mode: CassetteMode = "replay"
    """How the cassette is used; provider "replay" can only replay."""

    @model_validator(mode="before")
    @classmethod
    def _check_no_secret(cls, given: Any) -> Any:  # noqa: ANN401 - from a config
        # Reported for the table, not for the field: pydantic's error for a field shows its value, here a key.
        name = given.get("api_key_env") if isinstance(given, dict) else None
        if isinstance(name, str) and not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
            raise ValueError("api_key_env names an environment variable; never write a key into a config")
        address = given.get("base_url") if isinstance(given, dict) else None
        if isinstance(address, str) and re.search(r"//[^/@]*:[^/]*@", address):
            raise ValueError("base_url has a password in it; never write a key into a config")
        return given

    @field_validator("base_url")
    @classmethod
    def _check_base_url(cls, url: str | None) -> str | None:
        if url is None:
            return None
        try:
            parts = urlsplit(url)
            whole = bool(parts.hostname) and (parts.port or 0) >= 0 and url.isprintable()
        except ValueError:
            whole = False
        if not whole:
            raise ValueError("not the address of a server")
        if "?" in url or "#" in url:
            raise ValueError("must not contain ? or #, because the paths of the protocol are appended to it")
        return url

    @model_validator(mode="before")
    @classmethod
    def _fill_cache_write_price(cls, given: Any) -> Any:  # noqa: ANN401 - from a config
        """Providers cache prompts even if not requested, and a cache write may cost more than input."""
        if not isinstance(given, dict) or str(given.get("provider")) not in PROTOCOLS or "price" not in given:
            return given
        factor = cache_write_factor(given.get("options") or {})
        return {**given, "price": fill_cache_write_price(given["price"], factor)}

    @field_validator("options")
    @classmethod
    def _check_options(cls, options: dict[str, Any]) -> dict[str, Any]:
        for name, instead in _RESERVED.items():
            if name in options:
                raise ValueError(f"{name!r} is not an option; set {instead}")
        copied: dict[str, Any] = toml_to_json(options)
        for name, kind in _LIST_OPTIONS.items():
            listed = copied.get(name, [])
            if not isinstance(listed, list) or not all(isinstance(item, kind) for item in listed):
                raise ValueError(f"{name!r} must be a list of {'tables' if kind is dict else 'strings'}")
        if not all(beta.isascii() and beta.isprintable() for beta in copied.get("betas", ())):
            raise ValueError("'betas' must be printable ASCII, because they are sent in a header")
        return copied

    @model_validator(mode="after")
    def _check_combinations(self) -> Self:
        caps, cap = () if self.protocol is None else self.protocol.cap_names, self.options.get("output_cap")
        if len(caps) > 1 and cap is not None and cap not in caps:
            raise ValueError(f"options.output_cap must be one of {', '.join(caps)}")
        if not hasattr(self.options.get("stream_options", {}), "items"):
            raise ValueError("options.stream_options must be a table")
        if self.price is not None and self.price_as is not None:
            raise ValueError("price and price_as exclude each other")
        if self.provider == "replay" and self.cassette is None:
            raise ValueError('provider "replay" needs a cassette')
        if self.provider == "replay" and self.mode != "replay":
            raise ValueError(f'provider "replay" has no model to record, so its mode cannot be "{self.mode}"')
        if self.cassette is None and "mode" in self.model_fields_set:
            raise ValueError("mode requires a cassette")
        return self

    @property
    def exposed_name(self) -> str:
        """The model name for CLI agents: the provider's name, or the id if there is no remote provider."""
        return self.id if self.protocol is None else self.model

    @property
    def permits(self) -> int:
        """The most requests in flight at once."""
        return 1 if self.strict else self.max_concurrency

    @property
    def protocol(self) -> WireProtocol | None:
        """The protocol of the provider; None for a model that is not remote."""
        return PROTOCOLS.get(self.provider)

    @property
    def address(self) -> str:
        """The base URL of the provider; "" for a model that is not remote."""
        return self.base_url or ("" if self.protocol is None else self.protocol.base_url)

    @property
    def key_env(self) -> str | None:
        """The environment variable that must hold a key before this model is used; None if none is needed."""
        if self.cassette is not None and self.mode == "replay":
            return None
        return self.provider_key_env

    @property
    def provider_key_env(self) -> str | None:
        """The environment variable with the key for the provider itself; None if it needs none."""
        protocol = self.protocol
        if self.api_key_env or protocol is None:
            return self.api_key_env
        return protocol.key_variable if protocol.needs_key or self.base_url is None else None
