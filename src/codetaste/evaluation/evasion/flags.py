"""Additive rules that a patch satisfies only where the code has no effect.

Such a rule is *flagged*. It counts for IFR as the formula says, and scores show IFR without it, too.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from codetaste.evaluation.changed_lines import EXCLUDED_NAMES
from codetaste.evaluation.evasion.hidden_texts import read_file
from codetaste.evaluation.evasion.lexical import without_regions
from codetaste.evaluation.evasion.unimported import ImportSearch
from codetaste.evaluation.evasion.unreachable import is_unreachable
from codetaste.source.tree.overlay import overlay_path

if TYPE_CHECKING:
    from collections.abc import Iterable

    from codetaste.rules.scan.model import Match, ScanResult
    from codetaste.source.tree.overlay import OverlayTree


_MAX_PLACES = 50
"""Matches of a rule in used files that are examined."""


class FlagReason(StrEnum):
    """Why a match has no effect."""

    EXCLUDED = "excluded"
    """Its file is in a folder that precision leaves out, whatever ``exclusions`` says."""
    UNREACHABLE = "unreachable"
    """The code can never run."""
    UNIMPORTED = "unimported"
    """Nothing uses its file, which the patch made."""


@dataclass(frozen=True, slots=True)
class FlaggedRule:
    """An additive rule, and the reason and place of its first match."""

    rule_id: str
    reason: FlagReason
    path: str
    line: int


def find_flagged_rules(
    matches: Iterable[Match], tree: OverlayTree, scans: tuple[ScanResult, ScanResult]
) -> tuple[FlaggedRule, ...]:
    """Return the rules all of whose matches in R∘X̂ have a reason, in the order of their first matches.

    Args:
        matches: matches of additive rules in R∘X̂.
        tree: R∘X̂.
        scans: the scans of R and of R∘X̂.
    """
    new = frozenset(path for path in tree.changed if not (tree.base / path).exists())
    search = ImportSearch(tree, new, scans[0].scanned | tree.changed)
    lines: dict[str, list[bytes]] = {}

    def reason_of_file(path: str) -> FlagReason | None:
        if not EXCLUDED_NAMES.isdisjoint(path.split("/")):
            return FlagReason.EXCLUDED
        return FlagReason.UNIMPORTED if search.is_unused(path) else None

    def reason_of_place(match: Match) -> FlagReason | None:
        if match.path not in lines:
            content = read_file(overlay_path(tree, match.path))
            lines[match.path] = without_regions(content, match.path, strings=True).split(b"\n")
        dead = is_unreachable(lines[match.path], match.start_line, match.start_column)
        return FlagReason.UNREACHABLE if dead else None

    by_rule: defaultdict[str, list[Match]] = defaultdict(list)
    for match in matches:
        by_rule[match.rule_id].append(match)
    flagged = []
    for name, found in by_rule.items():
        reasons = {match.path: reason_of_file(match.path) for match in found}
        used = [match for match in found if reasons[match.path] is None]
        if all(map(reason_of_place, used[:_MAX_PLACES])):
            first = found[0]
            reason = reasons[first.path] or FlagReason.UNREACHABLE
            flagged.append(FlaggedRule(name, reason, first.path, first.start_line))
    return tuple(flagged)
