"""A CLI agent's request, parsed as far as its model and its cost depend on it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from codetaste.errors import MalformedRequest
from codetaste.llm.messages import ToolSpec
from codetaste.llm.wire.allow_lists import ALLOW_LISTS
from codetaste.llm.wire.codecs import SERVERS
from codetaste.llm.wire.common.request import (
    decoded_request,
    optional_objects,
    parse_body,
    require_object,
    require_text,
)
from codetaste.llm.wire.protocols import PROTOCOLS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from codetaste.gateway.upstream import GatewayModel
    from codetaste.llm.wire.common.allow_list import Findings
    from codetaste.llm.wire.common.request import WireRequest
    from codetaste.llm.wire.protocols import ProtocolName

_ANY_TOOL = ToolSpec("", "", {})


@dataclass(frozen=True, slots=True)
class GatewayRequest:
    """A CLI agent's request.

    Attributes:
        wire: its body.
        model: the model that answers.
        headers: names in lower case.
        query: the URL's query string.
        findings: what of it is not in the protocol's allow list.
    """

    wire: WireRequest
    model: GatewayModel
    headers: Mapping[str, str]
    query: str
    findings: Findings


def parse_request(
    data: bytes,
    protocol: ProtocolName,
    model_for: Callable[[str], GatewayModel | None],
    *,
    headers: Mapping[str, str],
    query: str,
) -> GatewayRequest | None:
    """Parse a CLI agent's request; None if the job may not use the model.

    Args:
        data: its body.
        protocol: of the body.
        model_for: returns the model for the name in the request, None if the job may not use it.
        headers: names in lower case, without any that contains the token.
        query: the URL's query string.

    Raises:
        MalformedRequest: the body is invalid.
    """
    try:
        body = require_object(parse_body(data), "the body")
        model = model_for(require_text(body.get("model"), "model"))
        if model is None:
            return None
        if model.upstream is None:
            wire = SERVERS[protocol].read_request(body)
        else:
            # The fields that decide model and cost; the provider validates all others.
            thinking = body.get("thinking")
            require_object(body.get("stream_options") or {}, "stream_options")
            wire = decoded_request(
                PROTOCOLS[protocol],
                body,
                tools=(_ANY_TOOL,) if optional_objects(body.get("tools"), "tools") else (),
                options={"thinking": thinking} if isinstance(thinking, dict) else {},
            )
        findings = ALLOW_LISTS[protocol].check_request(body, headers, model.allow)
    except RecursionError as error:
        raise MalformedRequest("the body is nested too deeply") from error
    return GatewayRequest(wire, model, headers, query, findings)
