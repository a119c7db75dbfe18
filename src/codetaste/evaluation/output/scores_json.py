"""``scores.json``: all values of an evaluation with the counts behind them, and notes."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from codetaste import __version__
from codetaste.evaluation.metrics import METRICS_VERSION, alignment, ifr, ifr_minus, ifr_plus

if TYPE_CHECKING:
    from codetaste.evaluation.baseline import PassResult
    from codetaste.evaluation.evaluate import Evaluation
    from codetaste.evaluation.metrics import PrecisionCounts, RuleCounts

_MAX_LISTED_PATHS = 100


def scores_to_json(evaluation: Evaluation) -> dict[str, Any]:
    """Return the content of ``scores.json`` as JSON data; unknown values are null.

    It contains no matches and at most a hundred paths.
    """
    rules, correctness = evaluation.rules, evaluation.pass_result
    added, removed = evaluation.line_counts or (None, None)
    added_all, removed_all = evaluation.line_counts_all or (None, None)
    return {
        "status": evaluation.status.value,
        "reason": evaluation.why,
        **_rates(evaluation.rule_counts, evaluation.precision, correctness.passed),
        "added": added,
        "removed": removed,
        "added_all": added_all,
        "removed_all": removed_all,
        "files": evaluation.files,
        "exclusions": evaluation.exclusions.value,
        "hits": _precision(evaluation.precision),
        "hits_all": _precision(evaluation.precision_all),
        "positive_rules": len(rules.positive),
        "negative_rules": len(rules.negative),
        "unmet_additive": list(evaluation.unmet_additive),
        "unmet_reductive": list(evaluation.unmet_reductive),
        **_correctness(correctness),
        "unscannable_files": len(evaluation.unscannable),
        "unscannable": [_text(path) for path in evaluation.unscannable[:_MAX_LISTED_PATHS]],
        "notes": [_text(note) for note in (*evaluation.notes, *correctness.notes)],
        "patch_sha256": evaluation.patch_sha256,
        "patch_bytes": evaluation.patch_bytes,
        "rules_sha256": {"positive": rules.positive_sha256, "negative": rules.negative_sha256},
        "engine": evaluation.engine,
        "codetaste_version": __version__,
        "metrics_version": METRICS_VERSION,
    }


def _rates(
    counts: RuleCounts | None, precision: PrecisionCounts | None, passed: bool | None
) -> dict[str, Any]:
    whole, plus, minus = (None if counts is None else rate(counts) for rate in (ifr, ifr_plus, ifr_minus))
    return {
        "passed": passed,
        "ifr": whole,
        "ifr_plus": plus,
        "ifr_minus": minus,
        "alignment": alignment(passed, whole),
        "alignment_plus": alignment(passed, plus),
        "alignment_minus": alignment(passed, minus),
        "prec": None if precision is None else precision.prec,
        "prec_plus": None if precision is None else precision.prec_plus,
        "prec_minus": None if precision is None else precision.prec_minus,
    }


def _precision(precision: PrecisionCounts | None) -> dict[str, int] | None:
    return None if precision is None else asdict(precision)


def _correctness(correctness: PassResult) -> dict[str, Any]:
    tests, baseline = correctness.tests, correctness.baseline
    bounds = None if baseline.thresholds is None else asdict(baseline.thresholds)
    return {
        "tests": None if tests is None else asdict(tests),
        "baseline": bounds and {**bounds, "runs": baseline.runs, "source": baseline.source},
        "passed_reason": correctness.why or None,
    }


def _text(text: str) -> str:
    """Replace the surrogates of a path that is not UTF-8, which JSON cannot represent."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
