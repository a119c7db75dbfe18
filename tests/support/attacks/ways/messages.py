"""Ways by Anthropic's Messages."""

from __future__ import annotations

from typing import Any

from support.attacks.ways.way import (
    LARGE,
    Json,
    Outcome,
    Way,
    assistant,
    called,
    messages,
    result,
    shot,
    text,
    user,
)

_HOSTED_SEARCH = {"type": "web_search_20250305", "name": "web_search", "max_uses": 50}
_DEFINITION = {
    "type": "tool_addition",
    "tool": {"type": "tool_definition", "definition": _HOSTED_SEARCH},
}
_TALK = (user("hello"), assistant(called()), result(LARGE), user("now"))


def _post(*turns: Json, **more: Any) -> Json:
    return shot("anthropic", messages(*turns, **more))


def _argument(marker: Json) -> Json:
    return assistant(called({"list": [marker] * 900}))


def _look(**more: Any) -> Json:
    return {"name": "look", "description": LARGE, "input_schema": {"type": "object"}, **more}


_CLEARING = {"edits": [{"type": "clear_tool_uses_20250919", "keep": {"type": "tool_uses", "value": 0}}]}
_REMOTE = {"type": "url", "url": "https://example.org/a.pdf"}
_THOUGHT = assistant({"type": "thinking", "thinking": LARGE, "signature": "s"}, called())
_SHORT_THOUGHT = assistant({"type": "thinking", "thinking": "hm", "signature": "s"}, called())
_ON = {"thinking": {"type": "enabled", "budget_tokens": 1024}, "max_tokens": 2000}
_WORDS = [user(f"a {number}") for number in range(300)]
_ANSWERS = [assistant(text(f"b {number}")) for number in range(300)]

LISTED = (
    Way(
        "clearing left out of the next request",
        "anthropic",
        Outcome.PARTLY_REFUSED,
        (_post(*_TALK),),
        (_post(*_TALK, context_management=_CLEARING),),
        "context_management",
    ),
    Way(
        "thinking that becomes current",
        "anthropic",
        Outcome.BOUNDED,
        (_post(user("hello"), _THOUGHT, result(), **_ON),),
        (_post(user("hello"), _THOUGHT, result(), assistant(text("done")), user("now"), **_ON),),
        "thinking",
    ),
    Way(
        "thinking that a result beside a text makes current again",
        "anthropic",
        Outcome.BOUNDED,
        (_post(user("hello"), _THOUGHT, user("now"), result(), **_ON),),
        (_post(user("hello"), _THOUGHT, user("now"), **_ON),),
        "thinking",
    ),
    Way(
        "thinking that is off in one request of a turn",
        "anthropic",
        Outcome.BOUNDED,
        (
            _post(
                *(user("hello"), _THOUGHT, result(), assistant(called()), result()),
                *(_SHORT_THOUGHT, result()),
                **_ON,
            ),
        ),
        (_post(user("hello"), _THOUGHT, result(), assistant(called()), result(), **_ON),),
        "thinking",
    ),
    Way(
        "messages that are merged in one request and not in the next",
        "anthropic",
        Outcome.BOUNDED,
        (_post(*[each for pair in zip(_WORDS, _ANSWERS, strict=True) for each in pair]),),
        (_post(*_WORDS, *_ANSWERS),),
        "merged",
    ),
    Way(
        "deferred tools that a reference loads",
        "anthropic",
        Outcome.REFUSED,
        (
            _post(
                user("hello"),
                assistant(called()),
                result([{"type": "tool_reference", "tool_name": "look"}]),
                tools=[_look(defer_loading=True)],
            ),
        ),
        (_post(user("hello"), tools=[_look(defer_loading=True)]),),
        "defer_loading",
    ),
    Way(
        "cache markers as a tool's argument",
        "anthropic",
        Outcome.BOUNDED,
        (
            _post(
                user("hello"),
                _argument({"cache_control": {"type": "ephemeral", "a": "x" * 65}}),
                result(),
            ),
        ),
        (_post(user("hello"), _argument({}), result()),),
        "cache_control",
    ),
    Way(
        "tool defined inside a message",
        "anthropic",
        Outcome.REFUSED,
        (_post(user("hello"), {"role": "system", "content": [_DEFINITION]}, user()),),
        (),
        "tool_addition",
    ),
    Way(
        "document by address inside a result",
        "anthropic",
        Outcome.REFUSED,
        (
            _post(
                user("hello"),
                assistant(called()),
                user(
                    [
                        {
                            "type": "web_fetch_tool_result",
                            "tool_use_id": "t1",
                            "content": {
                                "type": "web_fetch_result",
                                "url": _REMOTE["url"],
                                "content": {"type": "document", "source": _REMOTE},
                            },
                        }
                    ]
                ),
            ),
        ),
        (),
        "document",
        "web_fetch_tool_result",
    ),
)

_LIGATURE = "\ufdfa"
"""One character of 3 bytes, which normalisation makes 33 bytes of."""
_SUMMARY = {"type": "compaction", "content": "short"}
_LONG = [["anthropic-beta", "context-1m-2025-08-07"], ["content-type", "application/json"]]
_TWICE = '{"model":"expensive","max_tokens":16,"max_tokens":4000,"messages":[],"messages":%s}'
_SMUGGLED = "0\r\n\r\nPOST /v1/messages HTTP/1.1\r\nhost: a\r\ncontent-length: 2\r\nx-api-key: none\r\n\r\n{}"

OTHERS = (
    Way(
        "compaction left out of the next request",
        "anthropic",
        Outcome.PARTLY_REFUSED,
        (_post(user(LARGE), assistant(text("one")), user("now")),),
        (
            _post(
                user(LARGE), assistant({"type": "compaction", "content": "short"}, text("one")), user("now")
            ),
        ),
        "compaction",
    ),
    Way(
        "tools added by a compaction",
        "anthropic",
        Outcome.REFUSED,
        (
            _post(
                user("hello"),
                assistant({**_SUMMARY, "tool_changes": [_DEFINITION]}),
                user(),
            ),
        ),
        (),
        "tool_addition",
        "compaction",
    ),
    Way(
        "block types in another case",
        "anthropic",
        Outcome.REFUSED,
        (_post(user("hello"), assistant(called()), result([{"type": "Document", "source": _REMOTE}])),),
        (),
        "document",
        "Document",
    ),
    Way(
        "sentences with citations",
        "anthropic",
        Outcome.REFUSED,
        (
            _post(
                user(
                    [
                        {
                            "type": "document",
                            "source": {"type": "text", "media_type": "text/plain", "data": "a. " * 9000},
                            "citations": {"enabled": True},
                        },
                        text("[@number@]"),
                    ]
                )
            ),
        ),
        (),
        "citations",
        "document",
    ),
    Way(
        "price of a long context",
        "anthropic",
        Outcome.REFUSED,
        (shot("anthropic", messages(user(LARGE)), headers=_LONG),),
        (),
        "context-1m",
    ),
    Way(
        "text that grows when it is normalised, and a reply that cannot be read",
        "anthropic",
        Outcome.BOUNDED,
        (_post(user(f"[nested answer] [@number@] {_LIGATURE * 1500}"), max_tokens=1024),),
    ),
    Way(
        "replies after the time limit",
        "anthropic",
        Outcome.BOUNDED,
        (_post(user(f"[@number@] {LARGE[:30_000]}")),),
        delay_s=0.5,
        timeout_s=0.2,
    ),
    Way("fast mode", "anthropic", Outcome.REFUSED, (_post(user(), speed="fast"),), (), "speed"),
    Way(
        "another region",
        "anthropic",
        Outcome.REFUSED,
        (_post(user(), inference_geo="us"),),
        (),
        "inference_geo",
    ),
    Way(
        "priority tier",
        "anthropic",
        Outcome.REFUSED,
        (_post(user(), service_tier="auto"),),
        (),
        "service_tier",
    ),
    Way(
        "cache lifetime as a number",
        "anthropic",
        Outcome.REFUSED,
        (_post(user([{**text(LARGE), "cache_control": {"type": "ephemeral", "ttl": 3600}}])),),
        (),
        "ttl",
    ),
    Way(
        "keys twice in a body",
        "anthropic",
        Outcome.BOUNDED,
        (shot("anthropic", _TWICE % '[{"role":"user","content":"[answer 4000] [@number@]"}]'),),
    ),
    Way(
        "compressed body",
        "anthropic",
        Outcome.REFUSED,
        (
            shot(
                "anthropic",
                messages(user(LARGE)),
                headers=[["content-encoding", "gzip"], ["content-encoding", "identity"]],
                compress=True,
            ),
        ),
    ),
    Way(
        "request inside a request",
        "anthropic",
        Outcome.REFUSED,
        (
            shot(
                "anthropic",
                _SMUGGLED,
                headers=[["transfer-encoding", "chunked"], ["content-length", "5"]],
            ),
        ),
    ),
    Way(
        "other endpoints",
        "anthropic",
        Outcome.REFUSED,
        tuple(
            shot("anthropic", messages(user("[answer 4000]")), path=path)
            for path in (
                "/v1/messages/batches",
                "/v1/messages/count_tokens",
                "/v1/messages/../messages/batches",
                "/v1/responses/resp_1",
                "/v1/responses/compact",
                "/v1/complete",
                "/v1/chat/completions",
                "/v1/messages%2Fbatches",
                "//v1/messages/batches",
            )
        ),
    ),
    Way(
        "hanging up before the usage",
        "anthropic",
        Outcome.BOUNDED,
        (shot("anthropic", messages(user("[answer 900]"), max_tokens=900, stream=True), hang_up=True),),
        delay_s=0.05,
    ),
    Way(
        "parallel requests that race the reservation",
        "anthropic",
        Outcome.PARTLY_REFUSED,
        (_post(*_TALK),),
        (_post(*_TALK, context_management=_CLEARING),),
        connections=16,
        delay_s=0.05,
    ),
    Way(
        "job started again",
        "anthropic",
        Outcome.PARTLY_REFUSED,
        (_post(*_TALK),),
        (_post(*_TALK, context_management=_CLEARING),),
        sessions=6,
    ),
)
