"""Statements that call a method: what is in them around the calls.

Statements are texts between semicolons and braces, of tokens apart by a space (``normal_code``).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

_WORD = re.compile(rb"[\w$]+")
_NO_CAST = {b"if", b"while", b"for", b"switch", b"catch", b"synchronized"}
_TYPE = rb"[a-zA-Z_$][\w$.<>?,\[\] ]*"
_BEFORE = re.compile(
    rb"(?:final )?(?:%(type)s [\w$]+ = |(?:this \. )?[\w$]+ = |return |throw |yield )?"
    rb"|(?:else )?if \( |while \( |switch \( |synchronized \( |for \( (?:final )?%(type)s [\w$]+ : "
    rb"|try \( (?:final )?%(type)s [\w$]+ = " % {b"type": _TYPE}
)
"""A call is all that a statement evaluates, before it: ``int sum =``, ``return``, ``if (``."""
_BEHIND = re.compile(rb"[ )]*(?:return|continue|break)?(?: (?:true|false|null|[\w$]+))?")


def calls(statement: bytes, names: set[bytes]) -> bool:
    """Return whether a statement calls one of the methods, or refers to it (``this::sum``)."""
    return len(around_calls(statement, names)) > 1


def around_calls(statement: bytes, names: set[bytes]) -> tuple[bytes, ...]:
    """Return what is before, between and behind the calls: receiver and arguments belong to a call.

    A cast and a negation of a call belong to it, too. Without a call it is the whole statement.
    """
    words, pieces, start, at = statement.split(), list[bytes](), 0, 0
    while at < len(words):
        end = _end_of_call(words, at) if words[at] in names else None
        if end is None:
            at += 1
            continue
        pieces.append(b" ".join(words[start : max(start, _start_of_call(words, at))]))
        start = at = end
    return (*pieces, b" ".join(words[start:]))


def is_plain(around: Sequence[bytes]) -> bool:
    """Return whether the one call is all that the statement evaluates, as in ``int sum = add(a, b)``."""
    if len(around) != 2:  # noqa: PLR2004 - before and behind
        return False
    before, behind = around
    return bool(_BEFORE.fullmatch(before + b" " * bool(before)) and _BEHIND.fullmatch(behind))


def occurs(around: Sequence[bytes], code: bytes) -> bool:
    """Return whether code has the texts in their order from a statement on, with anything for the calls."""
    text, at = b" ; " + re.sub(rb"[{}]", b";", code) + b" ", 0
    for number, piece in enumerate(around):
        wanted = (b" ; " if number == 0 else b" ") + piece + b" "
        found = text.find(wanted, at) if piece else at
        if found < 0:
            return False
        at = found + len(wanted) - 1 if piece else at
    return True


def _end_of_call(words: Sequence[bytes], at: int) -> int | None:
    """Return where the call of the name at a place ends; None if it is no call."""
    if words[at + 1 : at + 2] != [b"("]:
        return at + 1 if words[max(at - 2, 0) : at] == [b":", b":"] else None
    depth = 0
    for end in range(at + 1, len(words)):
        depth += {b"(": 1, b")": -1}.get(words[end], 0)
        if depth == 0:
            return end + 1
    return len(words)  # an argument has braces


def _start_of_call(words: Sequence[bytes], at: int) -> int:
    """Return where the call of the name at a place starts: with its receiver, a cast, a negation."""
    while at > 1 and (words[at - 1] == b"." or words[at - 2 : at] == [b":", b":"]):
        at -= 2 if words[at - 1] == b"." else 3
        at = _start_of_value(words, max(at, 0))
    if at and words[at - 1] == b"!":
        at -= 1
    if at > 1 and words[at - 1] == b")":
        begin = _opening(words, at - 1)
        inside = words[begin + 1 : at - 1]
        before = words[begin - 1] if begin else b""
        is_cast = before not in _NO_CAST and not (_WORD.fullmatch(before) and before != b"return")
        if is_cast and all(_WORD.fullmatch(each) or each in b". < > , ? [ ]".split() for each in inside):
            return begin
    return at


def _start_of_value(words: Sequence[bytes], at: int) -> int:
    """Return where a receiver starts whose last word is at a place: a name, a call, ``new Sums(a)``."""
    while words[at] in {b")", b"]"}:
        opening = _opening(words, at)
        at = opening - 1 if opening and _WORD.fullmatch(words[opening - 1]) else opening
    return at - 1 if at and words[at - 1] == b"new" else at


def _opening(words: Sequence[bytes], at: int) -> int:
    """Return the place of the bracket that the one at a place closes; 0 if there is none."""
    depth = 0
    for place in range(at, -1, -1):
        depth += {b")": 1, b"]": 1, b"(": -1, b"[": -1}.get(words[place], 0)
        if depth == 0:
            return place
    return 0
