"""Scripted models for the rename of one function, whose two names stand in backticks in the description.

*finder* discovers rules for it. *careful* renames it everywhere, *hasty* in one file only.
"""

from __future__ import annotations

import json
import re
from typing import Any

from codetaste.llm.messages import Message, Request, TextBlock, ToolCall


def names_of(request: Request) -> tuple[str, str]:
    """Return the old and the new name: the first two in backticks in the task."""
    old, new, *_ = re.findall(r"`(\w+)`", request.messages[0].text)
    return old, new


def play(request: Request, steps: list[tuple[str, str, dict[str, Any]]], end: str = "") -> Message:
    """Reply with the step of this turn; after the last one say ``end``, or call ``finish``."""
    turn = sum(message.role == "assistant" for message in request.messages)
    if turn < len(steps):
        say, tool, arguments = steps[turn]
        return Message("assistant", (TextBlock(say), ToolCall(f"call-{turn}", tool, arguments)))
    if end:
        return Message("assistant", (TextBlock(end),))
    return Message("assistant", (ToolCall(f"call-{turn}", "finish", {}),))


def rule(name: str, kind: str, **pattern: str) -> dict[str, Any]:
    """Return a rule about the function ``name``."""
    head = {"id": f"{kind}-{name}", "message": f"{kind} {name}", "severity": "INFO"}
    return {**head, "languages": ["python"], **pattern}


def finder(request: Request) -> Message:
    """Find where the function is defined, imported and called, and register a rule for each."""
    old, new = names_of(request)
    name = new if "**additive**" in request.system else old
    rules = [
        rule(name, "calls", pattern=f"{name}(...)"),
        rule(name, "defines", pattern=f"def {name}(...): ..."),
        rule(name, "imports", pattern=f"from $MODULE import {name}"),
        rule(name, "mentions", **{"pattern-regex": rf"\b{name}\b"}),
    ]
    return play(
        request,
        [
            ("Where is it used?", "bash_explore", {"command": f"rg -c '\\b{old}\\b' | sort | head -40"}),
            ("One rule for each place.", "register", {"rules": json.dumps({"rules": rules})}),
        ],
    )


def careful(request: Request) -> Message:
    """Rename the function in all files."""
    old, new = names_of(request)
    command = f"grep -rlw {old} --include='*.py' . | xargs sed -i 's/\\b{old}\\b/{new}/g'"
    return play(request, [("I rename it everywhere.", "bash", {"command": command})], "Renamed everywhere.")


def hasty(request: Request) -> Message:
    """Rename the function in the first file."""
    old, new = names_of(request)
    command = f"sed -i 's/\\b{old}\\b/{new}/g' \"$(grep -rlw {old} --include='*.py' . | sort | head -1)\""
    return play(request, [("One file will do.", "bash", {"command": command})], "Renamed.")
