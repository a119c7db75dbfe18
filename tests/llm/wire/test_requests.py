"""Requests of client programs are read without loss."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codetaste.errors import MalformedRequest
from codetaste.llm.codec import message_from_json, message_to_json
from codetaste.llm.messages import Request, TextBlock, ToolCall, ToolResult, ToolSpec
from codetaste.llm.wire.common.request import DEFAULT_CAP, parse_body
from support.llm.client_requests import REAL, RESPONSES, read
from support.llm.protocol_cases import BODIES, OWN_MARKERS, corrupted, odd_values, requests
from support.llm.provider.server import PROTOCOLS, Protocol


def through_json(request: Request) -> Request:
    """Return the request with its messages written as JSON and read again."""
    texts = [json.dumps(message_to_json(message)) for message in request.messages]
    return replace(request, messages=tuple(message_from_json(json.loads(text)) for text in texts))


@pytest.mark.parametrize("protocol", PROTOCOLS)
@given(requests())
@settings(max_examples=100, deadline=None)
def test_own_client_requests_are_parsed_to_original_content(protocol: Protocol, request_: Request) -> None:
    request_ = replace(request_, options=OWN_MARKERS.get(protocol, {}))
    wire = read(protocol, BODIES[protocol](request_, "some-model"))
    assert wire.request == request_
    assert (wire.model, wire.stream, wire.cap) == ("some-model", True, request_.max_output_tokens)
    assert wire.include_usage
    assert wire.is_agent_turn == bool(request_.tools)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_client_content_round_trips_in_its_own_protocol(protocol: Protocol) -> None:
    body = REAL[protocol]
    wire = read(protocol, body)
    assert through_json(wire.request) == wire.request
    again = BODIES[protocol](through_json(wire.request), wire.model)
    # The additions are the providers' defaults, or a cap where there was none.
    added = {"tool_choice": {"type": "auto"}} if protocol == "anthropic" else {}
    added |= {"max_output_tokens": DEFAULT_CAP} if protocol == "openai" else {}
    assert again == {**body, **added}


def test_parsed_request_exposes_protocol_neutral_fields() -> None:
    wires = {protocol: read(protocol, body) for protocol, body in REAL.items()}
    assert [tool.name for tool in wires["anthropic"].request.tools] == ["Bash", "Later"]
    assert [tool.name for tool in wires["openai"].request.tools] == ["shell", "apply_patch"]
    assert wires["openai"].freeform == {"apply_patch"}
    assert [wire.request.system for wire in wires.values()] == ["billing\n\nBe brief.", *["Be brief."] * 2]
    assert [wire.cap for wire in wires.values()] == [32000, None, 8000]
    assert wires["openai"].request.max_output_tokens == DEFAULT_CAP
    assert all(wire.is_agent_turn and wire.stream for wire in wires.values())
    calls = {protocol: wire.request.messages for protocol, wire in wires.items()}
    assert calls["anthropic"][2].content == (TextBlock("I look."), ToolCall("t1", "Bash", {"command": "ls"}))
    assert calls["anthropic"][3].content == (
        ToolResult("t1", "a.py"),
        ToolResult("t2", "[image]", is_error=True),
    )
    assert [message.text for message in calls["openai"]] == ["Rules.\nGo.", "I look.", ""]
    assert calls["openai"][1].tool_calls[1] == ToolCall("c2", "apply_patch", {"input": "*** Begin"})
    assert calls["openai"][2].content[1] == ToolResult("c2", "ok\n[input_image]")
    assert calls["openai-chat"][3].tool_calls == (ToolCall("c1", "look", {"at": "x"}),)
    assert calls["openai-chat"][4].content == (ToolResult("c1", "a.py"), TextBlock("Hurry."))


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_call_without_tools_is_no_agent_turn(protocol: Protocol) -> None:
    body = {**REAL[protocol], "tools": []}
    assert not read(protocol, body).is_agent_turn
    assert read(protocol, {**body, "tools": [{"type": "local_shell"}]}).is_agent_turn
    del body["tools"]
    assert not read(protocol, {**body, "stream": None}).is_agent_turn


def test_call_with_tools_in_its_input_is_an_agent_turn() -> None:
    item = {"type": "additional_tools", "role": "developer", "tools": [{"type": "custom", "name": "exec"}]}
    body = {"model": "m", "input": [item, {"role": "user", "content": "Go."}]}
    assert read("openai", body).is_agent_turn
    assert not read("openai", {**body, "input": [{**item, "tools": []}]}).is_agent_turn


@pytest.mark.parametrize(
    ("protocol", "more", "message"),
    [
        ("anthropic", {"model": None}, "model: must be a text, not null"),
        ("anthropic", {"max_tokens": 0}, "max_tokens: must be a whole number above 0, not 0"),
        ("anthropic", {"max_tokens": True}, "max_tokens: must be a whole number above 0, not true"),
        ("anthropic", {"stream": "yes"}, 'stream: must be true or false, not "yes"'),
        ("anthropic", {"messages": {"a": 1}}, 'messages: must be a list, not {"a": 1}'),
        ("anthropic", {"messages": [{"content": "x"}]}, "messages[0].role: must be a text, not null"),
        ("anthropic", {"messages": [{"role": "user", "content": 1}]}, "messages[0].content: must be a list"),
        (
            "anthropic",
            {"messages": [{"role": "user", "content": [{"type": "tool_result"}]}]},
            "messages[0]: the id of a tool_result: must be a text, not null",
        ),
        ("anthropic", {"tools": [{"input_schema": {}}]}, "tools.name: must be a text, not null"),
        ("openai", {"input": 5}, "input: must be a list, not 5"),
        ("openai", {"input": [{"type": "function_call_output"}]}, "input: the call_id of an output: must be"),
        ("openai", {"max_output_tokens": 1.5}, "max_output_tokens: must be a whole number above 0, not 1.5"),
        ("openai", {"tools": [{"type": "custom"}]}, "tools: name: must be a text, not null"),
        ("openai-chat", {"tools": [{"function": 1}]}, "tools: function: must be an object, not 1"),
        ("openai-chat", {"stream_options": [1]}, "stream_options: must be an object, not [1]"),
        ("openai-chat", {"messages": [{"role": "tool", "content": ""}]}, "messages: tool_call_id: must be"),
    ],
)
def test_invalid_request_is_reported_in_one_line(
    protocol: Protocol, more: dict[str, Any], message: str
) -> None:
    with pytest.raises(MalformedRequest) as caught:
        read(protocol, {**REAL[protocol], **more})
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "data", [b"", b"{", b"\xff", b"[" * 10_000, b'{"a": NaN}', b'{"a": 1e999}', b"[" * 300 + b"]" * 300]
)
def test_invalid_json_body_is_reported_in_one_line(data: bytes) -> None:
    with pytest.raises(MalformedRequest) as caught:
        parse_body(data)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 600


@pytest.mark.parametrize("value", ["0", "[]", "{}", "[[[[]]]]"])
def test_body_with_too_many_values_is_not_parsed(value: str) -> None:
    with pytest.raises(MalformedRequest, match="more than 500,000 commas and brackets"):
        parse_body(f"[{','.join([value] * 600_000)}]".encode())
    assert parse_body(f"[{','.join([value] * 50_000)}]".encode())


@pytest.mark.parametrize("protocol", PROTOCOLS)
@given(st.data())
@settings(max_examples=200, deadline=None)
def test_any_body_is_a_request_or_named_malformed(protocol: Protocol, data: st.DataObject) -> None:
    bodies = data.draw(corrupted([REAL[protocol]]) | st.lists(odd_values, min_size=1, max_size=1))
    for body in bodies:
        try:
            wire = read(protocol, body)
        except MalformedRequest as error:
            fault = str(error)
        else:
            fault = ""
        assert (len(fault) < 600, "\n" in fault) == (True, False)
        if fault:
            continue
        assert wire.request.max_output_tokens >= 1
        assert all(tool.name.strip() for tool in wire.request.tools)
        assert through_json(wire.request) == wire.request
        for written in BODIES.values():
            json.dumps(written(wire.request, "m"))


def test_tool_is_converted_to_other_protocols() -> None:
    tool = read("openai", RESPONSES).request.tools[1]
    assert anthropic_tool(tool) == {
        "name": "apply_patch",
        "description": "Patch.",
        "input_schema": {
            "type": "object",
            "properties": {"input": {"type": "string"}},
            "required": ["input"],
        },
    }


def anthropic_tool(tool: ToolSpec) -> Any:
    body = BODIES["anthropic"](Request("", (), (tool,), options={"cache_control": False}), "m")
    return body["tools"][0]
