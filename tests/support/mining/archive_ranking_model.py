"""Stage 1 by brute force, from the paper's sentences; it imports nothing of the package."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class ModelBounds:
    min_stars: int
    min_files: int
    keep: int


PATTERNS = {
    "strong_plus": r"\b(?:refactor\w*|dedup\w*)\b",
    "weak_plus": r"\b(?:mov(?:e|ed|ing)|reorganize)\b",
    "strong_minus": r"\b(?:fix|lint)\b|\Achore ?:",
    "weak_minus": r"\b(?:add|test)\b",
}
"""Small sets, so that made-up messages meet them often."""

FILTERS = ("incomplete", "stars", "files", "strong_minus", "ratio", "duplicate", "best")


def rank_by_hand(
    rows: list[dict[str, Any]], stars: dict[str, int], bounds: ModelBounds
) -> tuple[list[tuple[str, str]], dict[str, int]]:
    """Return ``(repository, golden)`` of the best commits in order, and how many each filter removed."""
    removed: Counter[str] = Counter()
    left = []
    for row in rows:
        known = {name.lower(): count for name, count in stars.items()}
        found = {**row, "stars": known.get(row["repository"].lower(), row["stars"])}
        text = row["message"] if row["title"] is None else f"{row['title']}\n\n{row['body']}"
        found |= {
            name: len(re.findall(pattern, text.strip().lower(), re.ASCII))
            for name, pattern in PATTERNS.items()
        }
        verdict = _verdict(found, bounds)
        removed[verdict] += 1
        if verdict == "passed":
            left.append(found)
    left.sort(key=lambda row: -1 if row["stars"] is None else row["stars"], reverse=True)
    best: dict[str, dict[str, Any]] = {}
    for row in left:
        other = best.get(row["golden"])
        if other is None or (other["stars"] == row["stars"] and row["repository"] < other["repository"]):
            best[row["golden"]] = row
    removed["duplicate"] = len(left) - len(best)
    order = sorted(best.values(), key=_order)
    removed["best"] = max(0, len(order) - bounds.keep)
    return [(row["repository"], row["golden"]) for row in order[: bounds.keep]], {
        name: removed[name] for name in FILTERS
    }


def _verdict(row: dict[str, Any], bounds: ModelBounds) -> str:
    plus = row["strong_plus"] + row["weak_plus"]
    if not row["golden"]:
        return "incomplete"
    if row["stars"] is not None and row["stars"] < bounds.min_stars:
        return "stars"
    if row["files"] is not None and row["files"] < bounds.min_files:
        return "files"
    if row["strong_minus"]:
        return "strong_minus"
    passes = plus >= 1 if row["weak_minus"] == 0 else plus / row["weak_minus"] >= 2
    return "passed" if passes else "ratio"


def _order(row: dict[str, Any]) -> tuple[Any, ...]:
    unknown_last = [-1 if row[name] is None else row[name] for name in ("stars", "files")]
    numbers = [row["strong_plus"], row["weak_plus"], *unknown_last]
    return (*(-number for number in numbers), row["repository"], row["golden"])
