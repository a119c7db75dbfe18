"""Ways in which a program may try to make a provider bill more than a budget, as data.

A way is a few shots to begin with, and shots that are repeated. Each targets something that a metering
gateway may believe: what a part of a prompt costs, what a name means, what a cap limits, who reads a reply.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Literal

ProtocolName = Literal["anthropic", "openai", "openai-chat"]
Json = dict[str, Any]
PATHS = {"anthropic": "/v1/messages", "openai": "/v1/responses", "openai-chat": "/v1/chat/completions"}
GO_ON = "go on [@number@]"
LARGE = "x" * 40_000
"""A text of which the budget pays for a few: a reply to one that is not in its bound is disputed."""


class Outcome(Enum):
    """What becomes of a way; the bill is within the budget whichever it is."""

    REFUSED = "no request reaches the provider"
    PARTLY_REFUSED = "the requests with the feature are refused, and the others are bounded"
    BOUNDED = "several requests are answered, and none costs more than was reserved"
    DISPUTED = "a reply costs more than was reserved, and the model is not called again"


@dataclass(frozen=True)
class Way:
    """One way, tried with one protocol.

    Attributes:
        name: of the way.
        protocol: of its requests.
        outcome: what becomes of it.
        then: the shots to repeat.
        first: the shots to begin with.
        feature: what the provider bills by; "" if the request is of no special kind.
        named: what a refusal must name, by default ``feature``.
        connections: requests that are in flight at once.
        sessions: how often the job is started.
        delay_s: time until the provider answers, in seconds.
        timeout_s: time limit of a request to the provider, in seconds.
    """

    name: str
    protocol: ProtocolName
    outcome: Outcome
    then: Sequence[Json]
    first: Sequence[Json] = ()
    feature: str = ""
    named: str = ""
    connections: int = 1
    sessions: int = 1
    delay_s: float = 0.0
    timeout_s: float = 60.0


def shot(protocol: ProtocolName, body: Mapping[str, Any] | str, **more: Any) -> Json:
    """Return a shot; ``headers`` and ``path`` override the usual ones."""
    headers = more.pop("headers", [["content-type", "application/json"]])
    text = body if isinstance(body, str) else json.dumps(body)
    return {"path": more.pop("path", PATHS[protocol]), "headers": headers, "body": text, **more}


def messages(*turns: Json, **more: Any) -> Json:
    """Return a body of Anthropic's protocol."""
    return {"model": "expensive", "max_tokens": 16, "messages": [*turns], **more}


def items(*given: Json, **more: Any) -> Json:
    """Return a body of OpenAI's Responses."""
    return {"model": "expensive", "max_output_tokens": 16, "input": [*given], **more}


def chat(*turns: Json, **more: Any) -> Json:
    """Return a body of Chat Completions."""
    return {"model": "expensive", "max_tokens": 16, "messages": [*turns], **more}


def user(content: Any = GO_ON) -> Json:
    return {"role": "user", "content": content}


def assistant(*blocks: Json) -> Json:
    return {"role": "assistant", "content": [*blocks]}


def text(words: str) -> Json:
    return {"type": "text", "text": words}


def called(arguments: Any = None) -> Json:
    return {"type": "tool_use", "id": "t1", "name": "look", "input": arguments or {}}


def result(content: Any = "seen") -> Json:
    return user([{"type": "tool_result", "tool_use_id": "t1", "content": content}])
