"""Lines of a text and their comparison, as the published fields have them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

_JAVA_SPACE = "".join(map(chr, range(0x21)))
"""What ``String.trim`` of Java removes."""


def text_lines(text: str) -> list[str]:
    """Return the lines of ``text`` without empty ones at its end, as ``String.split`` of Java does."""
    lines = text.split("\n")
    while len(lines) > 1 and not lines[-1]:
        lines.pop()
    return lines


def slice_lines(text: str, start: int, end: int) -> str:
    """Return the lines ``start`` to ``end``, from 1, without space around them; "" if there are fewer."""
    lines = text_lines(text)
    if not 1 <= start <= end <= len(lines):
        return ""
    return "\n".join(lines[start - 1 : end]).strip(_JAVA_SPACE)


def compare_lines(before: str, after: str, numbers: Iterable[int]) -> str:
    """Return lines of equal numbers of two texts beside each other: deleted, added and equal ones.

    It is no diff: a line that moved counts as deleted and added.
    """
    old, new = text_lines(before), text_lines(after)
    out: list[str] = []
    added: list[str] = []
    for number in sorted(set(numbers)):
        one = old[number - 1] if number <= len(old) else None
        other = new[number - 1] if number <= len(new) else None
        if one is not None and one == other:
            out += added
            added = []
            out.append(f"  {number:4}: {one}\n")
            continue
        if one is not None:
            out.append(f"- {number:4}: {one}\n")
        if other is not None:
            added.append(f"+ {number:4}: {other}\n")
    return "".join(out + added)
