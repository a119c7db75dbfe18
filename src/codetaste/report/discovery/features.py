"""The features of the rule language that a rule uses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from codetaste.rules.rule import TEXT_LANGUAGES

if TYPE_CHECKING:
    from collections.abc import Iterator

KEYS = {
    "paths": "paths",
    "pattern-regex": "regular expression",
    "metavariable-regex": "metavariable-regex",
    "metavariable-pattern": "metavariable-pattern",
    "pattern-either": "pattern-either",
    "pattern-inside": "pattern-inside",
    "pattern-not": "pattern-not",
    "pattern-not-inside": "pattern-not-inside",
    "pattern-not-regex": "pattern-not-regex",
    "focus-metavariable": "focus-metavariable",
}
"""The feature that a key of a rule stands for."""
TAINT, TEXT = "taint mode", "plain text"
FEATURES = (*KEYS.values(), TAINT, TEXT)


def rule_features(body: Mapping[str, Any]) -> frozenset[str]:
    """Return the features that the rule ``body`` uses, at any depth; its metadata does not count."""
    rule = {key: value for key, value in body.items() if key != "metadata"}
    found = {KEYS[key] for key in _keys(rule) if key in KEYS}
    if body.get("mode") == "taint":
        found.add(TAINT)
    if not TEXT_LANGUAGES.isdisjoint(map(str, body.get("languages") or [])):
        found.add(TEXT)
    return frozenset(found)


def _keys(node: Any) -> Iterator[str]:  # noqa: ANN401 - JSON
    if isinstance(node, Mapping):
        for key, value in node.items():
            yield str(key)
            yield from _keys(value)
    elif isinstance(node, Sequence) and not isinstance(node, str):
        for item in node:
            yield from _keys(item)
