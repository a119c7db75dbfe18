"""The names of code in a task's description, and which of them no rule mentions yet."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

MAX_NAMES = 200
"""Names that are read of one description."""
MIN_CHARS = 3
_CODE = re.compile(r"```[^\n]*\n(.*?)```|`([^`\n]+)`", re.DOTALL)
_WORD = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]*")
_IDENTIFIER = re.compile(
    r"\b(?:[A-Za-z0-9]+_[A-Za-z0-9_]+|[A-Za-z]*[a-z0-9][A-Z][A-Za-z0-9]*|[A-Z]{2,}[a-z]{3,}\w*)\b"
)
"""Words outside of code that can only be names: snake_case and camelCase."""
COMMON_WORDS = frozenset(
    re.findall(
        r"\w+",
        """
        and any args async await bool case class catch const def default del else enum export extends false
        final finally float for from func function get if import interface int let map new nil none not null
        object or package path private protected public return self set static str string struct super switch
        test tests the this throw true try type undefined use var void while with yield
        """,
    )
)
"""Words of languages and of English that say nothing about a change."""


def described_names(description: str) -> tuple[str, ...]:
    """Return the names of code in ``description``, in the order of their first use.

    These are the words in code spans and code blocks, and elsewhere those in snake_case or camelCase.
    """
    found: dict[str, None] = {}
    position = 0
    for match in _CODE.finditer(description):
        found.update(dict.fromkeys(_IDENTIFIER.findall(description[position : match.start()])))
        found.update(dict.fromkeys(_WORD.findall(match[1] or match[2])))
        position = match.end()
    found.update(dict.fromkeys(_IDENTIFIER.findall(description[position:])))
    names = (name for name in found if len(name) >= MIN_CHARS and name.lower() not in COMMON_WORDS)
    return tuple(names)[:MAX_NAMES]


def names_without_rule(names: Iterable[str], rules: Iterable[Mapping[str, Any]]) -> tuple[str, ...]:
    """Return those of ``names`` that are in no text of a rule but its id, message and metadata."""
    texts = " ".join(
        json.dumps([value for key, value in body.items() if key not in {"id", "message", "metadata"}])
        for body in rules
    )
    words = set(_WORD.findall(texts))
    return tuple(name for name in names if name not in words)
