"""Reads a model's scores: exactly one ``<classification>`` with every field exactly once (Figures 9 and 10).

The grammar is read by hand and not by an XML parser. So no DTD and no entity has an effect, and the reasoning
may hold ``&`` and ``<``, as the one printed in Figure 10 does, which is not well-formed XML.
"""

from __future__ import annotations

import html
import re
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Generic, TypeVar

from codetaste.core.text import shorten
from codetaste.errors import Cause, CodetasteError
from codetaste.mining.scoring.category import Category, parse_category
from codetaste.mining.scoring.scores import DiffScores, MessageScores

if TYPE_CHECKING:
    from collections.abc import Mapping

S = TypeVar("S", MessageScores, DiffScores)

MAX_REPLY_CHARS = 64 * 1024
"""A longer reply is not read."""
_REASONING, _CATEGORY = "reasoning", "category"
_OPEN, _CLOSE = "<classification>", "</classification>"
_ELEMENT = re.compile(r"\s*<([a-z_]{1,40})>(.*?)</\1>\s*", re.DOTALL)
_NUMBER = re.compile(r"[+-]?(?:[0-9]{1,20}(?:\.[0-9]{0,30})?|\.[0-9]{1,30})")


class UnusableReply(CodetasteError):
    """A reply does not have exactly one answer with all scores; the message is one line."""

    cause = Cause.MALFORMED


@dataclass(frozen=True, slots=True)
class ScoredReply(Generic[S]):
    """The scores in a reply, and what goes with them.

    Attributes:
        scores: as read, within [0, 1].
        reasoning: the model's justification; never empty.
        clamped: a note for each number that was outside of [0, 1].
        category: of a diff; None if the reply names none of the seven.
    """

    scores: S
    reasoning: str
    clamped: tuple[str, ...] = ()
    category: Category | None = None


def read_message_reply(text: str) -> ScoredReply[MessageScores]:
    """Read the scores of a message.

    Raises:
        UnusableReply: it does not have exactly one answer with every field exactly once.
    """
    return _read(text, MessageScores)


def read_diff_reply(text: str) -> ScoredReply[DiffScores]:
    """Read the scores of a diff, and its category.

    Raises:
        UnusableReply: it does not have exactly one answer with every field exactly once.
    """
    return _read(text, DiffScores)


def _read(text: str, kind: type[S]) -> ScoredReply[S]:
    names: list[str] = [field.name for field in fields(kind)]
    elements = _elements(_answer(text), {*names, _REASONING, _CATEGORY})
    missing = [name for name in (*names, _REASONING) if not elements.get(name, "").strip()]
    if missing:
        raise UnusableReply(f"without a value: {', '.join(missing)}")
    read = {name: _number(name, elements[name].strip()) for name in names}
    scores = {name: min(1.0, max(0.0, value)) for name, value in read.items()}
    clamped = [f"{name}: {value:g} taken as {scores[name]:g}" for name, value in read.items()]
    return ScoredReply(
        kind(**scores),
        html.unescape(elements[_REASONING]).strip(),
        tuple(note for name, note in zip(names, clamped, strict=True) if read[name] != scores[name]),
        parse_category(elements.get(_CATEGORY, "")),
    )


def _answer(text: str) -> str:
    """Return the content of the one answer; what is around it, such as a code fence, does not matter."""
    if len(text) > MAX_REPLY_CHARS:
        raise UnusableReply(f"a reply of {len(text):,} characters, more than {MAX_REPLY_CHARS:,}")
    opened, closed = text.count(_OPEN), text.count(_CLOSE)
    if not opened:
        raise UnusableReply(f"no {_OPEN}")
    if opened > 1 or closed > 1:
        raise UnusableReply(f"{max(opened, closed)} answers in place of one")
    begin, end = text.index(_OPEN) + len(_OPEN), text.find(_CLOSE)
    if end < begin:
        raise UnusableReply(f"{_OPEN} does not end")
    return text[begin:end]


def _elements(answer: str, known: set[str]) -> Mapping[str, str]:
    """Return the text of each element of an answer, which has nothing between them."""
    found: dict[str, str] = {}
    at = 0
    while at < len(answer):
        match = _ELEMENT.match(answer, at)
        if match is None:
            if not answer[at:].strip():
                break
            raise UnusableReply(f"no field where it says {shorten(answer[at:].strip(), 40)!r}")
        name, content = match.groups()
        if name not in known:
            raise UnusableReply(f"unknown field {name}")
        if name in found:
            raise UnusableReply(f"{name} is there twice")
        found[name], at = content, match.end()
    return found


def _number(name: str, text: str) -> float:
    if not _NUMBER.fullmatch(text):
        raise UnusableReply(f"{name} is {shorten(text, 40)!r}, not a number")
    return float(text)
