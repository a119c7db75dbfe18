"""Small keyword sets, which made-up messages meet often; ``archive_ranking_model`` has them by hand."""

from __future__ import annotations

from codetaste.mining.keywords.keyword import parse_keyword
from codetaste.mining.keywords.sets import KeywordSet, KeywordSets


def _set(*keywords: str) -> KeywordSet:
    return KeywordSet(tuple(map(parse_keyword, keywords)))


KEYWORDS = KeywordSets(
    strong_plus=_set("refactor*", "dedup*"),
    weak_plus=_set("move", "moved", "moving", "reorganize"),
    strong_minus=_set("fix", "lint", "chore:"),
    weak_minus=_set("add", "test"),
)
