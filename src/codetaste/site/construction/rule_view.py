"""Rules of a pass as its page shows them: the registered ones with their places, and the rejected ones."""

from __future__ import annotations

import json
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

from codetaste.core.text import plural, printable
from codetaste.errors import CodetasteError
from codetaste.rules.registration import format_match_count
from codetaste.rules.yaml_writer import dump_rules

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from codetaste.agent.rejected_rule import RejectedMatch, RejectedRule
    from codetaste.rules.registration import RegisteredRule
    from codetaste.rules.scan.model import Line

_MAX_YAML = 20_000
_MAX_PATHS = 40
_MAX_TEXT = 4_000


class CoveredPath(NamedTuple):
    """Lines of one file that a rule covers: as text, how many, and how many the golden patch changes."""

    path: str
    lines: str
    number: int
    changed: int | None


class RuleView(NamedTuple):
    """One registered rule as its page shows it."""

    id: str
    message: str
    severity: str
    yaml: str
    base_count: int
    golden_count: int
    covered: tuple[CoveredPath, ...]
    more_paths: int
    lines: int
    changed: int | None


class MatchView(NamedTuple):
    """A match of a rejected rule: in which code, where, and its first lines."""

    side: str
    place: str
    text: str


class RejectedView(NamedTuple):
    """One rejected candidate as its page shows it: texts, with "" where nothing is recorded."""

    id: str
    kind: str
    reason: str
    error: str
    counts: str
    yaml: str
    matches: tuple[MatchView, ...]


def rule_view(rule: RegisteredRule, changed: Mapping[str, Sequence[range]] | None) -> RuleView:
    """Return a registered rule.

    Args:
        rule: the rule.
        changed: lines that the golden patch changes on the rule's side, by path; None if it is not known.
    """
    covered = []
    for path, ranges in line_ranges(rule.coverage):
        lines = {line for first, last in ranges for line in range(first, last + 1)}
        runs = ", ".join(str(first) if first == last else f"{first}–{last}" for first, last in ranges)
        hits = (
            None if changed is None else sum(line in run for run in changed.get(path, ()) for line in lines)
        )
        covered.append(CoveredPath(printable(path, 300), printable(runs, 300), len(lines), hits))
    body = rule.body
    return RuleView(
        printable(rule.id),
        _cut(str(body.get("message", "")), _MAX_TEXT),
        printable(str(body.get("severity", "")), 60),
        _yaml(rule),
        rule.base_count,
        rule.golden_count,
        tuple(covered[:_MAX_PATHS]),
        max(0, len(covered) - _MAX_PATHS),
        len(rule.coverage),
        None if changed is None else sum(each.changed or 0 for each in covered),
    )


def rejected_view(rule: RejectedRule) -> RejectedView:
    """Return a rejected candidate."""
    reason = _cut(rule.reason, _MAX_TEXT)
    return RejectedView(
        printable(rule.id, 130),
        printable(rule.rejection.replace("_", " "), 60),
        f"{reason[:1].upper()}{reason[1:]}",
        _cut(rule.error, _MAX_TEXT),
        _counts(rule),
        _cut(rule.yaml, _MAX_YAML),
        tuple(_match_view(each) for each in rule.matches),
    )


def _counts(rule: RejectedRule) -> str:
    if rule.base_count is None and rule.golden_count is None:
        return ""
    before, after = (
        "not counted" if count is None else format_match_count(count)
        for count in (rule.base_count, rule.golden_count)
    )
    return f"{before} before the refactoring, {after} after it"


def _match_view(match: RejectedMatch) -> MatchView:
    lines = plural(max(1, match.end_line - match.start_line + 1), "line")
    place = f"{printable(match.path, 300)}:{match.start_line} ({lines})"
    return MatchView(f"the {printable(match.side, 20)} code", place, _cut(match.text, _MAX_TEXT))


def _yaml(rule: RegisteredRule) -> str:
    try:
        text = dump_rules([rule.to_rule()])
    except (CodetasteError, ValueError, TypeError, AttributeError):
        text = json.dumps(rule.body, indent=2)
    return _cut(text, _MAX_YAML)


def _cut(text: str, limit: int) -> str:
    """Return the first ``limit`` characters, and how many there are; the whole is in rules.json."""
    return text if len(text) <= limit else f"{text[:limit]}\n… ({len(text):,} characters)"


def line_ranges(coverage: frozenset[Line]) -> Iterator[tuple[str, list[tuple[int, int]]]]:
    """Yield the covered lines of each file as first and last lines of runs."""
    for path, lines in groupby(sorted(coverage), key=lambda each: each[0]):
        runs: list[tuple[int, int]] = []
        for _, line in lines:
            if runs and runs[-1][1] == line - 1:
                runs[-1] = (runs[-1][0], line)
            else:
                runs.append((line, line))
        yield path, runs
