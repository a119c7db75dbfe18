"""Names that a rule requires and that the description of the task lacks: an agent must guess them (§4.4).

A name counts as known if it is a word of the description, or if a reductive rule has it: reductive rules
match the code that the agent is given.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

from codetaste.rules.names.described import COMMON_WORDS, MIN_CHARS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from typing import Any

_WORD = re.compile(r"(?<![A-Za-z0-9_$])[A-Za-z_][A-Za-z0-9_]*")
"""An identifier, but no metavariable such as ``$X``."""
_ESCAPE = re.compile(r"\\[A-Za-z]")
"""A class or an assertion of a regular expression: ``\\b`` before a name is no part of it."""
_REGEXES = frozenset({"pattern-regex", "regex"})
_NOT_REQUIRED = ("pattern-not", "focus-", "paths", "fix", "options", "metavariable-comparison")
"""Keys whose names need not be in code that matches."""


def required_names(body: Mapping[str, Any]) -> frozenset[str]:
    """Return the identifiers in the patterns of a rule; those of ``pattern-not`` are not required."""
    words = (word for text in _patterns(body) for word in _WORD.findall(text))
    return frozenset(word for word in words if len(word) >= MIN_CHARS and word.lower() not in COMMON_WORDS)


def names_in(rules: Iterable[Mapping[str, Any]]) -> frozenset[str]:
    """Return the names of all ``rules``."""
    return frozenset().union(*map(required_names, rules))


def guessed_names(body: Mapping[str, Any], description: str, known: Iterable[str] = ()) -> tuple[str, ...]:
    """Return the names that an additive rule requires and that an agent cannot know, sorted.

    Args:
        body: the rule.
        description: the task's description, whose words are known in any of their spellings.
        known: further known names, such as those of the reductive rules.
    """
    without = required_names(body) - frozenset(known)
    words = _lower_words(description)
    return tuple(sorted(name for name in without if name.lower() not in words))


@lru_cache(maxsize=2)  # the rules of a task are asked for one after the other
def _lower_words(text: str) -> frozenset[str]:
    return frozenset(word.lower() for word in _WORD.findall(text))


def _patterns(value: object, key: str = "") -> Iterator[str]:
    """Yield the texts below ``pattern…`` and ``regex`` keys."""
    if isinstance(value, str):
        if key in _REGEXES:
            yield _ESCAPE.sub(" ", value)
        elif key.startswith("pattern"):
            yield value
    elif isinstance(value, dict):
        for name, inner in value.items():
            if not str(name).startswith(_NOT_REQUIRED):
                yield from _patterns(inner, str(name))
    elif isinstance(value, list):
        for inner in value:
            yield from _patterns(inner, key)
