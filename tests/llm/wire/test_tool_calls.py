from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codetaste.llm.messages import ToolCall
from codetaste.llm.wire.common.tool_calls import (
    read_call,
    unique_call_ids,
    valid_arguments_json,
    valid_tool_name,
)

ids = st.sampled_from(["", " ", "call_0", "call_1", "call-1", "call-1-2", None, 7]) | st.text(max_size=70)


@given(st.lists(ids, max_size=6), st.sets(st.sampled_from(["call_0", "call-1", "call-2", "x"])))
@settings(max_examples=200, deadline=None)
def test_tool_call_ids_are_unique_and_preserved_if_possible(given_ids: list[Any], taken: set[str]) -> None:
    unique = unique_call_ids(given_ids, taken)
    assert len({*unique} | taken) == len(unique) + len(taken)
    assert all(unique)
    for place, (given_id, got) in enumerate(zip(given_ids, unique, strict=True)):
        if isinstance(given_id, str) and given_id.strip() and given_id not in {*unique[:place], *taken}:
            assert got == given_id
    assert unique_call_ids(given_ids, taken) == unique


@given(st.none() | st.integers() | st.text(max_size=100))
@settings(max_examples=200, deadline=None)
def test_tool_name_sent_back_is_valid_for_every_provider(name: Any) -> None:
    assert re.fullmatch(r"[A-Za-z0-9_-]{1,64}", valid_tool_name(name))


def test_well_formed_call_is_sent_back_unchanged() -> None:
    assert valid_tool_name("bash_explore-2") == "bash_explore-2"
    assert valid_arguments_json('{ "b": 1.0,\n "a": "\\u00e9"}') == '{ "b": 1.0,\n "a": "\\u00e9"}'


@pytest.mark.parametrize(
    ("given_", "fault", "back"),
    [
        ('{"at": "wher', "not JSON", "{}"),
        ("[1]", "list, not a JSON object", "{}"),
        ("NaN", "NaN is not JSON", "{}"),
        ('"{}"', "str, not a JSON object", "{}"),
        (7, "int, not a JSON object", "{}"),
        ("[" * 100_000, "not JSON", "{}"),
        ("", None, "{}"),
        (None, None, "{}"),
        ({"at": "é"}, None, '{"at":"é"}'),
    ],
)
def test_any_arguments_become_a_call_and_are_sent_back_as_object(
    given_: Any, fault: str | None, back: str
) -> None:
    call = read_call("1", "look", given_)
    assert (call.fault is None) if fault is None else (fault in str(call.fault))
    assert valid_arguments_json(given_) == back
    assert isinstance(json.loads(back), dict)


@pytest.mark.parametrize("name", [None, "", "  ", 5, ["look"]])
def test_call_without_name_is_reported(name: Any) -> None:
    assert read_call("1", name, "{}") == ToolCall("1", "", {}, "it names no tool")
