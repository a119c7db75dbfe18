"""Strategies of conversations and replies that every protocol can express, and of corrupted JSON."""

from __future__ import annotations

import copy
from itertools import pairwise
from typing import Any

from hypothesis import strategies as st

from codetaste.llm.messages import (
    Message,
    Reply,
    Request,
    StopReason,
    TextBlock,
    ToolCall,
    ToolResult,
    ToolSpec,
    Usage,
)
from codetaste.llm.wire.anthropic import client as anthropic
from codetaste.llm.wire.openai_chat import client as openai_chat
from codetaste.llm.wire.openai_responses import client as openai_responses

BODIES = {
    "anthropic": anthropic.request_body,
    "openai": openai_responses.request_body,
    "openai-chat": openai_chat.request_body,
}
LOOK = ToolSpec("look", "Look.", {"type": "object", "properties": {"at": {"type": "string"}}})
OWN_MARKERS: dict[str, dict[str, Any]] = {"anthropic": {"cache_control": False}}
"""Options with which a client sets no cache markers of its own."""

words = st.text(st.characters(exclude_categories=("Cs",)), max_size=40)
nonblank = words.filter(str.strip)
results = nonblank.filter(lambda text: not text.startswith("Error: ")) | st.just("")
names = st.sampled_from(["look", "find-it", "a_b"])
data = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, width=32) | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=6,
).filter(lambda value: value not in (float("inf"), float("-inf")))
arguments = st.dictionaries(words, data, max_size=3).filter(lambda value: "inf" not in repr(value))


@st.composite
def requests(draw: st.DrawFn) -> Request:
    """Draw a request as our own clients write it: text before calls, results before text."""
    messages = [Message("user", tuple(TextBlock(draw(nonblank)) for _ in range(draw(st.integers(1, 2)))))]
    number = 0
    for _ in range(draw(st.integers(0, 3))):
        texts = draw(st.lists(nonblank, max_size=2))
        calls = []
        for name in draw(st.lists(names, min_size=0 if texts else 1, max_size=2)):
            number += 1
            calls.append(ToolCall(f"call_{number}", name, draw(arguments)))
        messages.append(Message("assistant", (*map(TextBlock, texts), *calls)))
        answers = [ToolResult(call.id, draw(results), is_error=draw(st.booleans())) for call in calls]
        texts = draw(st.lists(nonblank, min_size=0 if answers else 1, max_size=2))
        messages.append(Message("user", (*answers, *map(TextBlock, texts))))
    tools = draw(st.sampled_from([(), (LOOK,), (LOOK, ToolSpec("find-it", "", {"type": "object"}))]))
    return Request(draw(st.just("") | nonblank), tuple(messages), tools, draw(st.integers(1, 100_000)))


@st.composite
def usages(draw: st.DrawFn) -> Usage:
    count = st.integers(0, 10**7)
    # Providers count at least one token of a reply.
    output = draw(st.integers(1, 10**7))
    return Usage(draw(st.integers(1, 10**7)), draw(count), draw(count), output, draw(st.integers(0, output)))


@st.composite
def replies(draw: st.DrawFn) -> Reply:
    """Draw a reply that all three protocols can express: at most one text, then calls."""
    texts = draw(st.lists(nonblank | st.builds(str.__mul__, nonblank, st.integers(1, 60)), max_size=1))
    called = draw(st.lists(names, max_size=3))
    calls = [ToolCall(f"call_{place}", name, draw(arguments)) for place, name in enumerate(called)]
    ends = (
        [StopReason.TOOL_USE, StopReason.LENGTH]
        if calls
        else [StopReason.END, StopReason.LENGTH, StopReason.REFUSAL, StopReason.OTHER]
    )
    message = Message("assistant", (*map(TextBlock, texts), *calls))
    return Reply(message, draw(st.sampled_from(ends)), draw(usages() | st.none()), "m", "req_1")


def cut(draw: st.DrawFn, whole: bytes) -> list[bytes]:
    """Cut a body into pieces at any places."""
    places = sorted(draw(st.lists(st.integers(0, len(whole)), max_size=8)))
    return [whole[start:end] for start, end in pairwise([0, *places, len(whole)])]


# Values that no provider should send, some of the right type.
odd_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-2, 3)
    | st.just(10**30)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5)
    | st.sampled_from(
        ["[DONE]", "tool_use", "function_call", "error", "stop", "completed", "{", "{}", "\ud800"]
    ),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=4), inner, max_size=2),
    max_leaves=4,
)


def replaceable_places(value: Any) -> list[tuple[Any, Any]]:
    """Return everything in JSON data that can be replaced: the container and the key."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    found: list[tuple[Any, Any]] = []
    for key, item in list(inner):
        found += [(value, key), *replaceable_places(item)]
    return found


@st.composite
def corrupted(draw: st.DrawFn, messages: list[Any]) -> list[Any]:
    """Draw a provider's messages with parts replaced, dropped, or repeated."""
    messages = copy.deepcopy(messages)
    for _ in range(draw(st.integers(0, 3))):
        found = replaceable_places(messages)
        if not found:
            break
        container, key = draw(st.sampled_from(found))
        match draw(st.sampled_from(["replace", "replace", "drop", "again"])):
            case "replace":
                container[key] = draw(odd_values)
            case "drop":
                del container[key]
            case "again" if isinstance(container, list):
                container.insert(key, copy.deepcopy(container[key]))
    return messages
