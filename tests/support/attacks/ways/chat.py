"""Ways by Chat Completions, at servers of every kind."""

from __future__ import annotations

from typing import Any

from support.attacks.ways.way import LARGE, Json, Outcome, Way, chat, shot, user

_LIGATURE = "\ufdfa"
"""One character of 3 bytes, which normalisation makes 33 bytes of."""
_TOOL = {
    "type": "function",
    "function": {"name": "look", "description": LARGE, "parameters": {"type": "object"}},
}
_THOUGHT = {"role": "assistant", "content": "well", "reasoning_content": LARGE}
_ENUM = {"function": {"name": "look", "parameters": {"enum": [0] * 1500}}}
_REPEATED = "{% for i in range(1000) %}{{ messages }}{% endfor %}"


def _assistant(words: str) -> Json:
    return {"role": "assistant", "content": words}


def _system(words: str) -> Json:
    return {"role": "system", "content": words}


def _post(*turns: Json, **more: Any) -> Json:
    return shot("openai-chat", chat(*turns, **more))


LISTED = (
    Way(
        "cap that the server does not know",
        "openai-chat",
        Outcome.BOUNDED,
        (
            _post(
                user("[answer 30000] [@number@]"),
                max_tokens=None,
                max_completion_tokens=16,
            ),
        ),
        (),
        "max_completion_tokens",
    ),
    Way(
        "search by an empty object",
        "openai-chat",
        Outcome.REFUSED,
        (_post(user(), web_search_options={}),),
        (),
        "web_search_options",
    ),
)

OTHERS = (
    Way(
        "template that repeats the prompt",
        "openai-chat",
        Outcome.REFUSED,
        (_post(user(), chat_template=_REPEATED),),
        (),
        "chat_template",
    ),
    Way(
        "video without a type",
        "openai-chat",
        Outcome.REFUSED,
        (_post(user([{"video_url": {"url": "https://example.org/a.mp4"}}])),),
        (),
        "video_url",
    ),
    Way(
        "tools that count only if they may be called",
        "openai-chat",
        Outcome.PARTLY_REFUSED,
        (_post(user("hello"), tools=[_TOOL]),),
        (_post(user("hello"), tools=[_TOOL], tool_choice="none"),),
        "tool_choice",
    ),
    Way(
        "truncated prompt",
        "openai-chat",
        Outcome.PARTLY_REFUSED,
        (_post(user(LARGE)),),
        (_post(user(LARGE), truncate_prompt_tokens=100),),
        "truncate_prompt_tokens",
    ),
    Way(
        "reasoning that becomes current",
        "openai-chat",
        Outcome.BOUNDED,
        (_post(user("hello"), _THOUGHT),),
        (_post(user("hello"), _THOUGHT, user("now")),),
        "reasoning_content",
    ),
    Way(
        "reasoning in a text that becomes current",
        "openai-chat",
        Outcome.BOUNDED,
        (_post(user("hello"), _assistant(f"<think>{LARGE}</think>well")),),
        (_post(user("hello"), _assistant(f"<think>{LARGE}</think>well"), user("now")),),
        "reasoning text",
    ),
    Way(
        "system message that is not replaced any more",
        "openai-chat",
        Outcome.BOUNDED,
        (_post(_system(LARGE), user("hello")),),
        (_post(_system(LARGE), _system("short"), user("hello")),),
        "replaced system",
    ),
    Way(
        "tools that a template indents",
        "openai-chat",
        Outcome.BOUNDED,
        (_post(user(), tools=[_ENUM]),),
        (),
        "indented tools",
    ),
    Way(
        "tools that a template repeats",
        "openai-chat",
        Outcome.DISPUTED,
        (_post(user("[template that repeats tools]"), tools=[_TOOL]),),
        (),
        "repeated tools",
    ),
    Way(
        "choices in a nested body",
        "openai-chat",
        Outcome.REFUSED,
        (_post(user("[answer 1000] [@number@]"), max_tokens=1000, extra_body={"n": 128}),),
        (),
        "extra_body",
    ),
    Way(
        "hosted tool without a type",
        "openai-chat",
        Outcome.REFUSED,
        (_post(user(), tools=[{"google_search": {}}]),),
        (),
        "google_search",
        "tools",
    ),
    Way(
        "text that grows when it is normalised",
        "openai-chat",
        Outcome.BOUNDED,
        (_post(user(f"[@number@] {_LIGATURE * 1500}")),),
    ),
    Way(
        "instructions in another protocol's field",
        "openai-chat",
        Outcome.REFUSED,
        (_post(user(), instructions=LARGE),),
        (),
        "instructions",
    ),
    Way(
        "cap by another server's name",
        "openai-chat",
        Outcome.REFUSED,
        (_post(user("[answer 30000] [@number@]"), n_predict=30_000),),
        (),
        "n_predict",
    ),
    Way(
        "reply that repeats its beginning",
        "openai-chat",
        Outcome.PARTLY_REFUSED,
        (_post(user("hello"), _assistant(f"{LARGE}well"), user("now")),),
        (_post(user("hello"), {**_assistant(LARGE), "prefix": True}),),
        "prefix",
    ),
    Way(
        "message in the place of a tool",
        "openai-chat",
        Outcome.PARTLY_REFUSED,
        (_post(user(LARGE)),),
        (_post(user("hello"), tools=[user(LARGE)]),),
        "tools",
    ),
)
