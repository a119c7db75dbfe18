"""Requests of the same structure as those of Claude Code, Codex and Qwen Code."""

from __future__ import annotations

import json
from typing import Any

from codetaste.llm.wire.codecs import SERVERS
from codetaste.llm.wire.common.request import WireRequest, parse_body
from support.llm.provider.protocols import Protocol

PICTURE_URL = "data:image/png;base64,aGk="
PICTURE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}}
MARKER = {"cache_control": {"type": "ephemeral"}}

ANTHROPIC: dict[str, Any] = {
    "model": "sonnet",
    "max_tokens": 32000,
    "stream": True,
    "metadata": {"user_id": "u"},
    "thinking": {"type": "adaptive"},
    "context_management": {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]},
    "system": [{"type": "text", "text": "billing"}, {"type": "text", "text": "Be brief.", **MARKER}],
    "tools": [
        {"name": "Bash", "description": "Run.", "input_schema": {"type": "object"}},
        {"name": "Later", "description": "", "input_schema": {"type": "object"}, "strict": True},
    ],
    "messages": [
        {"role": "user", "content": [{"type": "text", "text": "Go."}, PICTURE]},
        {"role": "system", "content": [{"type": "text", "text": "# Environment"}]},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "hm", "signature": "c2ln"},
                {"type": "redacted_thinking", "data": "xx"},
                {"type": "text", "text": "I look."},
                {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "ls"}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"tool_use_id": "t1", "type": "tool_result", "content": "a.py", "is_error": False, **MARKER},
                {"type": "tool_result", "tool_use_id": "t2", "content": [PICTURE], "is_error": True},
            ],
        },
    ],
}
RESPONSES: dict[str, Any] = {
    "model": "gpt",
    "stream": True,
    "store": False,
    "include": ["reasoning.encrypted_content"],
    "parallel_tool_calls": True,
    "tool_choice": "auto",
    "prompt_cache_key": "k",
    "reasoning": {"effort": "medium"},
    "instructions": "Be brief.",
    "tools": [
        {"type": "tool_search", "execution": "client"},
        {"type": "function", "name": "shell", "description": "Run.", "strict": True, "parameters": {}},
        {"type": "custom", "name": "apply_patch", "description": "Patch.", "format": {"type": "grammar"}},
    ],
    "input": [
        {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "Rules."}]},
        {"type": "message", "id": "m1", "role": "user", "content": [{"type": "input_text", "text": "Go."}]},
        {"type": "reasoning", "id": "rs", "summary": [], "encrypted_content": "c2ln"},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "I look."}]},
        {"type": "function_call", "call_id": "c1", "name": "shell", "arguments": '{ "cmd": "ls"}'},
        {"type": "custom_tool_call", "call_id": "c2", "name": "apply_patch", "input": "*** Begin"},
        {"type": "function_call_output", "call_id": "c1", "output": "a.py"},
        {
            "type": "custom_tool_call_output",
            "call_id": "c2",
            "output": [
                {"type": "input_text", "text": "ok"},
                {"type": "input_image", "image_url": PICTURE_URL},
            ],
        },
    ],
}
CHAT: dict[str, Any] = {
    "model": "qwen",
    "stream": True,
    "stream_options": {"include_usage": True},
    "max_tokens": 8000,
    "max_completion_tokens": 8000,
    "tool_choice": "auto",
    "tools": [{"type": "function", "function": {"name": "look", "parameters": {}, "strict": True}}],
    "messages": [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": "Context."}]},
        {"role": "assistant", "content": [{"type": "text", "text": "Got it."}]},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "Go."},
                {"type": "image_url", "image_url": {"url": PICTURE_URL}},
            ],
        },
        {
            "role": "assistant",
            "content": None,
            "reasoning_content": "hm",
            "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{ "at": "x" }'}}
            ],
        },
        {"role": "tool", "tool_call_id": "c1", "name": "look", "content": "a.py"},
        {"role": "developer", "content": "Hurry."},
    ],
}
REAL: dict[Protocol, dict[str, Any]] = {"anthropic": ANTHROPIC, "openai": RESPONSES, "openai-chat": CHAT}


def read(protocol: Protocol, body: Any) -> WireRequest:
    return SERVERS[protocol].read_request(parse_body(json.dumps(body).encode()))
