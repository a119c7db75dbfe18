"""Ways by OpenAI's Responses."""

from __future__ import annotations

from typing import Any

from support.attacks.ways.way import GO_ON, LARGE, Json, Outcome, Way, items, shot
from support.attacks.ways.way import user as chat_user

_HOSTED = [{"type": "web_search"}]
_THOUGHT = {"type": "reasoning", "summary": [], "encrypted_content": LARGE}
_RETURNED = {"type": "function_call_output", "call_id": "c1", "id": "fco_a"}
_STORED = {"type": "message", "role": "user", "id": "msg_a", "content": LARGE[:50_000]}


def user(content: str = GO_ON) -> Json:
    return {"type": "message", **chat_user(content)}


def _added(description: str) -> Json:
    """Return an item that adds one tool."""
    tool = {"type": "function", "name": "f", "description": description, "parameters": {}}
    return {"type": "additional_tools", "role": "developer", "tools": [tool]}


def _post(*given: Json, **more: Any) -> Json:
    return shot("openai", items(*given, **more))


LISTED = (
    Way(
        "hosted tools in an item",
        "openai",
        Outcome.REFUSED,
        (_post(user(), {"type": "additional_tools", "role": "developer", "tools": _HOSTED}),),
        (),
        "additional_tools",
        "web_search",
    ),
    Way(
        "tools in an item that another item has replaced",
        "openai",
        Outcome.BOUNDED,
        (_post(_added(LARGE), user("hello")),),
        (_post(_added(LARGE), _added("short"), user("hello")),) * 2,
    ),
    Way(
        "tools that an item has replaced",
        "openai",
        Outcome.BOUNDED,
        (_post(user("hello"), tools=_added(LARGE)["tools"]),),
        (_post(_added("short"), user("hello"), tools=_added(LARGE)["tools"]),) * 2,
    ),
    Way(
        "hosted tools found by a search",
        "openai",
        Outcome.REFUSED,
        (_post(user(), {"type": "tool_search_output", "call_id": "c1", "tools": _HOSTED}),),
        (),
        "tool_search_output",
        "web_search",
    ),
    Way(
        "reasoning of all turns",
        "openai",
        Outcome.BOUNDED,
        (_post(_THOUGHT, user("hello"), reasoning={"context": "all_turns"}),),
        (_post(_THOUGHT, user("hello")),) * 2,
        "reasoning.context",
    ),
    Way(
        "truncation left out of the next request",
        "openai",
        Outcome.PARTLY_REFUSED,
        (_post(user(LARGE)),),
        (_post(user(LARGE), user("y" * 12_000), truncation="auto"),),
        "truncation",
    ),
    Way(
        "stored items by id",
        "openai",
        Outcome.REFUSED,
        (_post(*[{"type": "message", "id": "msg_a"}] * 5, user()),),
        (_post(_STORED, store=True),),
        "id",
    ),
    Way(
        "stored items by id without a type",
        "openai",
        Outcome.REFUSED,
        (_post(*[{"id": "msg_a"}] * 5, user()),),
        (_post(_STORED, store=True),),
        "id",
        "type",
    ),
    Way(
        "cache with a longer lifetime",
        "openai",
        Outcome.REFUSED,
        (_post(user(LARGE), prompt_cache_options={"ttl": "12h"}),),
        (),
        "prompt_cache_options",
    ),
    Way(
        "screenshots by address",
        "openai",
        Outcome.REFUSED,
        (
            _post(
                user(),
                *[
                    {
                        "type": "computer_call_output",
                        "call_id": f"c{number}",
                        "output": {"type": "computer_screenshot", "image_url": "https://example.org/a.png"},
                    }
                    for number in range(10)
                ],
            ),
        ),
        (),
        "computer_call_output",
    ),
)

OTHERS = (
    Way(
        "stored items by id with empty content",
        "openai",
        Outcome.PARTLY_REFUSED,
        (_post(user(), *[{"type": "reasoning", "id": "rs_a", "summary": [], "content": []}] * 5),),
        (_post(user("hello"), {**_THOUGHT, "id": "rs_a", "encrypted_content": LARGE[:50_000]}),) * 2,
        "id",
    ),
    Way(
        "stored items by id with an empty output",
        "openai",
        Outcome.PARTLY_REFUSED,
        (
            _post(user(), *[{**_RETURNED, "output": ""}] * 5),
            _post(user(), *[{**_RETURNED, "output": [{"type": "input_text", "text": ""}]}] * 5),
        ),
        (_post(user("hello"), {**_RETURNED, "output": LARGE}),) * 2,
        "id",
    ),
    Way(
        "prompt in another protocol's field",
        "openai",
        Outcome.REFUSED,
        (_post(user(), messages=[chat_user(LARGE)]),),
        (),
        "messages",
    ),
    Way(
        "file by address as a result's only part",
        "openai",
        Outcome.REFUSED,
        (
            _post(
                user(),
                {
                    "type": "function_call_output",
                    "call_id": "c1",
                    "output": {"type": "input_file", "file_url": "https://example.org/a.pdf"},
                },
            ),
        ),
        (),
        "input_file",
        "output",
    ),
    Way(
        "parallel items by id",
        "openai",
        Outcome.REFUSED,
        (_post(*[{"type": "message", "id": "msg_a"}] * 5, user()),),
        (_post(_STORED, store=True),),
        "id",
        connections=16,
        delay_s=0.05,
    ),
)
