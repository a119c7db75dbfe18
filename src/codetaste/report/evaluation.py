"""One evaluation as text: the scores, the counts behind them, and the rules that are not met."""

from __future__ import annotations

from typing import TYPE_CHECKING

from codetaste.core.text import plural, printable
from codetaste.evaluation.metrics import alignment, ifr, ifr_minus, ifr_plus

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from codetaste.evaluation.baseline import PassResult
    from codetaste.evaluation.evaluate import Evaluation
    from codetaste.evaluation.metrics import PrecisionCounts, RuleCounts
    from codetaste.rules.scan.model import Match

_MAX_RULES = 20
_VALUE_WIDTH = 6


def render_evaluation(evaluation: Evaluation, title: str) -> str:
    """Render ``evaluation`` as lines; ``title`` is the first."""
    return "\n".join(printable(line, 2_000) for line in (title, *_body(evaluation)))


def _body(evaluation: Evaluation) -> Iterator[str]:
    if evaluation.why:
        yield f"not scored: {evaluation.status.replace('_', ' ')}: {evaluation.why}"
    if evaluation.rule_counts is not None:
        yield _row("IFR", ifr(evaluation.rule_counts), _format_rules(evaluation.rule_counts))
    if evaluation.precision is not None:
        yield _row("PREC", evaluation.precision.prec, _format_precision(evaluation.precision))
    if evaluation.line_counts is not None:
        yield _row("|L|", str(sum(evaluation.line_counts)), _format_lines(evaluation))
    passed = evaluation.pass_result.passed
    yield _row(
        "PASS", "?" if passed is None else "yes" if passed else "no", _format_tests(evaluation.pass_result)
    )
    if evaluation.rule_counts is not None and passed is not None:
        yield _row("A", alignment(passed, ifr(evaluation.rule_counts)), "PASS × IFR")
    yield from _list_rules("additive rules that match nothing", evaluation.unmet_additive)
    yield from _list_rules("reductive rules that still match", _with_places(evaluation))
    for note in (*evaluation.notes, *evaluation.pass_result.notes):
        yield f"note: {note}"


def _row(name: str, value: float | str | None, detail: str) -> str:
    shown = value if isinstance(value, str) else _rate(value)
    return f"{name:<5}{shown:<{_VALUE_WIDTH}} {detail}".rstrip()


def _rate(value: float | None) -> str:
    return "?" if value is None else f"{value:.3f}"


def _format_rules(counts: RuleCounts) -> str:
    gone = counts.negative_total - counts.negative_matched
    positive = f"{counts.positive_matched} of {counts.positive_total} additive rules match"
    negative = f"{gone} of {counts.negative_total} reductive rules do not"
    return f"IFR⁺ {_rate(ifr_plus(counts))} ({positive}), IFR⁻ {_rate(ifr_minus(counts))} ({negative})"


def _format_precision(precision: PrecisionCounts) -> str:
    return (
        f"PREC⁺ {_rate(precision.prec_plus)} ({precision.hits_added} of {precision.added} added lines), "
        f"PREC⁻ {_rate(precision.prec_minus)} ({precision.hits_removed} of {precision.removed} removed lines)"
    )


def _format_lines(evaluation: Evaluation) -> str:
    added, removed = evaluation.line_counts or (0, 0)
    text = f"{added} added, {removed} removed in {plural(evaluation.files, 'file')}"
    if evaluation.line_counts_all != evaluation.line_counts and evaluation.line_counts_all is not None:
        text += f"; with excluded folders {evaluation.line_counts_all[0]} and {evaluation.line_counts_all[1]}"
    return text


def _format_tests(correctness: PassResult) -> str:
    tests, bounds = correctness.tests, correctness.baseline.thresholds
    text = "" if tests is None else f"{tests.passed} passed, {tests.failed} failed"
    if correctness.passed is None or bounds is None:
        return "; ".join(filter(None, [text, correctness.why]))
    return f"{text}; at least {bounds.min_passed} must pass, at most {bounds.max_failed} may fail"


def _with_places(evaluation: Evaluation) -> list[str]:
    """Return the unmet reductive rules, each with the place of its first match."""
    first: dict[str, Match] = {}
    for match in evaluation.negative_matches:
        earliest = first.setdefault(match.rule_id, match)
        if (match.path, match.start_line) < (earliest.path, earliest.start_line):
            first[match.rule_id] = match
    return [
        f"{name} ({first[name].path}:{first[name].start_line})" if name in first else name
        for name in evaluation.unmet_reductive
    ]


def _list_rules(what: str, names: Sequence[str]) -> Iterator[str]:
    if names:
        yield f"{what}: {len(names)}"
        yield from (f"  {name}" for name in names[:_MAX_RULES])
    if len(names) > _MAX_RULES:
        yield f"  … and {len(names) - _MAX_RULES} more (--json has all)"
