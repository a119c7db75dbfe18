"""What CodeBLEU knows of Java: its keywords, its literals, and how its comments are removed."""

from __future__ import annotations

import re

KEYWORDS = frozenset(
    (  # noqa: SIM905 - a list of fifty lines would be no clearer
        "abstract assert boolean break byte case catch char class const continue default do double else enum "
        "extends final finally float for goto if implements import instanceof int interface long native new "
        "package private protected public return short static strictfp super switch synchronized this throw "
        "throws transient try void volatile while"
    ).split(" ")
)
"""The reserved words of Java 8; newer ones such as ``record`` do not count as keywords."""

LITERALS = frozenset({"string_literal", "character_literal"})
"""Nodes that are one word of the data flow, whatever is inside them."""

_OPENING = re.compile(r"//|/\*|['\"]")
_CLOSING = {
    "//": re.compile(r"(?=\n)|\Z"),
    "/*": re.compile(r"\*/"),
    "'": re.compile(r"(?:[^\\']|\\.)*+'", re.DOTALL),
    '"': re.compile(r'(?:[^\\"]|\\.)*+"', re.DOTALL),
}


def remove_comments(text: str) -> str:
    """Return ``text`` with a space in the place of each comment, and without blank lines.

    A comment or literal without an end is left as it is. The time is linear in the length.
    """
    bare: list[str] = []
    unclosed: set[str] = set()  # what has no end from here has none from any later place
    position = 0
    while opening := _OPENING.search(text, position):
        start, kind = opening.span()[0], opening[0]
        find = _CLOSING[kind].match if kind in "'\"" else _CLOSING[kind].search
        closing = None if kind in unclosed else find(text, opening.end())
        if closing is None:
            unclosed.add(kind)
            bare.append(text[position : start + 1])
            position = start + 1
            continue
        bare += (text[position:start], " ") if kind in {"//", "/*"} else (text[position : closing.end()],)
        position = closing.end()
    bare.append(text[position:])
    return "\n".join(line for line in "".join(bare).split("\n") if line.strip())
