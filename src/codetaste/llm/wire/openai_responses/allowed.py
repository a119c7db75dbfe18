"""What requests of OpenAI's Responses protocol may have under a budget.

Content that is stored at the provider is not in it, and no tools that the provider runs, neither among the
tools nor in an item that adds tools.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

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

if TYPE_CHECKING:
    from codetaste.llm.wire.common.allow_list import Form

_PART = Kinds(
    {
        "input_text": Fields({"text": SCALAR}),
        "output_text": Fields({"text": SCALAR, "annotations": Items(DATA), "logprobs": Items(DATA)}),
        "refusal": Fields({"refusal": SCALAR}),
        "input_image": Fields({"image_url": Beginning(PICTURE_URLS), "detail": SCALAR}),
    }
)
_OUTPUT = text_or(
    Kinds(
        {
            "input_text": Fields({"text": SCALAR}),
            "input_image": Fields({"image_url": Beginning(PICTURE_URLS), "detail": SCALAR}),
        }
    )
)
_MORE = {"id": SCALAR, "status": SCALAR}
_CALLED: dict[str, Form] = {"call_id": SCALAR, "name": SCALAR, **_MORE}
_RETURNED: dict[str, Form] = {"call_id": SCALAR, "id": SCALAR, "output": _OUTPUT}

_OWN_TOOLS = {
    "function": Fields({"name": SCALAR, "description": SCALAR, "parameters": DATA, "strict": SCALAR}),
    "custom": Fields({"name": SCALAR, "description": SCALAR, "format": DATA}),
}
"""Tools that the client runs."""

_CLIENT_TOOLS = {
    **_OWN_TOOLS,
    "namespace": Fields({"name": SCALAR, "description": SCALAR, "tools": Items(Kinds(_OWN_TOOLS))}),
}
_SEARCH: dict[str, Form] = {"call_id": SCALAR, "execution": OneOf("client"), **_MORE}
"""Of a search for tools that the client runs: what it finds is in the request itself. Without ``execution``
the provider runs it."""

_MESSAGE: dict[str, Form] = {
    "role": OneOf("user", "assistant", "system", "developer"),
    "content": text_or(_PART),
}
_ITEM = Kinds(
    {
        "message": Fields(
            {
                **_MESSAGE,
                "phase": SCALAR,
                **_MORE,
            },
            own=("content",),
        ),
        "reasoning": Fields(
            {
                "summary": Items(Kinds({"summary_text": Fields({"text": SCALAR})})),
                "content": Items(Kinds({"reasoning_text": Fields({"text": SCALAR})})),
                "encrypted_content": SCALAR,
                **_MORE,
            },
            own=("encrypted_content", "content"),
        ),
        "function_call": Fields({"arguments": SCALAR, "namespace": SCALAR, **_CALLED}, own=("arguments",)),
        "function_call_output": Fields(_RETURNED, own=("output",)),
        "custom_tool_call": Fields({"input": SCALAR, "namespace": SCALAR, **_CALLED}, own=("input",)),
        "custom_tool_call_output": Fields(_RETURNED, own=("output",)),
        "tool_search_call": Fields({"arguments": DATA, **_SEARCH}, ("arguments",), ("execution",)),
        "tool_search_output": Fields(
            {"tools": Items(Kinds(_CLIENT_TOOLS)), **_SEARCH}, ("tools",), ("execution",)
        ),
        # Tools that the client runs, as in tools: their JSON bounds their tokens.
        "additional_tools": Fields(
            {"role": OneOf("developer"), "tools": Items(Kinds(_CLIENT_TOOLS)), "id": SCALAR}, own=("tools",)
        ),
    },
    # Without a type: a message that has no id, as it could be that of a stored item.
    default=Fields(_MESSAGE),
)
_TOOL = Kinds(
    {
        **_CLIENT_TOOLS,
        "tool_search": Fields(
            {"execution": OneOf("client"), "description": SCALAR, "parameters": DATA}, needs=("execution",)
        ),
    }
)
_BODY = Fields(
    {
        "model": SCALAR,
        "max_output_tokens": SCALAR,
        "input": text_or(_ITEM),
        "instructions": SCALAR,
        "tools": Items(_TOOL),
        "tool_choice": OneOf("auto"),
        "parallel_tool_calls": SCALAR,
        "stream": SCALAR,
        "store": FALSE,
        "include": Items(OneOf("reasoning.encrypted_content")),
        "prompt_cache_key": SCALAR,
        # The context decides which of the reasoning in the input is in the prompt: its JSON bounds all of it.
        "reasoning": Fields({"effort": SCALAR, "summary": SCALAR, "context": OneOf("all_turns")}),
        "text": Fields({"verbosity": SCALAR, "format": DATA}),
        "client_metadata": DATA,
        "service_tier": OneOf("default"),
        "temperature": SCALAR,
        "top_p": SCALAR,
    }
)

_REPLIED = "of the provider's replies, which programs send back"
_SAMPLED = "decides which tokens a reply has, and all of them are counted"

ALLOWED = AllowList(
    body=_BODY,
    options=Fields({"service_tier": SCALAR, "provider": DATA, "route": DATA, "preset": DATA}),
    headers={"accept": None, "user-agent": None},
    unsent={
        "input[]<message>.content[]<refusal>": _REPLIED,
        "input[]<message>.content[]<output_text>.annotations": _REPLIED,
        "input[]<message>.content[]<output_text>.logprobs": _REPLIED,
        "input[]<message>.content[]<input_image>.detail": "the size of a picture, which is bounded",
        "input[]<message>.role=system": "the older name of the developer's role",
        "input[]<function_call>.namespace": _REPLIED,
        "input[]<function_call_output>.output[]<input_text>": "a text as a list",
        "input[]<custom_tool_call_output>.output[]": "as of other outputs",
        "tools[]<namespace>.tools[]<custom>": "a tool of the client",
        "input[]<additional_tools>.tools[]<custom>": "as in tools",
        "input[]<additional_tools>.tools[]<function>": "as in tools",
        "input[]<message>.phase": _REPLIED,
        "input[]<message>.status": _REPLIED,
        "input[]<reasoning>": _REPLIED,
        "input[]<tool_search_call>": "of Codex's own search for tools",
        "input[]<tool_search_output>": "of Codex's own search for tools",
        "text.format": _SAMPLED,
        "temperature": _SAMPLED,
        "top_p": _SAMPLED,
        "service_tier": "the tier of the price table",
    },
)
