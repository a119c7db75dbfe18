"""A CLI agent's request, parsed as far as its model and its cost depend on it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from codetaste.errors import MalformedRequest
from codetaste.gateway.parts import SAID
from codetaste.llm.messages import Request, ToolSpec
from codetaste.llm.wire.openai_chat import CAPS
from codetaste.llm.wire.prompt import apart_in
from codetaste.llm.wire.request import (
    UNCAPPED,
    WireRequest,
    cap_of,
    flag,
    optional_rows,
    parse_body,
    string,
    table,
)
from codetaste.llm.wire.serving import SERVING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from codetaste.gateway.access import Access
    from codetaste.gateway.served import Served
    from codetaste.llm.wire.request import Protocol

_CAPS = {"anthropic": ("max_tokens",), "openai": ("max_output_tokens",), "openai-chat": CAPS}
_ANY_TOOL = ToolSpec("", "", {})


@dataclass(frozen=True, slots=True)
class Asked:
    """A CLI agent's request.

    Attributes:
        wire: its body.
        model: the model that answers.
        headers: names in lower case; headers that contain the token are left out.
        query: the URL's query string.
    """

    wire: WireRequest
    model: Served
    headers: Mapping[str, str]
    query: str


def read_asked(access: Access, data: bytes, headers: Mapping[str, str], query: str) -> Asked | None:
    """Parse a CLI agent's request; None if the job may not use the model.

    Raises:
        MalformedRequest: the body is invalid.
    """
    try:
        body = table(parse_body(data), "the body")
        model = access.model_for(string(body.get("model"), "model"))
        if model is None:
            return None
        if model.upstream is None:
            wire = SERVING[access.protocol].read_request(body)
        else:
            wire = _parse_forwarded(access.protocol, body)
    except RecursionError as error:
        raise MalformedRequest("the body is nested too deeply") from error
    without_token = {name: value for name, value in headers.items() if access.token not in value}
    return Asked(wire, model, without_token, query)


def _parse_forwarded(protocol: Protocol, body: dict[str, Any]) -> WireRequest:
    """Parse the fields that decide model and cost; the provider validates all others."""
    cap = cap_of(body, _CAPS[protocol])
    thinking = body.get("thinking")
    table(body.get("stream_options") or {}, "stream_options")
    request = Request(
        system="",
        messages=(),
        tools=(_ANY_TOOL,) if optional_rows(body.get("tools"), "tools") else (),
        max_output_tokens=cap or UNCAPPED,
        options={"thinking": thinking} if isinstance(thinking, dict) else {},
    )
    return WireRequest(
        protocol=protocol,
        body=body,
        request=request,
        model=string(body.get("model"), "model"),
        stream=flag(body.get("stream"), "stream"),
        cap=cap,
        apart=apart_in(body, SAID[protocol]),
    )
