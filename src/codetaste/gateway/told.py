"""One-line progress text for an agent's turn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from codetaste.llm.messages import Reply

_MAX_CALLS, _MAX_CHARS = 3, 120
_MAIN_ARGUMENTS = ("command", "cmd", "file_path", "absolute_path", "path", "pattern", "input")
"""Arguments that best describe a call, in the tools of the supported CLI agents."""


def format_turn(number: int, reply: Reply) -> str:
    """Format turn ``number`` (from 1), e.g. "turn 3: Edit /testbed/one.py, Bash git status"."""
    calls = reply.message.tool_calls
    if not calls:
        return f"turn {number}: {_short(reply.message.text)}"
    shown = ", ".join(f"{call.name} {_main_argument(call.arguments)}".rstrip() for call in calls[:_MAX_CALLS])
    more = f", and {len(calls) - _MAX_CALLS} more" if len(calls) > _MAX_CALLS else ""
    return f"turn {number}: {shown}{more}"


def _main_argument(arguments: Mapping[str, Any]) -> str:
    found = next((arguments[name] for name in _MAIN_ARGUMENTS if name in arguments), "")
    words = found if isinstance(found, list) else [found]
    return _short(" ".join(str(word) for word in words))


def _short(text: str) -> str:
    flat = " ".join(text[: 10 * _MAX_CHARS].split())
    return flat if len(flat) <= _MAX_CHARS else f"{flat[: _MAX_CHARS - 1]}…"
