"""What requests of Anthropic's Messages protocol may have under a budget.

Documents are not in it: the bytes of a PDF do not bound its pages, nor those of a source with citations what
a provider makes of it. Context may not be cleared, compacted or loaded later by the provider, since its
counts of such a request say nothing about the next one.
"""

from __future__ import annotations

from codetaste.llm.wire.common.allow_list import (
    DATA,
    PICTURE_TYPES,
    SCALAR,
    AllowList,
    Fields,
    Items,
    Kinds,
    OneOf,
    text_or,
)

_CACHE = {"cache_control": Fields({"type": OneOf("ephemeral")})}
_RESULT_PICTURE = "messages[].content[]<tool_result>.content[]<image>.source<base64>.media_type"
_SOURCE = Kinds({"base64": Fields({"media_type": OneOf(*PICTURE_TYPES), "data": SCALAR})})

_TEXT = {"text": SCALAR}
_IMAGE = {"source": _SOURCE}
_RESULT = Fields(
    {
        "tool_use_id": SCALAR,
        "content": text_or(Kinds({"text": Fields(_TEXT), "image": Fields(_IMAGE)})),
        "is_error": SCALAR,
        **_CACHE,
    }
)
_CALL = Fields(
    {"id": SCALAR, "name": SCALAR, "input": DATA, "caller": Fields({"type": OneOf("direct")}), **_CACHE}
)
_BLOCK = Kinds(
    {
        "text": Fields({**_TEXT, "citations": OneOf(), **_CACHE}),
        "image": Fields({**_IMAGE, **_CACHE}),
        "thinking": Fields({"thinking": SCALAR, "signature": SCALAR}),
        "redacted_thinking": Fields({"data": SCALAR}),
        "tool_use": _CALL,
        "tool_result": _RESULT,
    }
)
_MESSAGE = Fields(
    {
        "role": OneOf("user", "assistant", "system"),
        "content": text_or(_BLOCK),
        # How much the model thinks from here on: the cap bounds its thinking, too.
        "output_config": Fields({"effort": SCALAR}),
    }
)
_TOOL = Kinds(
    {
        "custom": Fields(
            {"name": SCALAR, "description": SCALAR, "input_schema": DATA, "strict": SCALAR, **_CACHE}
        )
    },
    default="custom",
)

_BODY = Fields(
    {
        "model": SCALAR,
        "max_tokens": SCALAR,
        "messages": Items(_MESSAGE),
        "system": text_or(Kinds({"text": Fields({**_TEXT, **_CACHE})})),
        "tools": Items(_TOOL),
        "tool_choice": Kinds({"auto": Fields({})}),
        "stream": SCALAR,
        "metadata": Fields({"user_id": SCALAR}),
        "thinking": Fields(
            {
                "type": OneOf("enabled", "adaptive", "between_tools", "disabled"),
                "budget_tokens": SCALAR,
                "display": SCALAR,
            }
        ),
        "context_management": Fields(
            {"edits": Items(Kinds({"clear_thinking_20251015": Fields({"keep": OneOf("all")})}))}
        ),
        "output_config": Fields({"effort": SCALAR, "format": Fields({"type": SCALAR, "schema": DATA})}),
        "temperature": SCALAR,
        "top_p": SCALAR,
        "top_k": SCALAR,
        "stop_sequences": Items(SCALAR),
        "service_tier": OneOf("standard_only"),
    }
)

_REPLIED = "of the provider's replies, which programs send back"
_SAMPLED = "decides which tokens a reply has, and all of them are counted"

_BETWEEN = "of releases between the tested ones; it only permits fields of a body, which are checked"

_BETAS = frozenset(
    {
        "adaptive-thinking-2026-01-28",
        "claude-code-20250219",
        "context-management-2025-06-27",
        "effort-2025-11-24",
        "interleaved-thinking-2025-05-14",
        "mid-conversation-system-2026-04-07",
        "mid-conversation-tool-changes-2026-07-01",
        "per-turn-control-2026-07-01",
        "prompt-caching-scope-2026-01-05",
        "structured-outputs-2025-12-15",
        "thinking-display-updates-2026-08-18",
        "thinking-token-count-2026-05-13",
    }
)

ALLOWED = AllowList(
    body=_BODY,
    options=Fields(
        {
            "cache_control": DATA,
            "betas": Items(OneOf(*_BETAS)),
            "service_tier": SCALAR,
            "speed": SCALAR,
            "inference_geo": SCALAR,
        }
    ),
    headers={
        "accept": None,
        "user-agent": None,
        "x-app": None,
        "anthropic-version": frozenset({"2023-06-01", "2026-10-21"}),
        "anthropic-beta": _BETAS,
    },
    query=frozenset({"beta=true"}),
    unsent={
        "anthropic-version=2026-10-21": "of the official client, which our own loop uses",
        "messages[].content[]<thinking>": _REPLIED,
        "messages[].content[]<redacted_thinking>": _REPLIED,
        "messages[].content[]<tool_use>.caller": _REPLIED,
        "messages[].content[]<text>.citations": f"{_REPLIED}: null",
        "messages[].content[]<image>": "a picture in a prompt of Claude Code",
        **dict.fromkeys(
            (f"{_RESULT_PICTURE}={kind}" for kind in PICTURE_TYPES if kind != "image/png"),
            "as a PNG is sent, which the recorded sessions have",
        ),
        "anthropic-beta=adaptive-thinking-": _BETWEEN,
        "anthropic-beta=mid-conversation-system-": _BETWEEN,
        "anthropic-beta=prompt-caching-scope-": _BETWEEN,
        "anthropic-beta=structured-outputs-": _BETWEEN,
        "thinking.type=disabled": "the gateway sends it when the cap is too low for thinking",
        "thinking.type=between_tools": "turns off the thinking before a reply of Claude Sonnet 5.5",
        "output_config.format": _SAMPLED,
        "temperature": _SAMPLED,
        "top_p": _SAMPLED,
        "top_k": _SAMPLED,
        "stop_sequences": _SAMPLED,
        "service_tier": "the tier of the price table",
        "tools[]<custom>.strict": _SAMPLED,
    },
)
