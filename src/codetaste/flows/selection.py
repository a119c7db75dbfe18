"""What a judge's answer says: the number of one plan, or nothing that could be relied on.

Models state a choice in many dresses: ``SELECTED: 3``, ``SELECTED: [3]``, ``**SELECTED:** 3``,
``SELECTED: **Plan 3**``, with prose before and after. A statement is the word in capitals anywhere, or
capitalised at the beginning of a line, with a colon and a whole number after it. All statements of an answer
must name the same plan: which of two different ones was meant is not for us to guess. The form itself, quoted
back with no number in it, states nothing.
"""

from __future__ import annotations

import re

_DRESS = r"[*_`'\"\[\](){}<>#]"
_BEGINS_LINE = rf"^[ \t]*(?:[-+>][ \t]+)*{_DRESS}*[ \t]*Selected"
_STATEMENT = re.compile(
    rf"""
    (?: (?<![A-Za-z0-9]) SELECTED | {_BEGINS_LINE} )
    (?: [ \t]+ (?i:plan) )?
    (?: \s | {_DRESS} ){{0,20}} [:\uff1a] (?: \s | {_DRESS} ){{0,20}}
    (?: (?i: (?:refactoring_)? plan (?: [ \t]+ (?: number | no\.? ) )? ) (?: [ \t_:-] | {_DRESS} ){{0,20}} )?
    (?P<number> \d+ )
    (?P<rest> [^\n]{{0,80}} )
    """,
    re.VERBOSE | re.MULTILINE,
)
_GOES_ON = re.compile(
    rf"\w|[.,:]\d|%|{_DRESS}*[ \t]*(?:[,;/&+–—-]|(?:and|or|to)\b)[ \t]*{_DRESS}*(?:plans?[ \t]*)?{_DRESS}*\d",
    re.IGNORECASE,
)
"""After a number: it is no whole number of its own, or another one is named beside it."""


def selected_plan(answer: str, plans: int) -> int | None:
    """Return the plan (from 0, below ``plans``) that ``answer`` states, None where it states none or two."""
    stated: set[int | None] = set()
    for match in _STATEMENT.finditer(answer):
        digits = match["number"]
        whole = len(digits) < 4 and not _GOES_ON.match(match["rest"])  # noqa: PLR2004 - nobody has 1,000 plans
        stated.add(int(digits) if whole and int(digits) < plans else None)
    return stated.pop() if len(stated) == 1 else None
