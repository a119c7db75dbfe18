"""Ways by OpenAI's Responses."""

from __future__ import annotations

from typing import Any

from support.attacks.ways.way import LARGE, Json, Way, items, shot, user

_HOSTED = [{"type": "web_search"}]
_THOUGHT = {"type": "reasoning", "summary": [], "encrypted_content": LARGE}
_STORED = {"type": "message", "role": "user", "id": "msg_a", "content": LARGE[:50_000]}
_LARGE_FIRST, _SMALL = {"role": "user", "content": LARGE}, {"role": "user", "content": "y" * 12_000}


def _post(*given: Json, **more: Any) -> Json:
    return shot("openai", items(*given, **more))


LISTED = (
    Way(
        "hosted tools in an item",
        "openai",
        (_post(user(), {"type": "additional_tools", "role": "developer", "tools": _HOSTED}),),
        (),
        "additional_tools",
    ),
    Way(
        "hosted tools found by a search",
        "openai",
        (_post(user(), {"type": "tool_search_output", "call_id": "c1", "tools": _HOSTED}),),
        (),
        "tool_search_output",
    ),
    Way(
        "reasoning of all turns",
        "openai",
        (_post(_THOUGHT, user("hello"), reasoning={"context": "all_turns"}),),
        (_post(_THOUGHT, user("hello")),),
        "reasoning.context",
    ),
    Way(
        "truncation left out of the next request",
        "openai",
        (_post(_LARGE_FIRST),),
        (_post(_LARGE_FIRST, _SMALL, truncation="auto"),),
        "truncation",
    ),
    Way(
        "stored items by id",
        "openai",
        (_post(*[{"type": "message", "id": "msg_a"}] * 5, user()),),
        (_post(_STORED, store=True),),
        "id",
    ),
    Way(
        "stored items by id without a type",
        "openai",
        (_post(*[{"id": "msg_a"}] * 5, user()),),
        (_post(_STORED, store=True),),
        "id",
    ),
    Way(
        "cache with a longer lifetime",
        "openai",
        (_post(user(LARGE), prompt_cache_options={"ttl": "12h"}),),
        (),
        "prompt_cache_options",
    ),
    Way(
        "screenshots by address",
        "openai",
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
        "prompt in another protocol's field",
        "openai",
        (_post(user(), messages=[user(LARGE)]),),
        (),
        "messages",
    ),
    Way(
        "file by address as a result's only part",
        "openai",
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
        (_post(*[{"id": "msg_a"}] * 5, user()),),
        (_post(_STORED, store=True),),
        "id",
        connections=16,
        delay_s=0.05,
    ),
)
