from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from codetaste.core.hashing import canonical_json, json_digest
from codetaste.llm import codec
from codetaste.llm.messages import (
    Message,
    ProviderBlocks,
    Reply,
    Request,
    StopReason,
    TextBlock,
    ToolCall,
    ToolResult,
    ToolSpec,
    Usage,
)

# Any code point, including lone surrogates and NUL.
texts = st.text(st.characters(codec=None, exclude_categories=()), max_size=12)
numbers = st.integers() | st.floats(allow_nan=False) | st.integers(-(10**40), 10**40)
data = st.recursive(
    st.none() | st.booleans() | numbers | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)
objects = st.dictionaries(texts | st.just("$"), data, max_size=3)
blocks = (
    st.builds(TextBlock, texts)
    | st.builds(ToolCall, texts, texts, objects, st.none() | texts)
    | st.builds(ToolResult, texts, texts, st.booleans())
)
raws = st.none() | st.builds(ProviderBlocks, st.just("anthropic"), st.lists(objects, max_size=2).map(tuple))
messages = st.builds(
    Message, st.sampled_from(["user", "assistant"]), st.lists(blocks, max_size=3).map(tuple), raws
)
requests = st.builds(
    Request,
    texts,
    st.lists(messages, max_size=3).map(tuple),
    st.lists(st.builds(ToolSpec, texts, texts, objects), max_size=2).map(tuple),
    st.integers(1, 10**6),
    objects,
)
counts = st.integers(0, 10**9)
usages = st.none() | st.builds(Usage, counts, counts, counts, counts, counts)
replies = st.builds(Reply, messages, st.sampled_from(StopReason), usages, texts, texts)


def through_json(value: Any) -> Any:
    """Write and read as a journal does: strict JSON in UTF-8."""
    return json.loads(json.dumps(value, ensure_ascii=False, allow_nan=False).encode().decode())


@given(replies)
@settings(max_examples=150, deadline=None)
def test_reply_round_trips(reply: Reply) -> None:
    assert codec.reply_from_json(through_json(codec.reply_to_json(reply))) == reply


@given(data)
@example("\ud800\udc00")  # two lone surrogates, which JSON escapes would join to one character
@example({"$": "s", "v": "00"})
@example({"\udfff": [0.0, -0.0, 1e-320, 2**64, -(10**5000)]})
@settings(max_examples=150, deadline=None)
def test_any_value_round_trips_with_type_and_sign(value: Any) -> None:
    back = codec.value_from_json(through_json(codec.value_to_json(value)))
    assert back == value
    if not isinstance(value, int | list | dict):
        assert repr(back) == repr(value)


def test_floats_outside_json_round_trip() -> None:
    back = codec.value_from_json(through_json(codec.value_to_json([math.inf, -math.inf, math.nan])))
    assert back[:2] == [math.inf, -math.inf]
    assert math.isnan(back[2])


def test_tuples_become_lists_and_other_objects_are_refused() -> None:
    assert codec.value_to_json({"a": (1, 2)}) == {"a": [1, 2]}
    with pytest.raises(TypeError, match="bytes is not JSON data"):
        codec.value_to_json([b"x"])
    with pytest.raises(TypeError, match="keys of a JSON object"):
        codec.value_to_json({1: "x"})


def test_codec_stores_absurd_usage_unchanged() -> None:
    usage = Usage(input=-5, output=math.nan)  # type: ignore[arg-type]
    back = codec.usage_from_json(through_json(codec.usage_to_json(usage)))
    assert back is not None
    assert back.input == -5
    assert math.isnan(back.output)


def test_canonical_json_is_independent_of_key_order() -> None:
    assert canonical_json({"b": 1, "a": "é"}) == '{"a":"\\u00e9","b":1}'
    assert json_digest({"a": 1, "b": 2}) == json_digest({"b": 2, "a": 1})
