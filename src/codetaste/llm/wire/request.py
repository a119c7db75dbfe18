"""A request that a program sends to us as if we were its provider, read as strictly as its money wants.

What decides who answers, how much, and what it costs must be well formed; anything else may be what it likes,
as the next version of a program says it in another way. The body is kept as it came: it is what a real
provider is sent. The neutral form is what scripts, cassettes and transcripts see.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from codetaste.errors import MalformedReply, MalformedRequest
from codetaste.llm.wire.http import one_line, read_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from codetaste.llm.messages import Request

Protocol = Literal["anthropic", "openai", "openai-chat"]

UNCAPPED = 32_000
"""Tokens that a reply may have where the program sets no cap; providers would give all that a model has."""


@dataclass(frozen=True, slots=True)
class WireRequest:
    """What a program asks for.

    Attributes:
        protocol: in which it asks.
        body: as it came; to be sent as ``lowered`` writes it, never as the bytes that came: of two equal keys
            in those, only one was read here.
        request: the same in neutral form. Writing it in the same protocol loses nothing.
        model: what the program calls the model.
        stream: whether the reply is to be streamed.
        cap: the most tokens that the program wants, None where it does not say (then ``request`` has
            ``UNCAPPED``).
        apart: what it asks for that costs more than the tokens counted here, by name.
        freeform: the tools that take a text instead of arguments.
        include_usage: whether a streamed completion is to end with its usage.
    """

    protocol: Protocol
    body: Mapping[str, Any]
    request: Request
    model: str
    stream: bool
    cap: int | None
    apart: tuple[str, ...] = ()
    freeform: frozenset[str] = frozenset()
    include_usage: bool = True

    @property
    def main(self) -> bool:
        """Whether this is a turn of an agent; a call without tools is one on the side: a title, a summary."""
        return bool(self.request.tools or self.request.options.get("tools"))


def parse_body(data: bytes) -> Any:  # noqa: ANN401 - JSON data
    """Parse a request's body.

    Raises:
        MalformedRequest: it is no JSON that could be sent on.
    """
    try:
        return read_json(data.decode())
    except UnicodeDecodeError:
        raise MalformedRequest("the body is not UTF-8") from None
    except MalformedReply as error:
        raise MalformedRequest(f"the body is {error}") from None


def table(value: object, where: str) -> dict[str, Any]:
    """Return a JSON object.

    Raises:
        MalformedRequest: it is none, with the name of the place ``where`` it stands.
    """
    if not isinstance(value, dict):
        raise _wrong(where, "an object", value)
    return value


def rows(value: object, where: str) -> list[dict[str, Any]]:
    """Return a list of JSON objects.

    Raises:
        MalformedRequest: it is none.
    """
    if not isinstance(value, list):
        raise _wrong(where, "a list", value)
    return [table(item, f"{where}[{place}]") for place, item in enumerate(value)]


def optional_rows(value: object, where: str) -> list[dict[str, Any]]:
    """Return a list of JSON objects, an empty one for null.

    Raises:
        MalformedRequest: it is none.
    """
    return [] if value is None else rows(value, where)


def string(value: object, where: str) -> str:
    """Return a text that is not blank.

    Raises:
        MalformedRequest: it is none.
    """
    if not isinstance(value, str) or not value.strip():
        raise _wrong(where, "a text", value)
    return value


def flag(value: object, where: str) -> bool:
    """Return a truth value; null is false.

    Raises:
        MalformedRequest: it is none.
    """
    if value is not None and not isinstance(value, bool):
        raise _wrong(where, "true or false", value)
    return bool(value)


def cap_of(body: Mapping[str, Any], names: Iterable[str]) -> int | None:
    """Return the smallest cap on the reply that stands under ``names``, None where there is none.

    Raises:
        MalformedRequest: one is no whole number above 0.
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


def options_of(body: Mapping[str, Any], read: Iterable[str], written: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a body has beside what was ``read`` of it; what our own writer says anyway is left out."""
    known = frozenset(read)
    return {
        name: value
        for name, value in body.items()
        if name not in known and not (name in written and written[name] == value)
    }


def _wrong(where: str, wanted: str, value: object) -> MalformedRequest:
    try:
        said = json.dumps(value)[:80]
    except (TypeError, ValueError, RecursionError):
        said = type(value).__name__
    return MalformedRequest(f"{where}: must be {wanted}, not {one_line(said)}")
