"""Rule by rule: whether a trial satisfies it, what it matches, and where."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from codetaste.rules.registration import Direction
from codetaste.site.trial.patch.patch_data import shown_path
from codetaste.site.trial.visible_text import visible_line, visible_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from codetaste.rules.scan.model import Match
    from codetaste.site.trial.evaluation.evaluation_details import EvaluationDetails
    from codetaste.site.trial.patch.marked_patch import MarkedFile, MarkedPatch
    from codetaste.site.trial.patch.rule_matches import RuleMatches

_MAX_SHOWN_PLACES = 3
_MAX_PLACES = 200
_MAX_RULE_CHARS = 160
_MAX_MESSAGE_CHARS = 4_000
_HUNK = re.compile(rb"^@@ -\d+(?:,\d+)? \+(\d+)(?:,(\d+))? @@", re.MULTILINE)


class RuleOutcome(StrEnum):
    """Whether a trial satisfies a rule."""

    SATISFIED = "satisfied"
    FLAGGED = "flagged"
    """Satisfied, by code without effect."""
    NOT_SATISFIED = "not satisfied"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class MatchPlace:
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
    """

    id: str
    direction: Direction
    message: str
    outcome: RuleOutcome
    why: str
    matches: int
    places: tuple[MatchPlace, ...]

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
    results = []
    for direction, found in ((Direction.ADDITIVE, additive), (Direction.REDUCTIVE, remaining)):
        by_rule: dict[str, list[Match]] = defaultdict(list)
        for match in found.matches:
            by_rule[match.rule_id].append(match)
        for name, message in found.messages.items():
            matches = by_rule.get(name, [])
            if name in flags:
                outcome, why = RuleOutcome.FLAGGED, flags[name]
            else:
                outcome, why = _outcome(name, direction, matches, found, details)
            where = tuple(map(places.of, matches[:_MAX_PLACES]))
            shown = visible_text(message, _MAX_MESSAGE_CHARS)
            results.append(RuleResult(name, direction, shown, outcome, why, len(matches), where))
    return tuple(results)


def _outcome(
    name: str, direction: Direction, matches: Sequence[Match], found: RuleMatches, details: EvaluationDetails
) -> tuple[RuleOutcome, str]:
    if details.unmet is None:
        if found.problem:
            return RuleOutcome.UNKNOWN, found.problem
        satisfied = bool(matches) == (direction is Direction.ADDITIVE)
    else:
        satisfied = name not in details.unmet
    if satisfied:
        return RuleOutcome.SATISFIED, ""
    hidden = direction is Direction.REDUCTIVE and not matches
    why = "what it matched in R is still there, where it cannot be matched" if hidden else ""
    return RuleOutcome.NOT_SATISFIED, why


class _Places:
    """Where matches are in a patch: most files are changed in a few lines, and matched in others too."""

    def __init__(self, patch: MarkedPatch) -> None:
        self._content = patch.content
        self._files: dict[str, tuple[int, MarkedFile]] = {}
        self._shown: dict[str, list[range]] = {}
        for number, file in enumerate(patch.files, 1):
            if file.file.new is not None:
                self._files.setdefault(file.file.new, (number, file))

    def of(self, match: Match) -> MatchPlace:
        """Return the place of a match."""
        number, file = self._files.get(match.path, (0, None))
        if file is not None:
            if match.path not in self._shown:
                self._shown[match.path] = self._lines(file)
            shown = self._shown[match.path]
            if not any(match.start_line < each.stop and each.start <= match.end_line for each in shown):
                number = 0
        return MatchPlace(number, shown_path(match.path), match.start_line, match.end_line)

    def _lines(self, file: MarkedFile) -> list[range]:
        """Return the lines of R∘X̂ that the patch has of a file, changed or around changes."""
        text = memoryview(self._content)[slice(*file.file.span)]
        starts = ((int(hunk[1]), int(hunk[2] or 1)) for hunk in _HUNK.finditer(text))
        return [range(first, first + length) for first, length in starts]


def rules_data(results: Iterable[RuleResult]) -> list[dict[str, Any]]:
    """Return the rules for the page's script, and for the data beside the page."""
    return [
        {
            "id": each.id,
            "direction": each.direction.value,
            "outcome": each.outcome.value,
            "why": each.why,
            "matches": each.matches,
            "message": each.message,
            "places": [[place.file, place.path, place.line, place.last_line] for place in each.places],
        }
        for each in results
    ]
