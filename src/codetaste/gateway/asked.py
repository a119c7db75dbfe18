"""What a program asks for: who is to answer, and how much of its request is read here."""

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
_A_TOOL = ToolSpec("", "", {})


@dataclass(frozen=True, slots=True)
class Asked:
    """A program's request.

    Attributes:
        wire: its body.
        model: who is to answer.
        headers: names in lower case, without any that hold the token.
        query: what stands behind the path.
    """

    wire: WireRequest
    model: Served
    headers: Mapping[str, str]
    query: str


def read_asked(access: Access, data: bytes, headers: Mapping[str, str], query: str) -> Asked | None:
    """Read a program's request; None where the job may not use the model.

    Raises:
        MalformedRequest: it makes no sense.
    """
    try:
        body = table(parse_body(data), "the body")
        model = access.model_for(string(body.get("model"), "model"))
        if model is None:
            return None
        passed_on = model.upstream is not None
        wire = _as_it_is(access.protocol, body) if passed_on else SERVING[access.protocol].read_request(body)
    except RecursionError as error:
        raise MalformedRequest("the body is nested too deeply") from error
    kept = {name: value for name, value in headers.items() if access.token not in value}
    return Asked(wire, model, kept, query)


def _as_it_is(protocol: Protocol, body: dict[str, Any]) -> WireRequest:
    """Read what decides who answers and what it costs; all else is the provider's to judge."""
    cap = cap_of(body, _CAPS[protocol])
    thinking = body.get("thinking")
    table(body.get("stream_options") or {}, "stream_options")
    request = Request(
        system="",
        messages=(),
        tools=(_A_TOOL,) if optional_rows(body.get("tools"), "tools") else (),
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
