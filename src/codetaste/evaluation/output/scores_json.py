"""``scores.json``: all values of an evaluation with the counts behind them, and notes."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from codetaste import __version__
from codetaste.evaluation.metrics import METRICS_VERSION, alignment, ifr, ifr_minus, ifr_plus

if TYPE_CHECKING:
    from codetaste.evaluation.evaluate import Evaluation
    from codetaste.evaluation.test_runs.test_run import TestRun

SCORES_FORMAT = 4
"""Version of the keys; a file without it has format 1. Scores of another format are computed again."""
_MAX_LISTED_PATHS = 100


def scores_to_json(evaluation: Evaluation) -> dict[str, Any]:
    """Return the content of ``scores.json`` as JSON data; unknown values are null.

    It contains no matches and at most a hundred paths.
    """
    rules, counts, precision = evaluation.rules, evaluation.rule_counts, evaluation.precision
    correctness, run = evaluation.pass_result, evaluation.test_run
    passed, tests, baseline = correctness.passed, correctness.tests, correctness.baseline
    whole, plus, minus = (None if counts is None else rate(counts) for rate in (ifr, ifr_plus, ifr_minus))
    effective = counts and replace(counts, positive_matched=counts.positive_matched - len(evaluation.flagged))
    bounds = None if baseline.thresholds is None else asdict(baseline.thresholds)
    added, removed = evaluation.line_counts or (None, None)
    added_all, removed_all = evaluation.line_counts_all or (None, None)
    return {
        "format": SCORES_FORMAT,
        "status": evaluation.status.value,
        "reason": evaluation.reason,
        "passed": passed,
        "ifr": whole,
        "ifr_plus": plus,
        "ifr_minus": minus,
        "ifr_unflagged": effective and ifr(effective),
        "ifr_plus_unflagged": effective and ifr_plus(effective),
        "alignment": alignment(passed, whole),
        "alignment_plus": alignment(passed, plus),
        "alignment_minus": alignment(passed, minus),
        "prec": precision and precision.prec,
        "prec_plus": precision and precision.prec_plus,
        "prec_minus": precision and precision.prec_minus,
        "added": added,
        "removed": removed,
        "added_all": added_all,
        "removed_all": removed_all,
        "files": evaluation.files,
        "exclusions": evaluation.exclusions.value,
        "hits": precision and asdict(precision),
        "hits_all": evaluation.precision_all and asdict(evaluation.precision_all),
        "positive_rules": len(rules.positive),
        "negative_rules": len(rules.negative),
        "unmet_additive": list(evaluation.unmet_additive),
        "unmet_reductive": list(evaluation.unmet_reductive),
        "flagged_rules": len(evaluation.flagged),
        "flagged": [
            {"rule": each.rule_id, "reason": each.reason.value, "path": _text(each.path), "line": each.line}
            for each in evaluation.flagged
        ],
        "tests": tests and asdict(tests),
        "baseline": bounds and {**bounds, "runs": baseline.runs, "source": baseline.source},
        "passed_reason": correctness.reason or None,
        "passed_unflagged": None if passed is None else passed and not evaluation.test_flags,
        "test_run": run and _test_run_to_json(run),
        "test_flags": [
            {
                "kind": each.kind.value,
                "path": _text(each.path),
                "line": each.line,
                "evidence": _text(each.evidence),
            }
            for each in evaluation.test_flags[:_MAX_LISTED_PATHS]
        ],
        "unscannable_files": len(evaluation.unscannable),
        "unscannable": [_text(path) for path in evaluation.unscannable[:_MAX_LISTED_PATHS]],
        "timed_out": [_text(path) for path in evaluation.timed_out[:_MAX_LISTED_PATHS]],
        "hidden_in": [_text(path) for path in evaluation.hidden_in[:_MAX_LISTED_PATHS]],
        "unread": [_text(path) for path in evaluation.unread[:_MAX_LISTED_PATHS]],
        "notes": [_text(note) for note in (*evaluation.notes, *correctness.notes)],
        "patch_sha256": evaluation.patch_sha256,
        "patch_bytes": evaluation.patch_bytes,
        "rules_sha256": {"positive": rules.positive_sha256, "negative": rules.negative_sha256},
        "engine": evaluation.engine,
        "codetaste_version": __version__,
        "metrics_version": METRICS_VERSION,
    }


def _text(text: str) -> str:
    """Replace the surrogates of a path that is not UTF-8, which JSON cannot represent."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def _test_run_to_json(run: TestRun) -> dict[str, Any]:
    return {
        "problem": run.problem,
        "message": _text(run.message),
        "exit_code": run.exit_code,
        "setup_s": round(run.setup_s, 3),
        "tests_s": round(run.tests_s, 3),
        "memory_bytes": run.memory_bytes,
        "memory_reserved_bytes": run.memory_reserved_bytes,
        "reported_tests": len(run.cases),
        "contradictions": list(map(_text, run.contradictions)),
        "report_notes": list(map(_text, run.report_notes[:_MAX_LISTED_PATHS])),
    }
