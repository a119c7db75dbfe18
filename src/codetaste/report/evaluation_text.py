"""One evaluation in a few lines: the rates, what they are made of, and which rules are not followed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from codetaste.evaluation.score import alignment, ifr, ifr_minus, ifr_plus
from codetaste.report.contest import counted
from codetaste.report.progress import printable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from codetaste.evaluation.baseline import Correctness
    from codetaste.evaluation.evaluate import Evaluation
    from codetaste.evaluation.score import Precision, RuleCounts
    from codetaste.rules.scan import Match

_SHOWN = 20
_NARROW = 6


def render_evaluation(evaluation: Evaluation, title: str) -> str:
    """Say ``evaluation`` in lines; ``title`` is the first."""
    return "\n".join(printable(line, 2_000) for line in (title, *_body(evaluation)))


def _body(evaluation: Evaluation) -> Iterator[str]:
    if evaluation.why:
        yield f"not scored: {evaluation.status.replace('_', ' ')}: {evaluation.why}"
    if evaluation.counts is not None:
        yield _row("IFR", ifr(evaluation.counts), _rules(evaluation.counts))
    if evaluation.precision is not None:
        yield _row("PREC", evaluation.precision.prec, _hits(evaluation.precision))
    if evaluation.lines is not None:
        yield _row("|L|", str(sum(evaluation.lines)), _lines(evaluation))
    passed = evaluation.correctness.passed
    yield _row("PASS", "?" if passed is None else "yes" if passed else "no", _tests(evaluation.correctness))
    if evaluation.counts is not None and passed is not None:
        yield _row("A", alignment(passed, ifr(evaluation.counts)), "PASS × IFR")
    yield from _rows_of("additive rules that match nothing", evaluation.lacking)
    yield from _rows_of("reductive rules that still match", _placed(evaluation))
    for note in (*evaluation.notes, *evaluation.correctness.notes):
        yield f"note: {note}"


def _row(name: str, value: float | str | None, detail: str) -> str:
    shown = value if isinstance(value, str) else _rate(value)
    return f"{name:<5}{shown:<{_NARROW}} {detail}".rstrip()


def _rate(value: float | None) -> str:
    return "?" if value is None else f"{value:.3f}"


def _rules(counts: RuleCounts) -> str:
    gone = counts.negative_total - counts.negative_matched
    positive = f"{counts.positive_matched} of {counts.positive_total} additive rules match"
    negative = f"{gone} of {counts.negative_total} reductive rules do not"
    return f"IFR⁺ {_rate(ifr_plus(counts))} ({positive}), IFR⁻ {_rate(ifr_minus(counts))} ({negative})"


def _hits(precision: Precision) -> str:
    return (
        f"PREC⁺ {_rate(precision.prec_plus)} ({precision.hits_added} of {precision.added} added lines), "
        f"PREC⁻ {_rate(precision.prec_minus)} ({precision.hits_removed} of {precision.removed} removed lines)"
    )


def _lines(evaluation: Evaluation) -> str:
    added, removed = evaluation.lines or (0, 0)
    said = f"{added} added, {removed} removed in {counted(evaluation.files, 'file')}"
    if evaluation.lines_all != evaluation.lines and evaluation.lines_all is not None:
        said += f"; with excluded folders {evaluation.lines_all[0]} and {evaluation.lines_all[1]}"
    return said


def _tests(correctness: Correctness) -> str:
    tests, bounds = correctness.tests, correctness.baseline.bounds
    said = "" if tests is None else f"{tests.passed} passed, {tests.failed} failed"
    if correctness.passed is None or bounds is None:
        return "; ".join(filter(None, [said, correctness.why]))
    return f"{said}; at least {bounds.min_passed} must pass, at most {bounds.max_failed} may fail"


def _placed(evaluation: Evaluation) -> list[str]:
    """Name each rule that remains with its first place."""
    first: dict[str, Match] = {}
    for match in evaluation.negative:
        earliest = first.setdefault(match.rule_id, match)
        if (match.path, match.start_line) < (earliest.path, earliest.start_line):
            first[match.rule_id] = match
    return [
        f"{name} ({first[name].path}:{first[name].start_line})" if name in first else name
        for name in evaluation.remaining
    ]


def _rows_of(what: str, names: Sequence[str]) -> Iterator[str]:
    if names:
        yield f"{what}: {len(names)}"
        yield from (f"  {name}" for name in names[:_SHOWN])
    if len(names) > _SHOWN:
        yield f"  … and {len(names) - _SHOWN} more (--json has all)"
