"""One evaluation as text: the scores, the counts behind them, and the rules that are not met."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from codetaste.core.text import plural, printable
from codetaste.evaluation.metrics import alignment, ifr, ifr_minus, ifr_plus
from codetaste.report.render.text import render_text
from codetaste.report.tables.refactorings import patch_refactorings_table

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from codetaste.evaluation.activity.refactorings import RefactoringComparison
    from codetaste.evaluation.evaluate import Evaluation
    from codetaste.rules.scan.model import Match

_MAX_RULES = 20
_VALUE_WIDTH = 6


def render_evaluation(evaluation: Evaluation, title: str) -> str:
    """Render ``evaluation`` as lines; ``title`` is the first."""
    return "\n".join(printable(line, 2_000) for line in (title, *_body(evaluation)))


def render_refactorings(comparison: RefactoringComparison, evaluation: Evaluation, width: int | None) -> str:
    """Render how the refactorings of the patch compare with the human's: a table beside IFR, and each one."""
    counts = comparison.counts
    if counts is None:
        return printable(f"refactorings: {comparison.describe()}")
    rules = evaluation.rule_counts
    table = patch_refactorings_table(None if rules is None else ifr(rules), counts)
    each = [f"{row.by}: {row.type}, {row.path}: {row.element}" for row in comparison.rows]
    lines = _list_rules("refactorings", [printable(line) for line in each])
    return "\n".join([render_text(table, width), *lines])


def _body(evaluation: Evaluation) -> Iterator[str]:
    if evaluation.reason:
        yield f"not scored: {evaluation.status.replace('_', ' ')}: {evaluation.reason}"
    yield from _scores(evaluation)
    yield from _list_rules("additive rules that match nothing", evaluation.unmet_additive)
    first: dict[str, Match] = {}
    for match in sorted(evaluation.negative_matches, key=lambda match: (match.path, match.start_line)):
        first.setdefault(match.rule_id, match)
    still = [
        f"{name} ({first[name].path}:{first[name].start_line})" if name in first else name
        for name in evaluation.unmet_reductive
    ]
    yield from _list_rules("reductive rules that still match", still)
    flagged = [f"{each.rule_id} ({each.reason}: {each.path}:{each.line})" for each in evaluation.flagged]
    yield from _list_rules("additive rules that match only code without effect", flagged)
    flags = [f"{each.kind}: {each.evidence}{_place(each.path, each.line)}" for each in evaluation.test_flags]
    yield from _list_rules("flags of the test run", flags)
    for note in (*evaluation.notes, *evaluation.pass_result.notes):
        yield f"note: {note}"


def _scores(evaluation: Evaluation) -> Iterator[str]:
    """Yield each score with the counts behind it."""
    counts, precision = evaluation.rule_counts, evaluation.precision
    if counts is not None:
        gone = counts.negative_total - counts.negative_matched
        positive = f"{counts.positive_matched} of {counts.positive_total} additive rules match"
        negative = f"{gone} of {counts.negative_total} reductive rules do not"
        detail = f"IFR⁺ {_rate(ifr_plus(counts))} ({positive}), IFR⁻ {_rate(ifr_minus(counts))} ({negative})"
        yield _row("IFR", _rate(ifr(counts)), detail)
        if flagged := len(evaluation.flagged):
            effective = replace(counts, positive_matched=counts.positive_matched - flagged)
            yield _row("", _rate(ifr(effective)), f"without {plural(flagged, 'flagged additive rule')}")
    if precision is not None:
        added = f"{precision.hits_added} of {precision.added} added lines"
        removed = f"{precision.hits_removed} of {precision.removed} removed lines"
        detail = (
            f"PREC⁺ {_rate(precision.prec_plus)} ({added}), PREC⁻ {_rate(precision.prec_minus)} ({removed})"
        )
        yield _row("PREC", _rate(precision.prec), detail)
    if evaluation.line_counts is not None:
        lines_added, lines_removed = evaluation.line_counts
        detail = f"{lines_added} added, {lines_removed} removed in {plural(evaluation.files, 'file')}"
        if evaluation.line_counts_all not in (evaluation.line_counts, None):
            detail += "; with excluded folders {} and {}".format(*evaluation.line_counts_all)
        yield _row("|L|", str(sum(evaluation.line_counts)), detail)
    result = evaluation.pass_result
    passed, tests, bounds = result.passed, result.tests, result.baseline.thresholds
    detail = "" if tests is None else f"{tests.passed} passed, {tests.failed} failed"
    if passed is None or bounds is None:
        detail = "; ".join(filter(None, [detail, result.reason]))
    else:
        detail += f"; at least {bounds.min_passed} must pass, at most {bounds.max_failed} may fail"
    yield _row("PASS", "?" if passed is None else "yes" if passed else "no", detail)
    if passed and (flags := len(evaluation.test_flags)):
        yield _row("", "no", f"if the {plural(flags, 'flag')} of its test run counted")
    if counts is not None and passed is not None:
        yield _row("A", _rate(alignment(passed, ifr(counts))), "PASS × IFR")


def _place(path: str, line: int) -> str:
    return "" if not path else f" ({path}:{line})" if line else f" ({path})"


def _row(name: str, value: str, detail: str) -> str:
    return f"{name:<5}{value:<{_VALUE_WIDTH}} {detail}".rstrip()


def _rate(value: float | None) -> str:
    return "?" if value is None else f"{value:.3f}"


def _list_rules(what: str, names: Sequence[str]) -> Iterator[str]:
    if names:
        yield f"{what}: {len(names)}"
        yield from (f"  {name}" for name in names[:_MAX_RULES])
    if len(names) > _MAX_RULES:
        yield f"  … and {len(names) - _MAX_RULES} more (--json has all)"
