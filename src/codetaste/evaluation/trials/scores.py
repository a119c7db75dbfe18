"""The scores of one trial, from our ``scores.json`` or from the published ``evaluation_result.json``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from codetaste.evaluation.evaluate import EvaluationStatus
from codetaste.evaluation.metrics import CRASHED_RUN, RuleCounts, TestCounts, ifr, ifr_minus, ifr_plus
from codetaste.evaluation.test_runs.recorded import parse_test_counts
from codetaste.evaluation.trials.records import ProblemKind, TrialScores, TrialStatus
from codetaste.evaluation.trials.untrusted_files import FileProblem, parse_count, parse_fraction, parse_text

if TYPE_CHECKING:
    from collections.abc import Mapping

_STATUS = {
    EvaluationStatus.SCORED: TrialStatus.SCORED,
    EvaluationStatus.NO_RULES: TrialStatus.SCORED,
    EvaluationStatus.PARTIAL_SCAN: TrialStatus.PARTIAL,
    EvaluationStatus.DOES_NOT_APPLY: TrialStatus.DOES_NOT_APPLY,
    EvaluationStatus.UNPARSABLE_PATCH: TrialStatus.DOES_NOT_APPLY,
    EvaluationStatus.TOO_LARGE: TrialStatus.DOES_NOT_APPLY,
}
_MAX_NOTES = 100


def scores_from_json(scores: Mapping[str, Any]) -> TrialScores:
    """Return the scores in our ``scores.json``.

    Raises:
        FileProblem: a value in it is invalid.
    """
    try:
        status = EvaluationStatus(str(scores.get("status")))
    except ValueError:
        raise FileProblem(ProblemKind.LAYOUT, f"its status is {parse_text(scores.get('status'))!r}") from None
    passed = scores.get("passed")
    if not (passed is None or isinstance(passed, bool)):
        raise FileProblem(ProblemKind.NUMBER, "passed is neither true nor false")
    notes = scores.get("notes")
    notes = notes[:_MAX_NOTES] if isinstance(notes, list) else []
    why = parse_text(scores.get("reason"), 300)
    if status is EvaluationStatus.NO_RULES:
        why = why or "no rules: IFR is not defined"
    rates = {
        name: parse_fraction(scores.get(name), name)
        for name in ("ifr", "ifr_plus", "ifr_minus", "prec", "prec_plus", "prec_minus", "ifr_unflagged")
    }
    version = parse_text(scores.get("codetaste_version"))
    return TrialScores(
        _STATUS[status],
        why or (parse_text(scores.get("passed_reason"), 300) if passed is None else ""),
        parse_test_counts(scores.get("tests")),
        passed,
        **rates,
        added=parse_count(scores.get("added"), "added"),
        removed=parse_count(scores.get("removed"), "removed"),
        flagged_rules=parse_count(scores.get("flagged_rules"), "flagged_rules") or 0,
        test_flags=len(flags) if isinstance(flags := scores.get("test_flags"), list) else 0,
        scored_by=f"codetaste {version}, {parse_text(scores.get('engine'))}",
        rules_sha256=_rules(scores.get("rules_sha256")),
        notes=tuple(note for each in notes if (note := parse_text(each, 300))),
    )


def _rules(digests: object) -> str:
    if not isinstance(digests, dict):
        return parse_text(digests)
    return "+".join(parse_text(digests.get(direction)) for direction in ("positive", "negative"))


@dataclass(frozen=True, slots=True)
class PublishedResult:
    """The content of ``evaluation_result.json``; ``tests`` is None if it has none.

    ``loadable`` tells whether the published harness could read it, ``invalid_tests`` whether it has test
    results that are not valid counts.
    """

    rule_counts: RuleCounts
    tests: TestCounts | None
    instance_metadata: Mapping[str, Any]
    agent_config: Mapping[str, Any]
    loadable: bool
    invalid_tests: bool


def result_from_json(data: Mapping[str, Any]) -> PublishedResult:
    """Return the content of ``evaluation_result.json``.

    Raises:
        FileProblem: the counts of rules are missing or inconsistent.
    """
    metrics = data.get("agent_rule_metrics")
    if not isinstance(metrics, dict):
        raise FileProblem(ProblemKind.LAYOUT, "has no agent_rule_metrics")
    names = (
        "positive_rules_matched",
        "total_positive_rules",
        "negative_rules_matched",
        "total_negative_rules",
    )
    found = [parse_count(metrics.get(name), name) for name in names]
    numbers = [number for number in found if number is not None]
    if len(numbers) != len(names):
        raise FileProblem(ProblemKind.NUMBER, f"{names[found.index(None)]} is missing")
    counts = RuleCounts(*numbers)
    if counts.positive_matched > counts.positive_total or counts.negative_matched > counts.negative_total:
        raise FileProblem(ProblemKind.NUMBER, "more rules match than there are")
    tests = data.get("agent_test_metrics")
    instance, agent = data.get("instance_metadata"), data.get("agent_config")
    read = parse_test_counts(tests)
    odd_tests = tests is not None and read is None
    return PublishedResult(
        counts,
        read,
        instance if isinstance(instance, dict) else {},
        agent if isinstance(agent, dict) else {},
        _loads_agent(agent) and isinstance(instance, dict) and not odd_tests,
        odd_tests,
    )


def scores_of_result(result: PublishedResult, *, tests_ran: bool) -> TrialScores:
    """Return the scores of a complete published evaluation; a test run without results is a crash (0, 0)."""
    counts = result.rule_counts
    rules = counts.positive_total + counts.negative_total
    return TrialScores(
        TrialStatus.SCORED,
        "" if rules else "no rules: IFR is not defined",
        result.tests or (CRASHED_RUN if tests_ran else None),
        ifr=ifr(counts),
        ifr_plus=ifr_plus(counts),
        ifr_minus=ifr_minus(counts),
    )


def _loads_agent(config: object) -> bool:
    """Whether the published models accept ``config`` as an agent's configuration."""
    if not isinstance(config, dict) or not isinstance(config.get("id"), str):
        return False
    parts = [config.get(name) for name in ("agent", "model")]
    return all(
        isinstance(part, dict) and all(isinstance(part.get(key), str) for key in ("name", "provider"))
        for part in parts
    )
