"""What a person who watches is told of a program's turn: what its model says or wants done, in one line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from codetaste.llm.messages import Reply

_CALLS, _CHARS = 3, 120
_TELLING = ("command", "cmd", "file_path", "absolute_path", "path", "pattern", "input")
"""Arguments that say what a call is about, in the tools of the programs that we know."""


def turn_told(number: int, reply: Reply) -> str:
    """Say turn ``number`` (from 1): "turn 3: Edit /testbed/one.py, Bash git status"."""
    calls = reply.message.tool_calls
    if not calls:
        return f"turn {number}: {_short(reply.message.text)}"
    said = ", ".join(f"{call.name} {_about(call.arguments)}".rstrip() for call in calls[:_CALLS])
    more = f", and {len(calls) - _CALLS} more" if len(calls) > _CALLS else ""
    return f"turn {number}: {said}{more}"


def _about(arguments: Mapping[str, Any]) -> str:
    found = next((arguments[name] for name in _TELLING if name in arguments), "")
    words = found if isinstance(found, list) else [found]
    return _short(" ".join(str(word) for word in words))


def _short(text: str) -> str:
    flat = " ".join(text[: 10 * _CHARS].split())
    return flat if len(flat) <= _CHARS else f"{flat[: _CHARS - 1]}…"
