"""Rule by rule: whether a trial satisfies it, what it matches, and where."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple

from codetaste.rules.registration import Direction
from codetaste.site.html.address import rule_anchors
from codetaste.site.trial.patch.patch_data import shown_path
from codetaste.site.trial.visible_text import visible_line, visible_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from codetaste.rules.scan.model import Match
    from codetaste.site.trial.evaluation.evaluation_details import EvaluationDetails
    from codetaste.site.trial.patch.marked_patch import MarkedFile, MarkedPatch
    from codetaste.site.trial.patch.rule_matches import RuleMatches

_MAX_SHOWN_PLACES = 3
_MAX_PLACES = 200
_MAX_RULE_CHARS = 160
_MAX_MESSAGE_CHARS = 4_000
_HUNK = re.compile(rb"@@ -\d+(?:,\d+)? \+(\d+)(?:,(\d+))? @@")


class RuleOutcome(StrEnum):
    """Whether a trial satisfies a rule."""

    SATISFIED = "satisfied"
    FLAGGED = "flagged"
    """Satisfied, by code without effect."""
    NOT_SATISFIED = "not satisfied"
    UNKNOWN = "unknown"


class MatchPlace(NamedTuple):
    """Where a rule matches R∘X̂; ``file`` is that in the patch, from 1; 0 if the patch has no such line."""

    file: int
    path: str
    line: int
    last_line: int

    @property
    def anchor(self) -> str:
        """The fragment that names the place in the page."""
        return f"L{self.file}-{self.line}"


@dataclass(frozen=True, slots=True)
class RuleResult:
    """One rule.

    Attributes:
        id: its id.
        direction: additive or reductive.
        message: what it looks for.
        outcome: whether it is satisfied.
        why: why it is flagged, or not satisfied without a match; "" otherwise.
        matches: number of matches in R∘X̂.
        places: where, the first two hundred.
        anchor: the fragment that names it in the page.
    """

    id: str
    direction: Direction
    message: str
    outcome: RuleOutcome
    why: str
    matches: int
    places: tuple[MatchPlace, ...]
    anchor: str

    @property
    def shown_places(self) -> tuple[MatchPlace, ...]:
        """The places that a page lists without a script: in the patch first."""
        return tuple(sorted(self.places, key=lambda each: not each.file))[:_MAX_SHOWN_PLACES]

    @property
    def line(self) -> str:
        """The message in one line."""
        return visible_line(self.message, _MAX_RULE_CHARS)


def rule_results(
    additive: RuleMatches, remaining: RuleMatches, details: EvaluationDetails, patch: MarkedPatch
) -> tuple[RuleResult, ...]:
    """Return the result of each rule, additive ones first, in the order of the SARIF files.

    Args:
        additive: matches of Γ⁺ in R∘X̂.
        remaining: matches of Γ⁻ in R∘X̂.
        details: of the evaluation.
        patch: gives the places their files.
    """
    flags = {each.name: each.reason for each in reversed(details.flagged)}
    places = _Places(patch)
    by_direction = {Direction.ADDITIVE: additive, Direction.REDUCTIVE: remaining}
    anchors = rule_anchors((each, name) for each, found in by_direction.items() for name in found.messages)
    results = []
    for direction, found in by_direction.items():
        by_rule: dict[str, list[Match]] = defaultdict(list)
        for match in found.matches:
            by_rule[match.rule_id].append(match)
        for name, message in found.messages.items():
            matches = by_rule.get(name, [])
            if name in flags and direction is Direction.ADDITIVE:
                outcome, why = RuleOutcome.FLAGGED, flags[name]
            else:
                outcome, why = _outcome(name, direction, matches, found, details)
            where = tuple(map(places.of, matches[:_MAX_PLACES]))
            shown = visible_text(message, _MAX_MESSAGE_CHARS)
            anchor = anchors[direction, name]
            results.append(RuleResult(name, direction, shown, outcome, why, len(matches), where, anchor))
    return tuple(results)


def _outcome(
    name: str, direction: Direction, matches: Sequence[Match], found: RuleMatches, details: EvaluationDetails
) -> tuple[RuleOutcome, str]:
    if details.unmet is None:
        if found.problem:
            return RuleOutcome.UNKNOWN, found.problem
        satisfied = bool(matches) == (direction is Direction.ADDITIVE)
    else:
        satisfied = (direction, name) not in details.unmet
    if satisfied:
        return RuleOutcome.SATISFIED, ""
    hidden = direction is Direction.REDUCTIVE and not matches
    why = "what it matched in R is still there, where it cannot be matched" if hidden else ""
    return RuleOutcome.NOT_SATISFIED, why


class _MatchedFile(NamedTuple):
    """A file with matches: its number in the patch, 0 if it is in none, its path, and its lines there."""

    number: int
    path: str
    lines: tuple[range, ...]


class _Places:
    """Where matches are in a patch: most files are changed in a few lines, and matched in others too."""

    def __init__(self, patch: MarkedPatch) -> None:
        self._content = patch.content
        self._changed: dict[str, tuple[int, MarkedFile]] = {}
        self._matched: dict[str, _MatchedFile] = {}
        for number, file in enumerate(patch.files, 1):
            if file.file.new is not None:
                self._changed.setdefault(file.file.new, (number, file))

    def of(self, match: Match) -> MatchPlace:
        """Return the place of a match."""
        file = self._matched.get(match.path) or self._read(match.path)
        first, last = match.start_line, match.end_line
        for lines in file.lines:
            if first < lines.stop and lines.start <= last:
                return MatchPlace(file.number, file.path, first, last)
        return MatchPlace(0, file.path, first, last)

    def _read(self, path: str) -> _MatchedFile:
        number, file = self._changed.get(path, (0, None))
        lines = () if file is None else tuple(self._lines(file))
        self._matched[path] = _MatchedFile(number, shown_path(path), lines)
        return self._matched[path]

    def _lines(self, file: MarkedFile) -> Iterator[range]:
        """Yield the lines of R∘X̂ that the patch has of a file, changed or around changes."""
        at, end = file.file.span
        while (at := self._content.find(b"\n@@ -", at, end)) >= 0:
            at += 1
            if hunk := _HUNK.match(self._content, at, end):
                first = int(hunk[1])
                yield range(first, first + int(hunk[2] or 1))


def rules_data(results: Iterable[RuleResult]) -> list[dict[str, Any]]:
    """Return the rules for the page's script, and for the data beside the page."""
    return [
        {
            "id": each.id,
            "anchor": each.anchor,
            "direction": each.direction.value,
            "outcome": each.outcome.value,
            "why": each.why,
            "matches": each.matches,
            "message": each.message,
            "places": [[place.file, place.path, place.line, place.last_line] for place in each.places],
        }
        for each in results
    ]
