"""Parse the judge's answer: the number of one plan, or None where the answer is not clear.

Models state their choice in many formats: ``SELECTED: 3``, ``SELECTED: [3]``, ``**SELECTED:** 3``,
``SELECTED: **Plan 3**``, with prose before and after. A statement is the word in capitals anywhere, or
capitalised at the beginning of a line, with a colon and a whole number after it. All statements of an answer
must name the same plan; with two different plans the answer is not clear. The requested form itself, quoted
without a number, is no statement.
"""

from __future__ import annotations

import re

_MARK = r"[*_`'\"\[\](){}<>#]"
_BEGINS_LINE = rf"^[ \t]*(?:[-+>][ \t]+)*{_MARK}*[ \t]*Selected"
_STATEMENT = re.compile(
    rf"""
    (?: (?<![A-Za-z0-9]) SELECTED | {_BEGINS_LINE} )
    (?: [ \t]+ (?i:plan) )?
    (?: \s | {_MARK} ){{0,20}} [:\uff1a] (?: \s | {_MARK} ){{0,20}}
    (?: (?i: (?:refactoring_)? plan (?: [ \t]+ (?: number | no\.? ) )? ) (?: [ \t_:-] | {_MARK} ){{0,20}} )?
    (?P<number> \d+ )
    (?P<rest> [^\n]{{0,80}} )
    """,
    re.VERBOSE | re.MULTILINE,
)
_NOT_ALONE = re.compile(
    rf"\w|[.,:]\d|%|{_MARK}*[ \t]*(?:[,;/&+–—-]|(?:and|or|to)\b)[ \t]*{_MARK}*(?:plans?[ \t]*)?{_MARK}*\d",
    re.IGNORECASE,
)
"""Text after a number which shows that the number is not a whole number, or that another one is named."""


def selected_plan(answer: str, plans: int) -> int | None:
    """Return the plan (from 0, below ``plans``) that ``answer`` states; None unless it states exactly one."""
    stated: set[int | None] = set()
    for match in _STATEMENT.finditer(answer):
        digits = match["number"]
        whole = len(digits) < 4 and not _NOT_ALONE.match(match["rest"])  # noqa: PLR2004 - under 1,000 plans
        stated.add(int(digits) if whole and int(digits) < plans else None)
    return stated.pop() if len(stated) == 1 else None
