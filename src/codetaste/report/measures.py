"""What a report measures of a trial: each measure with its name, its signs, and how a record has it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from operator import attrgetter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from codetaste.evaluation.records import TrialRecord


_DUST = 1e-9
"""What adding up fractions may leave beyond 0..1."""


class Unit(StrEnum):
    """What a number is, as machines read it; people see fractions as percents, and seconds as minutes."""

    TEXT = "text"
    COUNT = "count"
    FRACTION = "fraction"
    NUMBER = "number"
    USD = "usd"
    SECONDS = "seconds"
    P = "p"
    """A probability, of which people read four decimals."""
    MEAN = "mean"
    """A number whose second decimal people read."""


@dataclass(frozen=True, slots=True)
class Measure:
    """Something that is known of a trial, or not.

    Attributes:
        name: as files call it.
        title: as people read it.
        latex: the same in LaTeX.
        unit: of its values.
        of: its value in a record as we count it; None is not measured.
        score: a share of 0..1 that says what a prediction is worth: of it a failed trial has nothing.
        tested: it is not known without test results.
    """

    name: str
    title: str
    latex: str
    unit: Unit
    of: Callable[[TrialRecord], float | None]
    score: bool = False
    tested: bool = False

    def takes(self, value: float) -> bool:
        """Whether a value can be one of this measure: no NaN, no share beyond 0..1."""
        return math.isfinite(value) and (self.unit is not Unit.FRACTION or -_DUST <= value <= 1 + _DUST)

    def published(self, record: TrialRecord) -> float | None:
        """Return its value as the published harness takes it into a mean; None where it leaves it out."""
        if record.published is None:
            return None
        if self.score or self.name == "cost_usd":
            value: float | None = getattr(record.published, self.name)
            return value
        return self.of(record)


def _score(name: str, title: str, latex: str, *, tested: bool = False) -> Measure:
    return Measure(name, title, latex, Unit.FRACTION, attrgetter(name), score=True, tested=tested)


def _fact(name: str, title: str, unit: Unit, latex: str = "") -> Measure:
    return Measure(name, title, latex or title, unit, attrgetter(name))


def _act(name: str, title: str, unit: Unit) -> Measure:
    """Something that an agent did, by its transcript."""

    def count(record: TrialRecord) -> float | None:
        return None if record.activity is None else float(getattr(record.activity, name))

    return Measure(name, title, title, unit, count)


PASS = _score("passed", "PASS", r"\textsc{Pass}", tested=True)
ALIGNMENT = _score("alignment", "A", r"$\mathcal{A}$", tested=True)
ALIGNMENT_PLUS = _score("alignment_plus", "A⁺", r"$\mathcal{A}^{+}$", tested=True)
ALIGNMENT_MINUS = _score("alignment_minus", "A⁻", r"$\mathcal{A}^{-}$", tested=True)
IFR = _score("ifr", "IFR", r"\textsc{Ifr}")
IFR_PLUS = _score("ifr_plus", "IFR⁺", r"\textsc{Ifr}$^{+}$")
IFR_MINUS = _score("ifr_minus", "IFR⁻", r"\textsc{Ifr}$^{-}$")
PREC = _score("prec", "PREC", r"\textsc{Prec}")
PREC_PLUS = _score("prec_plus", "PREC⁺", r"\textsc{Prec}$^{+}$")
PREC_MINUS = _score("prec_minus", "PREC⁻", r"\textsc{Prec}$^{-}$")
EDITED = _fact("edited", "|L|", Unit.NUMBER, r"$|L_{\hat{X}}|$")
ADDED = _fact("added", "|L⁺|", Unit.NUMBER, r"$|L^{+}_{\hat{X}}|$")
REMOVED = _fact("removed", "|L⁻|", Unit.NUMBER, r"$|L^{-}_{\hat{X}}|$")
COST = _fact("cost_usd", "Cost", Unit.USD)
TIME = _fact("time_s", "Time", Unit.SECONDS)
TURNS = _fact("turns", "Turns", Unit.NUMBER)
TOOL_CALLS = _fact("tool_calls", "Tool calls", Unit.NUMBER)
RAN_TESTS = _act("ran_tests", "Ran tests", Unit.FRACTION)
TEST_RUNS = _act("test_runs", "Test runs", Unit.NUMBER)
REPLACED_IN_BULK = _act("replaced_in_bulk", "Replaced in bulk", Unit.FRACTION)
BULK_EDITS = _act("bulk_edits", "Bulk edits", Unit.NUMBER)
