"""Two versions of a text as the lines of a diff."""

from __future__ import annotations

from difflib import SequenceMatcher
from typing import NamedTuple

_MAX_LINES = 4_000
"""Of both texts together: the comparison takes quadratic time at worst."""
_CONTEXT = 3
_MAX_SHOWN = 400
_MAX_LINE_CHARS = 400


class DiffLine(NamedTuple):
    """One line: its numbers, None where the other version has it, its sign (" ", "-", "+", "@"), its text."""

    old: int | None
    new: int | None
    sign: str
    text: str


class CodeDiff(NamedTuple):
    """The lines of a diff, how many more there are, and why there are none, if so."""

    lines: tuple[DiffLine, ...] = ()
    left_out: int = 0
    problem: str = ""


def diff_texts(before: str, after: str) -> CodeDiff:
    """Return the changed lines from ``before`` to ``after``, with three lines around them."""
    old, new = before.splitlines(), after.splitlines()
    if len(old) + len(new) > _MAX_LINES:
        return CodeDiff(problem=f"the versions have {len(old) + len(new):,} lines: too many to compare here")
    lines: list[DiffLine] = []
    for group in SequenceMatcher(None, old, new, autojunk=False).get_grouped_opcodes(_CONTEXT):
        first_old, first_new = group[0][1], group[0][3]
        lines.append(DiffLine(None, None, "@", f"line {first_old + 1} before, {first_new + 1} after"))
        for kind, old_from, old_to, new_from, new_to in group:
            if kind == "equal":
                pairs = zip(range(old_from, old_to), range(new_from, new_to), strict=True)
                lines += [DiffLine(one + 1, two + 1, " ", _cut(old[one])) for one, two in pairs]
                continue
            lines += [DiffLine(at + 1, None, "-", _cut(old[at])) for at in range(old_from, old_to)]
            lines += [DiffLine(None, at + 1, "+", _cut(new[at])) for at in range(new_from, new_to)]
    return CodeDiff(tuple(lines[:_MAX_SHOWN]), max(0, len(lines) - _MAX_SHOWN))


def _cut(line: str) -> str:
    return line if len(line) <= _MAX_LINE_CHARS else f"{line[:_MAX_LINE_CHARS]}… ({len(line):,} characters)"
