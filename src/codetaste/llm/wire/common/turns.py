"""Neighbouring messages of one role are joined, as many chat templates want user and model in turns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_NEIGHBOURS = (("user", "user"), ("assistant", "assistant"))


def join_turns(groups: Iterable[Sequence[dict[str, Any]]]) -> list[dict[str, Any]]:
    """Return the wire messages of all ``groups``; those of one group are not joined to each other."""
    turns: list[dict[str, Any]] = []
    for group in groups:
        for place, message in enumerate(group):
            last = turns[-1] if turns and not place else {}
            both = {**last, **message}
            if (last.get("role"), message.get("role")) not in _NEIGHBOURS or "name" in both:
                turns.append(message)
            else:
                shared = (last.keys() & message.keys()) - {"role"}
                turns[-1] = both | {name: _joined(last[name], message[name]) for name in shared}
    return turns


def _joined(first: Any, second: Any) -> Any:  # noqa: ANN401 - JSON data
    if not first or not second:
        return first or second
    if isinstance(first, str) and isinstance(second, str):
        return f"{first}\n\n{second}"
    parts = ([{"type": "text", "text": each}] if isinstance(each, str) else each for each in (first, second))
    return [part for each in parts for part in each]
