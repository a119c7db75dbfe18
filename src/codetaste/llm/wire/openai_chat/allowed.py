"""What requests of the Chat Completions protocol may have under a budget.

Many servers speak variants of this protocol and ignore what they do not know, so a field that one of them
bills for is in no request at all.
"""

from __future__ import annotations

from codetaste.llm.wire.common.allow_list import (
    DATA,
    FALSE,
    PICTURE_URLS,
    SCALAR,
    AllowList,
    Beginning,
    Fields,
    Items,
    Kinds,
    OneOf,
    text_or,
)

_PART = Kinds(
    {
        "text": Fields({"text": SCALAR}),
        "image_url": Fields({"image_url": Fields({"url": Beginning(PICTURE_URLS), "detail": SCALAR})}),
        "refusal": Fields({"refusal": SCALAR}),
    },
    default="text",
)
_FUNCTION = Fields({"name": SCALAR, "arguments": SCALAR})
_CALL = Kinds(
    {"function": Fields({"id": SCALAR, "index": SCALAR, "function": _FUNCTION}, needs=("function",))},
    default="function",
)
_MESSAGE = Fields(
    {
        "role": OneOf("system", "developer", "user", "assistant", "tool"),
        "name": SCALAR,
        "content": text_or(_PART),
        "refusal": SCALAR,
        "tool_calls": Items(_CALL),
        "tool_call_id": SCALAR,
        "reasoning_content": SCALAR,
        "reasoning": SCALAR,
        "reasoning_details": Items(DATA),
    }
)
_TOOL = Kinds(
    {
        "function": Fields(
            {
                "function": Fields(
                    {"name": SCALAR, "description": SCALAR, "parameters": DATA, "strict": SCALAR}
                )
            }
        )
    },
    default="function",
)
_BODY = Fields(
    {
        "model": SCALAR,
        "max_tokens": SCALAR,
        "max_completion_tokens": SCALAR,
        "messages": Items(_MESSAGE),
        "tools": Items(_TOOL),
        "tool_choice": OneOf("auto"),
        "parallel_tool_calls": SCALAR,
        "stream": SCALAR,
        "stream_options": Fields({"include_usage": SCALAR}),
        "n": OneOf(1),
        "reasoning_effort": SCALAR,
        "temperature": SCALAR,
        "top_p": SCALAR,
        "top_k": SCALAR,
        "min_p": SCALAR,
        "seed": SCALAR,
        "stop": Items(SCALAR, SCALAR),
        "presence_penalty": SCALAR,
        "frequency_penalty": SCALAR,
        "repetition_penalty": SCALAR,
        "response_format": Fields({"type": SCALAR, "json_schema": DATA}),
        "service_tier": OneOf("default"),
        "store": FALSE,
    }
)

_REPLIED = "of the provider's replies, which programs send back"
_SAMPLED = "decides which tokens a reply has, and all of them are counted"

ALLOWED = AllowList(
    body=_BODY,
    options=Fields(
        {
            "output_cap": SCALAR,
            "send_reasoning": SCALAR,
            "service_tier": SCALAR,
            "provider": DATA,
            "route": DATA,
            "preset": DATA,
        }
    ),
    headers={"accept": None, "user-agent": None},
    unsent={
        "messages[].refusal": _REPLIED,
        "messages[].reasoning": _REPLIED,
        "messages[].name": _REPLIED,
        "messages[].content[]<refusal>": _REPLIED,
        "messages[].tool_calls[]<function>.index": _REPLIED,
        "messages[].role=developer": "the newer name of the system's role",
        "messages[].content[]<image_url>.image_url.detail": "the size of a picture, which is bounded",
        "tools[]<function>.function.strict": _SAMPLED,
        "parallel_tool_calls": _SAMPLED,
        "n": "the one reply that every server sends",
        "reasoning_effort": _SAMPLED,
        "temperature": _SAMPLED,
        "top_p": _SAMPLED,
        "top_k": _SAMPLED,
        "min_p": _SAMPLED,
        "seed": _SAMPLED,
        "stop": _SAMPLED,
        "presence_penalty": _SAMPLED,
        "frequency_penalty": _SAMPLED,
        "repetition_penalty": _SAMPLED,
        "response_format": _SAMPLED,
        "service_tier": "the tier of the price table",
        "store": "nothing is stored",
    },
)
