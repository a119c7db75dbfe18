"""The facts at the top of a trial's page: who, on what, how it ended, its scores, cost and time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from codetaste.core.text import plural
from codetaste.report.statistics.measures import (
    ALIGNMENT,
    COST,
    IFR,
    IFR_MINUS,
    IFR_PLUS,
    PASS,
    PREC,
    PREC_MINUS,
    PREC_PLUS,
    TIME,
    TOOL_CALLS,
    TURNS,
    Unit,
)
from codetaste.report.statistics.merge import track_mode_of
from codetaste.report.table import NO_VALUE, Column, format_cell
from codetaste.results.outcome import reason_of_record

if TYPE_CHECKING:
    from codetaste.evaluation.trials.records import TrialRecord
    from codetaste.report.statistics.measures import Measure
    from codetaste.results.outcome import OutcomeFacet

_RATES = (PASS, IFR, ALIGNMENT, IFR_PLUS, IFR_MINUS, PREC, PREC_PLUS, PREC_MINUS)
_EFFORT = (COST, TIME, TURNS, TOOL_CALLS)


@dataclass(frozen=True, slots=True)
class ShownNumber:
    """A number as the tables of ``codetaste report`` show it, with its unit."""

    name: str
    title: str
    text: str
    unit: str


def page_title(trial: TrialRecord) -> str:
    """Return the title of a trial's page."""
    setting = f", {track_mode_of(trial).title}" if trial.track else ""
    attempt = f", attempt {trial.attempt}" if trial.attempt > 1 else ""
    return f"{trial.agent}{setting}: {trial.instance}{attempt}"


def trial_rates(trial: TrialRecord) -> list[ShownNumber]:
    """Return the scores of a trial."""
    return [_shown(measure, trial) for measure in _RATES]


def trial_facts(trial: TrialRecord) -> list[tuple[str, str]]:
    """Return what else is known of a trial, as pairs of name and text; what is unknown is left out."""
    metadata, scores = trial.metadata, trial.scores
    effort = [(measure.title, _with_unit(_shown(measure, trial))) for measure in _EFFORT]
    lines = "" if scores.added is None else f"+{scores.added:,} −{scores.removed or 0:,}"
    rules = f"{plural(scores.flagged_rules, 'rule')} satisfied by code without effect"
    tests = f"{plural(scores.test_flags, 'sign')} that tests pass without the code"
    flags = [*([rules] if scores.flagged_rules else []), *([tests] if scores.test_flags else [])]
    facts = [
        ("Reason", reason_of_record(trial)),
        ("Instance", trial.instance),
        ("Repository", trial.repository),
        ("Track and mode", track_mode_of(trial).title if trial.track else ""),
        ("Attempt", str(trial.attempt) if trial.attempt > 1 else ""),
        ("Run", trial.run),
        ("Model", metadata.model),
        ("Harness", metadata.harness),
        ("Ended", metadata.finish_reason + (f": {metadata.message}" if metadata.message else "")),
        ("Requests refused", str(metadata.refusals or "")),
        ("Interrupted", metadata.interruption),
        ("Lines", lines),
        *effort,
        ("Flags", "; ".join(flags)),
        ("Scored by", scores.scored_by.partition(" (")[0].strip(", ")),
    ]
    return [(name, text) for name, text in facts if text]


def trial_to_json(trial: TrialRecord, facet: OutcomeFacet) -> dict[str, Any]:
    """Return the identity and the numbers of a trial as JSON data; unknown numbers are null."""
    numbers = {measure.name: measure.value(trial) for measure in (*_RATES, *_EFFORT)}
    return {
        "run": trial.run,
        "agent": trial.agent,
        "track": trial.track,
        "mode": trial.mode,
        "instance": trial.instance,
        "attempt": trial.attempt,
        "outcome": facet.value,
        "status": trial.scores.status.value,
        "reason": reason_of_record(trial),
        "finish_reason": trial.metadata.finish_reason,
        "model": trial.metadata.model,
        "added": trial.scores.added,
        "removed": trial.scores.removed,
        **numbers,
    }


def _with_unit(number: ShownNumber) -> str:
    """Return a number with its unit, where that is written: "$0.11", "4.2 min"."""
    if number.text == NO_VALUE or not number.unit:
        return number.text
    return f"${number.text}" if number.unit == "$" else f"{number.text} {number.unit}"


def _shown(measure: Measure, trial: TrialRecord) -> ShownNumber:
    decimals = 0 if measure.unit is Unit.NUMBER else None
    column = Column(measure.name, measure.title, measure.unit, decimals=decimals)
    value = measure.value(trial)
    if isinstance(value, bool):
        value = float(value)
    return ShownNumber(measure.name, measure.title, format_cell(value, column)[0], column.sign)
