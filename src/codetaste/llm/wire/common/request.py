"""A request that a CLI agent sends to the gateway as if it were a provider.

Fields that determine the model, the length of the reply or its cost must be well formed; all others may have
any form, since they change with the versions of the agents. The body is preserved and forwarded to a real
provider; scripts, cassettes and transcripts use the neutral form.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from codetaste.core.text import one_line
from codetaste.errors import MalformedReply, MalformedRequest
from codetaste.llm.messages import Request
from codetaste.llm.wire.common.http import read_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from codetaste.llm.messages import Message, ToolSpec
    from codetaste.llm.wire.protocols import ProtocolName, WireProtocol

ADDED_TOOLS = "additional_tools"
"""Type of an item of the Responses protocol that has tools; Codex has them there in its code mode."""

DEFAULT_CAP = 32_000
"""Cap of a reply if the client sets none; providers would allow the maximum of the model."""


_MAX_VALUES = 500_000
"""Commas and opening brackets of a body. Conversations of a million tokens have fewer, and to look at more
values would hold up all other jobs for seconds."""


@dataclass(frozen=True, slots=True)
class WireRequest:
    """A decoded request.

    Attributes:
        protocol: of the request.
        body: the parsed body. Forward it by ``capped_body``, never the received bytes: these may contain a
            key twice, and only one of the values was checked.
        request: the neutral form. Encoding it in the same protocol loses nothing.
        model: the client's name for the model.
        stream: whether the reply is to be streamed.
        cap: the output cap of the client, None if it sets none (``request`` then has ``DEFAULT_CAP``).
        freeform: the tools that take a text instead of arguments.
        include_usage: whether a streamed completion is to end with its usage.
    """

    protocol: ProtocolName
    body: Mapping[str, Any]
    request: Request
    model: str
    stream: bool
    cap: int | None
    freeform: frozenset[str] = frozenset()
    include_usage: bool = True

    @property
    def is_agent_turn(self) -> bool:
        """Whether this is an agent's turn; a call without tools is a side call, such as for a title."""
        items = self.body.get("input")
        return bool(self.request.tools or self.request.options.get("tools")) or any(
            isinstance(item, dict) and item.get("type") == ADDED_TOOLS and bool(item.get("tools"))
            for item in (items if isinstance(items, list) else ())
        )


def decoded_request(
    protocol: WireProtocol,
    body: dict[str, Any],
    *,
    system: str = "",
    messages: tuple[Message, ...] = (),
    tools: tuple[ToolSpec, ...] = (),
    options: Mapping[str, Any],
    freeform: frozenset[str] = frozenset(),
    include_usage: bool = True,
) -> WireRequest:
    """Return a request with what is decoded of its body, and with the fields that all protocols have.

    Raises:
        MalformedRequest: one of those fields is malformed.
    """
    cap = cap_of(body, protocol.cap_names)
    return WireRequest(
        protocol=protocol.name,
        body=body,
        request=Request(system, messages, tools, cap or DEFAULT_CAP, options),
        model=require_text(body.get("model"), "model"),
        stream=optional_flag(body.get("stream"), "stream"),
        cap=cap,
        freeform=freeform,
        include_usage=include_usage,
    )


def parse_body(data: bytes) -> Any:  # noqa: ANN401 - JSON data
    """Parse a request's body.

    Raises:
        MalformedRequest: it is not JSON that can be forwarded, or has too many values.
    """
    if sum(map(data.count, (b",", b"[", b"{"))) > _MAX_VALUES:
        raise MalformedRequest(f"the body has more than {_MAX_VALUES:,} commas and brackets")
    try:
        return read_json(data.decode())
    except UnicodeDecodeError:
        raise MalformedRequest("the body is not UTF-8") from None
    except MalformedReply as error:
        raise MalformedRequest(f"the body is {error}") from None


def require_object(value: object, where: str) -> dict[str, Any]:
    """Return a JSON object.

    Raises:
        MalformedRequest: it is not an object; ``where`` names its place in the message.
    """
    if not isinstance(value, dict):
        raise _wrong(where, "an object", value)
    return value


def require_objects(value: object, where: str) -> list[dict[str, Any]]:
    """Return a list of JSON objects.

    Raises:
        MalformedRequest: it is not a list of objects.
    """
    if not isinstance(value, list):
        raise _wrong(where, "a list", value)
    return [require_object(item, f"{where}[{place}]") for place, item in enumerate(value)]


def optional_objects(value: object, where: str) -> list[dict[str, Any]]:
    """Return a list of JSON objects, an empty one for null.

    Raises:
        MalformedRequest: it is not a list of objects.
    """
    return [] if value is None else require_objects(value, where)


def require_text(value: object, where: str) -> str:
    """Return a string that is not blank.

    Raises:
        MalformedRequest: it is blank or not a string.
    """
    if not isinstance(value, str) or not value.strip():
        raise _wrong(where, "a text", value)
    return value


def optional_flag(value: object, where: str) -> bool:
    """Return a boolean; null is false.

    Raises:
        MalformedRequest: it is not a boolean.
    """
    if value is not None and not isinstance(value, bool):
        raise _wrong(where, "true or false", value)
    return bool(value)


def cap_of(body: Mapping[str, Any], names: Iterable[str]) -> int | None:
    """Return the smallest output cap among the keys ``names``, None if there is none.

    Raises:
        MalformedRequest: a cap is not a whole number above 0.
    """
    caps = []
    for name in names:
        cap = body.get(name)
        if cap is None:
            continue
        if type(cap) is not int or cap < 1:
            raise _wrong(name, "a whole number above 0", cap)
        caps.append(cap)
    return min(caps, default=None)


def content_text(content: object) -> str:
    """Return the text of a content, which is a text or a list of parts; other parts become ``[type]``."""
    if isinstance(content, str):
        return content
    texts = []
    for part in content if isinstance(content, list) else ():
        if not isinstance(part, dict):
            continue
        text = part.get("refusal" if part.get("type") == "refusal" else "text")
        texts.append(text if isinstance(text, str) else f"[{part.get('type')}]")
    return "\n".join(texts)


def options_of(body: Mapping[str, Any], read: Iterable[str], written: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a body that are not in ``read`` and differ from the encoder's in ``written``."""
    known = frozenset(read)
    return {
        name: value
        for name, value in body.items()
        if name not in known and not (name in written and written[name] == value)
    }


def _wrong(where: str, wanted: str, value: object) -> MalformedRequest:
    try:
        found = json.dumps(value)[:80]
    except (TypeError, ValueError, RecursionError):
        found = type(value).__name__
    return MalformedRequest(f"{where}: must be {wanted}, not {one_line(found)}")
