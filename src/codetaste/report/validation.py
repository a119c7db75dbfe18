"""The validation of a benchmark's instances, as text and as JSON data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from codetaste.core.text import printable
from codetaste.evaluation.metrics import ifr
from codetaste.evaluation.output.scores_json import scores_to_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from codetaste.evaluation.evaluate import Evaluation
    from codetaste.evaluation.validation import InstanceValidation


def render_validation(checked: InstanceValidation) -> str:
    """Format one instance as a line, and each reason and note as one more."""
    if checked.skip_reason:
        return f"{checked.instance}: skipped: {checked.skip_reason}"
    values = [
        _format_scores(name, evaluation)
        for name, evaluation in (("golden", checked.golden), ("null", checked.null))
        if evaluation is not None
    ]
    lines = [f"{checked.instance}: {'; '.join(['sound' if checked.valid else 'NOT SOUND', *values])}"]
    lines += [f"  {reason}" for reason in checked.problems]
    lines += [f"  note: {note}" for note in checked.notes]
    return "\n".join(printable(line, 2_000) for line in lines)


def _format_scores(name: str, evaluation: Evaluation) -> str:
    if evaluation.rule_counts is None:
        return f"{name} {evaluation.status.replace('_', ' ')}"
    rate, precision = ifr(evaluation.rule_counts), evaluation.precision
    text = f"{name} IFR {'?' if rate is None else f'{rate:.3f}'}"
    if precision is not None and (lines := precision.added + precision.removed):
        text += f", PREC {precision.prec:.3f} of {lines} lines"
    passed = evaluation.pass_result.passed
    return text if passed is None else f"{text}, {'PASS' if passed else 'tests do not pass'}"


def validations_to_json(checked: Sequence[InstanceValidation]) -> dict[str, Any]:
    """Return all instances as JSON data."""
    return {
        "sound": all_sound(checked),
        "checked": sum(each.valid is not None for each in checked),
        "skipped": sum(each.valid is None for each in checked),
        "instances": [
            {
                "instance": each.instance,
                "sound": each.valid,
                "skipped": each.skip_reason or None,
                "reasons": list(each.problems),
                "notes": list(each.notes),
                "golden": None if each.golden is None else scores_to_json(each.golden),
                "null": None if each.null is None else scores_to_json(each.null),
            }
            for each in checked
        ],
    }


def all_sound(checked: Sequence[InstanceValidation]) -> bool:
    """Whether at least one instance was checked and all checked ones are sound."""
    not_skipped = [each for each in checked if not each.skip_reason]
    return bool(not_skipped) and all(each.valid for each in not_skipped)
