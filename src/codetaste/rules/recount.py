"""Recount the matches that a published rule file states (``codetaste rules check``)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from codetaste.core.concurrency import gather
from codetaste.rules.rule import Rule, parse_rules

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from codetaste.rules.scan.model import Scanner, ScanProblem, ScanResult


@dataclass(frozen=True, slots=True)
class CountMismatch:
    """A rule whose counts differ from the stated ones; None: the count is not stated or could not be made.

    Attributes:
        file: its file.
        rule_id: its id, unique in that file.
        line: where the rule starts in the file.
        stated_base: ``nr_legacy_patterns``.
        stated_golden: ``nr_refactored_patterns``.
        base: M(γ, R).
        golden: M(γ, R∘X*).
        reason: why a count could not be made, else "".
    """

    file: str
    rule_id: str
    line: int
    stated_base: int | None
    stated_golden: int | None
    base: int | None
    golden: int | None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class RecountReport:
    """Result of recounting the rules of one instance; ``problems`` have the tree, "base" or "golden"."""

    rule_count: int
    mismatches: tuple[CountMismatch, ...]
    problems: tuple[tuple[str, ScanProblem], ...]

    @property
    def all_match(self) -> bool:
        """True when every count equals the stated one."""
        return not self.mismatches


async def recount_rules(
    scanner: Scanner,
    base_tree: Path,
    golden_tree: Path,
    texts: Mapping[str, str | bytes],
) -> RecountReport:
    """Count the matches of rule files in R and R∘X* and compare them with the rules' metadata.

    Each tree is scanned once with all rules. ``texts`` are the files by name, ``""`` for a missing one.

    Raises:
        RuleError: a file is malformed.
        EngineError: the engine could not be run at all.
    """
    named = [(name, rule) for name, text in texts.items() if text for rule in parse_rules(text, source=name)]
    # Ids are unique within each file only.
    rules = [Rule(f"rule-{number}", rule.languages, rule.body) for number, (_, rule) in enumerate(named)]
    base, golden = await gather([partial(scanner.scan, rules, tree) for tree in (base_tree, golden_tree)])
    found = (
        _compare(name, rule, alias.id, base, golden) for (name, rule), alias in zip(named, rules, strict=True)
    )
    own_ids = {alias.id: rule.id for (_, rule), alias in zip(named, rules, strict=True)}
    problems = (
        (side, replace(problem, rule_id=own_ids.get(problem.rule_id, problem.rule_id)))
        for side, scan in (("base", base), ("golden", golden))
        for problem in scan.problems
    )
    return RecountReport(len(rules), tuple(entry for entry in found if entry), tuple(problems))


def _compare(name: str, rule: Rule, alias: str, base: ScanResult, golden: ScanResult) -> CountMismatch | None:
    failures = {"base": base.failures(alias), "golden": golden.failures(alias)}
    counts = (
        None if failures["base"] else base.count(alias),
        None if failures["golden"] else golden.count(alias),
    )
    metadata = rule.body.get("metadata") or {}
    stated = _stated(metadata.get("nr_legacy_patterns")), _stated(metadata.get("nr_refactored_patterns"))
    if counts == stated and None not in counts:
        return None
    reasons = dict.fromkeys(f"{side}: {p.message}" for side, problems in failures.items() for p in problems)
    return CountMismatch(name, rule.id, rule.line, *stated, *counts, "; ".join(reasons)[:1000])


def _stated(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
