"""What is recorded of a rejected candidate: its text, the reason, and the matches that led to it.

The record is for people. A match may have text of R∘X*, which no model may see.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from codetaste.errors import CodetasteError
from codetaste.rules.feedback import read_excerpt
from codetaste.rules.registration import Direction, Rejection
from codetaste.rules.yaml_writer import dump_rules

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from codetaste.errors import RuleError
    from codetaste.rules.registration import CandidateResult
    from codetaste.rules.rule import Rule
    from codetaste.rules.scan.model import Match, ScanResult

FORMAT = 1
"""Number of the form of ``to_json``; a record without it is older, and has only id and kind."""
BASE, REFACTORED = "base", "refactored"
"""Sides of a match."""
MAX_RECORDED = 200
"""So many rejections of a pass are recorded with details; of further ones only id and kind."""
MAX_YAML_CHARS = 4_000
MAX_REASON_CHARS = 600
MAX_MATCHES = 3
_LINES_BEFORE = 3
_LINES_AFTER = 12


class ScannedTree(NamedTuple):
    """A tree that candidates were scanned in: its side, its folder, and the scan."""

    side: str
    folder: Path
    scan: ScanResult


@dataclass(frozen=True, slots=True)
class RejectedMatch:
    """A match of a rejected rule, with the first lines of its code; "" if they cannot be read.

    It is not a ``Witness``, since what a witness has is shown to the agent: this text may be of R∘X*.
    """

    side: str
    path: str
    start_line: int
    end_line: int
    text: str = ""


@dataclass(frozen=True, slots=True)
class RejectedRule:
    """A candidate that was not registered.

    Attributes:
        id: its id, "" if it has none.
        rejection: the kind of the reason, of ``Rejection``.
        reason: the reason in words, "" in older records.
        error: the engine's or the reader's error, if there was one.
        yaml: the rule as YAML, or the text around the error of an unreadable one.
        base_count: M(γ, R), None where it was not counted.
        golden_count: M(γ, R∘X*), None where it was not counted.
        matches: where it matches the side on which it must not, or else the other side; the smallest ones.
        detailed: whether more than id and kind is recorded.
    """

    id: str
    rejection: str
    reason: str = ""
    error: str = ""
    yaml: str = ""
    base_count: int | None = None
    golden_count: int | None = None
    matches: tuple[RejectedMatch, ...] = ()
    detailed: bool = False

    def to_json(self) -> dict[str, Any]:
        """Return JSON data of a bounded size."""
        if not self.detailed:
            return {"id": self.id, "rejection": str(self.rejection)}
        data = asdict(self) | {"rejection": str(self.rejection), "format": FORMAT}
        del data["detailed"]
        return data

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> RejectedRule:
        """Return a record of this or an older form; what is missing or of another type is left out."""
        rule_id, rejection = _text(data.get("id")), _text(data.get("rejection"))
        if "format" not in data:
            return cls(rule_id, rejection)
        listed = data.get("matches")
        matches = tuple(
            RejectedMatch(
                _text(each.get("side")),
                _text(each.get("path")),
                _count(each.get("start_line")) or 0,
                _count(each.get("end_line")) or 0,
                _text(each.get("text")),
            )
            for each in (listed if isinstance(listed, list) else ())
            if isinstance(each, dict)
        )
        return cls(
            rule_id,
            rejection,
            _text(data.get("reason")),
            _text(data.get("error")),
            _text(data.get("yaml")),
            _count(data.get("base_count")),
            _count(data.get("golden_count")),
            matches,
            detailed=True,
        )

    def without_details(self) -> RejectedRule:
        """Return id and kind alone."""
        return RejectedRule(self.id, self.rejection)


def unreadable_candidate(error: RuleError, text: str) -> RejectedRule:
    """Return the record of a candidate that could not be read, with the text around the error."""
    lines = text.split("\n")
    first = max(0, (error.line or 1) - 1 - _LINES_BEFORE)
    yaml = "\n".join(lines[first : first + _LINES_BEFORE + _LINES_AFTER])
    where = f"it could not be read (line {error.line})" if error.line else "it could not be read"
    return RejectedRule(
        error.rule_id or "",
        Rejection.UNREADABLE,
        where,
        _cut(str(error), MAX_REASON_CHARS),
        _cut(yaml, MAX_YAML_CHARS),
        detailed=True,
    )


def rejected_candidates(
    direction: Direction,
    results: Iterable[CandidateResult],
    rules: Iterable[Rule],
    base: ScannedTree,
    golden: ScannedTree,
) -> Iterator[RejectedRule]:
    """Yield the records of the rejected ones among ``results``. Blocking: it reads excerpts of a tree."""
    by_id = {rule.id: rule for rule in rules}
    sides = (base, golden) if direction is Direction.ADDITIVE else (golden, base)
    for result in results:
        if result.rejection is None:
            continue
        yield RejectedRule(
            result.rule_id,
            result.rejection,
            _cut(result.reason, MAX_REASON_CHARS),
            _cut(result.error, MAX_REASON_CHARS),
            _cut(_yaml(by_id.get(result.rule_id)), MAX_YAML_CHARS),
            result.base_count,
            result.golden_count,
            tuple(_matches(result.rule_id, sides)),
            detailed=True,
        )


def _matches(rule_id: str, sides: Sequence[ScannedTree]) -> Iterator[RejectedMatch]:
    """Yield the smallest matches of the first side that has any."""
    for side in sides:
        if found := side.scan.by_rule.get(rule_id):
            for match in sorted(found, key=_by_size)[:MAX_MATCHES]:
                text = read_excerpt(side.folder, match.path, match.start_line, match.end_line)
                yield RejectedMatch(side.side, match.path, match.start_line, match.end_line, text)
            return


def _by_size(match: Match) -> tuple[int, Match]:
    return match.end_line - match.start_line, match


def _yaml(rule: Rule | None) -> str:
    if rule is None:
        return ""
    try:
        return dump_rules([rule])
    except (CodetasteError, ValueError, TypeError):
        return ""


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[:limit]}\n… ({len(text):,} characters)"


def _text(value: Any) -> str:  # noqa: ANN401 - JSON
    return value if isinstance(value, str) else ""


def _count(value: Any) -> int | None:  # noqa: ANN401 - JSON
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
