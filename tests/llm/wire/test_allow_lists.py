"""What is not in the allow list of its protocol is refused by its name; what programs send is in it."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings

from codetaste.llm.messages import Request
from codetaste.llm.wire.allow_lists import ALLOW_LISTS
from codetaste.llm.wire.common.allow_list import Findings
from support.llm.allow_list_keys import keys_of_list
from support.llm.client_requests import ANTHROPIC, PICTURE, REAL
from support.llm.protocol_cases import BODIES, requests
from support.llm.provider.server import PROTOCOLS, Protocol

URL = "https://example.org/a"
FUNCTION = {"type": "function", "name": "f", "parameters": {}}
FUNCTION_OF_MESSAGES = {"name": "f", "input_schema": {}}
SEARCH = {"type": "web_search"}


def check(protocol: Protocol, body: Any, prices: dict[str, Decimal] | None = None, **more: Any) -> Findings:
    return ALLOW_LISTS[protocol].check_request(body, more.get("headers", {}), prices or {})


def posted(*blocks: Any) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": [*blocks]}]}


def result(content: Any) -> dict[str, Any]:
    return posted({"type": "tool_result", "tool_use_id": "t", "content": content})


@pytest.mark.parametrize("protocol", PROTOCOLS)
@given(requests())
@settings(max_examples=50, deadline=None)
def test_own_requests_and_those_of_programs_are_allowed(protocol: Protocol, request_: Request) -> None:
    assert check(protocol, REAL[protocol]).refusals == []
    assert check(protocol, BODIES[protocol](request_, "m")).refusals == []


CODE_MODE = [
    {
        "type": "namespace",
        "name": "functions",
        "description": "",
        "tools": [{"type": "custom", "name": "exec"}],
    },
    FUNCTION,
]


@pytest.mark.parametrize(
    ("protocol", "body"),
    [
        ("anthropic", {"messages": [{"role": "system", "content": "x", "output_config": {"effort": "low"}}]}),
        (
            "openai",
            {
                "input": [{"type": "additional_tools", "id": "at", "role": "developer", "tools": CODE_MODE}],
                "reasoning": {"context": "all_turns"},
            },
        ),
    ],
)
def test_what_current_models_make_programs_send_is_allowed(protocol: Protocol, body: dict[str, Any]) -> None:
    assert check(protocol, body).refusals == []


def test_message_in_the_page_of_models_is_the_real_one() -> None:
    tools = [FUNCTION_OF_MESSAGES, FUNCTION_OF_MESSAGES, {"type": "web_search_20250305", "name": "w"}]
    page = (Path(__file__).parents[3] / "docs/guide/models.md").read_text("utf-8")
    assert check("anthropic", {"tools": tools}).describe() in page.replace("\n", " ")


MESSAGES_REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"tools": [{"type": "web_search_20250305", "name": "w"}]}, 'tools[0].type = "web_search_20250305"'),
    ({"tools": [{"name": "w", "input_schema": {}, "defer_loading": True}]}, "tools[0].defer_loading = true"),
    ({"mcp_servers": []}, "mcp_servers = []"),
    ({"fallbacks": None}, "fallbacks = null"),
    ({"service_tier": "auto"}, 'service_tier = "auto"'),
    ({"speed": "fast"}, 'speed = "fast"'),
    (
        {"context_management": {"edits": [{"type": "clear_tool_uses_20250919"}]}},
        'context_management.edits[0].type = "clear_tool_uses_20250919"',
    ),
    (
        {"context_management": {"edits": [{"type": "clear_thinking_20251015", "keep": {"value": 1}}]}},
        'context_management.edits[0].keep = {"value": 1}',
    ),
    (
        {"system": [{"type": "text", "text": "x", "cache_control": {"type": "ephemeral", "ttl": "1h"}}]},
        'system[0].cache_control.ttl = "1h"',
    ),
    (
        posted({"type": "text", "text": "x", "cache_control": {"type": "ephemeral", "ttl": 3600}}),
        "messages[0].content[0].cache_control.ttl = 3600",
    ),
    (posted({"type": "Document"}), 'messages[0].content[0].type = "Document"'),
    (posted({"type": "document", "source": {}}), 'messages[0].content[0].type = "document"'),
    (posted({"type": "compaction"}), 'messages[0].content[0].type = "compaction"'),
    (posted({"text": "x"}), "messages[0].content[0].type = null"),
    (posted({"type": ["text"]}), 'messages[0].content[0].type = ["text"]'),
    (posted({"type": "text", "text": [PICTURE]}), "messages[0].content[0].text = "),
    (
        posted({"type": "text", "text": "x", "citations": {"enabled": True}}),
        "messages[0].content[0].citations",
    ),
    (
        result([{"type": "image", "source": {"type": "url", "url": URL}}]),
        'messages[0].content[0].content[0].source.type = "url"',
    ),
    (result([{"type": "tool_reference", "tool_name": "x"}]), '.content[0].type = "tool_reference"'),
    (
        {"messages": [{"role": "system", "content": "x", "clear_at": "next_user_message"}]},
        'messages[0].clear_at = "next_user_message"',
    ),
    (
        {"messages": [{"role": "system", "output_config": {"format": {"type": "json_schema"}}}]},
        "messages[0].output_config.format = ",
    ),
    (
        {
            "system": [
                {"type": "text", "text": "x", "cache_control": {"type": "ephemeral", "scope": "global"}}
            ]
        },
        'system[0].cache_control.scope = "global"',
    ),
    (
        {"messages": [{"role": "system", "content": [{"type": "tool_addition"}]}]},
        'messages[0].content[0].type = "tool_addition"',
    ),
]
RESPONSES_REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"tools": [{**SEARCH, "external_web_access": True}]}, 'tools[0].type = "web_search"'),
    (
        {"tools": [{"type": "namespace", "name": "n", "tools": [{"type": "mcp"}]}]},
        'tools[0].tools[0].type = "mcp"',
    ),
    ({"tools": [{"type": "tool_search", "execution": "server"}]}, 'tools[0].execution = "server"'),
    ({"tools": [{"type": "tool_search"}]}, "tools[0].execution = null"),
    ({"tools": [{"type": "tool_search", "execution": None}]}, "tools[0].execution = null"),
    ({"input": [{"type": "tool_search_call", "arguments": {}}]}, "input[0].execution = null"),
    ({"input": [{"type": "tool_search_output", "tools": []}]}, "input[0].execution = null"),
    ({"background": False}, "background = false"),
    ({"previous_response_id": "resp_1"}, 'previous_response_id = "resp_1"'),
    ({"input": [{"type": "item_reference", "id": "x"}]}, 'input[0].type = "item_reference"'),
    ({"input": [{"type": "message", "role": "user", "id": "x"}]}, 'input[0].id = "x"'),
    ({"input": [{"type": "reasoning", "id": "x", "summary": []}]}, 'input[0].id = "x"'),
    ({"input": [{"type": "reasoning", "id": "x", "summary": [], "content": []}]}, 'input[0].id = "x"'),
    ({"input": [{"type": "message", "role": "user", "content": "", "id": "x"}]}, 'input[0].id = "x"'),
    ({"input": [{"type": "function_call_output", "call_id": "c", "id": "x"}]}, 'input[0].id = "x"'),
    *(
        ({"input": [{"call_id": "c", "name": "f", "id": "x", **item}]}, 'input[0].id = "x"')
        for item in (
            {"type": "function_call_output", "output": ""},
            {"type": "function_call_output", "output": [{"type": "input_text", "text": ""}]},
            {"type": "custom_tool_call_output", "output": [{"type": "input_image", "image_url": None}]},
            {"type": "function_call", "arguments": ""},
            {"type": "custom_tool_call", "input": ""},
        )
    ),
    *(
        ({"input": [{"id": "x", **item}]}, 'input[0].id = "x"')
        for item in (
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": ""}]},
            {"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": ""}]},
            {"type": "tool_search_call", "arguments": {"query": ""}, "execution": "client"},
        )
    ),
    ({"input": [{"id": "x"}]}, 'input[0].id = "x"'),
    ({"input": [{"type": None, "role": "user", "content": "a"}]}, "input[0].type = null"),
    ({"input": [{"type": "additional_tools", "tools": [SEARCH]}]}, 'input[0].tools[0].type = "web_search"'),
    (
        {"input": [{"type": "additional_tools", "tools": [{"type": "namespace", "tools": [SEARCH]}]}]},
        'input[0].tools[0].tools[0].type = "web_search"',
    ),
    (
        {"input": [{"type": "additional_tools", "tools": [{**FUNCTION, "defer_loading": True}]}]},
        "input[0].tools[0].defer_loading = true",
    ),
    ({"input": [{"type": "additional_tools", "id": "x", "tools": []}]}, 'input[0].id = "x"'),
    ({"reasoning": {"context": "stored"}}, 'reasoning.context = "stored"'),
    ({"reasoning": {"mode": "pro"}}, 'reasoning.mode = "pro"'),
    (
        {"input": [{"type": "tool_search_output", "execution": "client", "tools": [SEARCH]}]},
        'input[0].tools[0].type = "web_search"',
    ),
    ({"input": [{"type": "computer_call_output"}]}, 'input[0].type = "computer_call_output"'),
    (
        {
            "input": [
                {"role": "user", "type": "message", "content": [{"type": "input_image", "image_url": URL}]}
            ]
        },
        f'input[0].content[0].image_url = "{URL}"',
    ),
    (
        {"input": [{"type": "function_call_output", "call_id": "c", "output": {"type": "input_file"}}]},
        'input[0].output = {"type": "input_file"}',
    ),
    ({"reasoning": {"mode": "pro"}}, 'reasoning.mode = "pro"'),
    ({"truncation": "auto"}, 'truncation = "auto"'),
    ({"store": True}, "store = true"),
    ({"prompt_cache_options": {"ttl": "12h"}}, 'prompt_cache_options = {"ttl": "12h"}'),
]
CHAT_REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"n": 2}, "n = 2"),
    ({"n": True}, "n = true"),
    ({"provider": {"order": ["expensive"]}}, "provider = "),
    ({"modalities": ["text", "audio"], "audio": {}}, "modalities = "),
    ({"web_search_options": {}}, "web_search_options = {}"),
    ({"n_predict": 30_000}, "n_predict = 30000"),
    ({"tool_choice": "none"}, 'tool_choice = "none"'),
    ({"messages": [{"role": "assistant", "tool_calls": [{}]}]}, "messages[0].tool_calls[0].function = null"),
    (
        {"messages": [{"role": "assistant", "tool_calls": [{"type": "function", "function": "f"}]}]},
        'messages[0].tool_calls[0].function = "f"',
    ),
    ({"tools": [{"google_search": {}}]}, "tools[0].google_search = {}"),
    (posted({"video_url": {"url": URL}}), "messages[0].content[0].video_url"),
    (posted({"type": "file", "file": {"file_id": "f"}}), 'messages[0].content[0].type = "file"'),
    (
        posted({"type": "image_url", "image_url": {"url": URL}}),
        f'messages[0].content[0].image_url.url = "{URL}"',
    ),
]
REFUSED: dict[Protocol, list[tuple[dict[str, Any], str]]] = {
    "anthropic": MESSAGES_REFUSED,
    "openai": RESPONSES_REFUSED,
    "openai-chat": CHAT_REFUSED,
}


@pytest.mark.parametrize(
    ("protocol", "more", "named"),
    [(protocol, *case) for protocol, cases in REFUSED.items() for case in cases],
)
def test_anything_else_is_refused_by_its_path(protocol: Protocol, more: dict[str, Any], named: str) -> None:
    found = check(protocol, {**REAL[protocol], **more})
    assert found.refusals, "nothing was refused"
    assert named in found.refusals[0]
    # What a refusal names as its key opens it, and nothing else.
    prices = dict.fromkeys(found.keys, Decimal("0.05"))
    opened = check(protocol, {**REAL[protocol], **more}, prices)
    assert (opened.refusals, opened.extra_usd) == ([], Decimal("0.05") * len(found.keys))
    assert check(protocol, REAL[protocol], prices).extra_usd == 0


def test_betas_are_checked_one_by_one() -> None:
    headers = {"anthropic-beta": "effort-2025-11-24, context-1m-2025-08-07", "x-stainless-os": "Linux"}
    found = check("anthropic", ANTHROPIC, headers=headers)
    assert found.refusals == ['anthropic-beta = "context-1m-2025-08-07"']
    assert found.keys == ["anthropic-beta=context-1m-2025-08-07"]


def test_tool_arguments_are_treated_as_data() -> None:
    data = {"type": "file", "cache_control": {"ttl": "1h"}, "content": [{"type": "document"}]}
    call = {"type": "tool_use", "id": "t", "name": "Write", "input": data}
    assert check("anthropic", {"messages": [{"role": "assistant", "content": [call]}]}).refusals == []


def test_refusals_are_few_and_short_for_a_hostile_body() -> None:
    body = {f"field{'x' * 500} {number}\n": "y" * 10_000 for number in range(10_000)}
    words = check("anthropic", body).describe()
    assert len(words) < 2000
    assert "\n" not in words


class CountedPrices(dict[str, Decimal]):
    """Counts how often a key is looked up, which is done for each value that is examined."""

    lookups = 0

    def __contains__(self, key: object) -> bool:
        self.lookups += 1
        return super().__contains__(key)


def test_few_values_are_examined_after_a_refusal() -> None:
    prices = CountedPrices()
    found = check("anthropic", posted(*[[]] * 50_000), prices)
    assert found.refusals == ["messages[0].content[0] = []"]
    assert prices.lookups < 2_000


def test_all_values_are_examined_until_one_is_refused() -> None:
    opened = {"type": "text", "text": "x", "opened": 1}
    refused = {"type": "text", "text": "x", "closed": 1}
    prices = {"messages[].content[].opened": Decimal(1)}
    found = check("anthropic", posted(*[opened] * 5_000, refused), prices)
    assert found.refusals == ["messages[0].content[5000].closed = 1"]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_reason_is_given_for_keys_of_the_allow_list_only(protocol: Protocol) -> None:
    keys = keys_of_list(ALLOW_LISTS[protocol])
    for beginning in ALLOW_LISTS[protocol].unsent:
        assert any(key.startswith(beginning) for key in keys), beginning
