"""The measures of a report: the name, the titles and the value of each in a trial's record."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from operator import attrgetter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from codetaste.evaluation.trials.records import TrialRecord


_ROUNDING = 1e-9
"""Tolerated rounding error of sums of fractions beyond 0..1."""


class Unit(StrEnum):
    """The unit of a number in machine-readable output; text output shows percents and minutes instead."""

    TEXT = "text"
    COUNT = "count"
    FRACTION = "fraction"
    NUMBER = "number"
    USD = "usd"
    SECONDS = "seconds"
    P = "p"
    """A probability, shown with four decimals."""
    MEAN = "mean"
    """A number, shown with two decimals."""


@dataclass(frozen=True, slots=True)
class Measure:
    """One measure of a trial.

    Attributes:
        name: its name in files.
        title: its title in text.
        latex: its title in LaTeX.
        unit: the unit of its values.
        value: returns its value in a record; None means not measured.
        is_score: whether it is a score in 0..1, which is 0 for a failed trial.
        needs_tests: whether it is unknown without test results.
    """

    name: str
    title: str
    latex: str
    unit: Unit
    value: Callable[[TrialRecord], float | None]
    is_score: bool = False
    needs_tests: bool = False

    def accepts(self, value: float) -> bool:
        """Whether ``value`` is valid for this measure: finite, and in 0..1 if it is a fraction."""
        return math.isfinite(value) and (
            self.unit is not Unit.FRACTION or -_ROUNDING <= value <= 1 + _ROUNDING
        )

    def published_value(self, record: TrialRecord) -> float | None:
        """Return the value that the published harness includes in a mean; None where it includes none."""
        if record.published is None:
            return None
        if self.is_score or self.name == "cost_usd":
            value: float | None = getattr(record.published, self.name)
            return value
        return self.value(record)


def _score(name: str, title: str, latex: str, *, tested: bool = False) -> Measure:
    value = attrgetter(f"scores.{name}")
    return Measure(name, title, latex, Unit.FRACTION, value, is_score=True, needs_tests=tested)


def _lines(name: str, title: str, latex: str) -> Measure:
    return Measure(name, title, latex, Unit.NUMBER, attrgetter(f"scores.{name}"))


def _effort(name: str, title: str, unit: Unit) -> Measure:
    return Measure(name, title, title, unit, attrgetter(f"metadata.{name}"))


def _activity(name: str, title: str, unit: Unit) -> Measure:
    """Return a measure of an agent's activity, which is read from its transcript."""

    def count(record: TrialRecord) -> float | None:
        return None if record.activity is None else float(getattr(record.activity, name))

    return Measure(name, title, title, unit, count)


def _refactoring(name: str, title: str, unit: Unit) -> Measure:
    """Return a measure of the comparison of a trial's refactorings with the human's."""

    def value(record: TrialRecord) -> float | None:
        found = None if record.refactorings is None else getattr(record.refactorings, name)
        return None if found is None else float(found)

    return Measure(f"refactorings_{name}", title, title, unit, value)


PASS = _score("passed", "PASS", r"\textsc{Pass}", tested=True)
ALIGNMENT = _score("alignment", "A", r"$\mathcal{A}$", tested=True)
ALIGNMENT_PLUS = _score("alignment_plus", "A⁺", r"$\mathcal{A}^{+}$", tested=True)
ALIGNMENT_MINUS = _score("alignment_minus", "A⁻", r"$\mathcal{A}^{-}$", tested=True)
STRICT_SUCCESS = _score("strict_success", "Strict success", "Strict success", tested=True)
F1 = _score("f1", "F₁", r"F$_1$", tested=True)
IFR = _score("ifr", "IFR", r"\textsc{Ifr}")
IFR_PLUS = _score("ifr_plus", "IFR⁺", r"\textsc{Ifr}$^{+}$")
IFR_MINUS = _score("ifr_minus", "IFR⁻", r"\textsc{Ifr}$^{-}$")
PREC = _score("prec", "PREC", r"\textsc{Prec}")
PREC_PLUS = _score("prec_plus", "PREC⁺", r"\textsc{Prec}$^{+}$")
PREC_MINUS = _score("prec_minus", "PREC⁻", r"\textsc{Prec}$^{-}$")
EDITED = _lines("edited", "|L|", r"$|L_{\hat{X}}|$")
ADDED = _lines("added", "|L⁺|", r"$|L^{+}_{\hat{X}}|$")
REMOVED = _lines("removed", "|L⁻|", r"$|L^{-}_{\hat{X}}|$")
COST = _effort("cost_usd", "Cost", Unit.USD)
TIME = _effort("time_s", "Time", Unit.SECONDS)
TURNS = _effort("turns", "Turns", Unit.NUMBER)
TOOL_CALLS = _effort("tool_calls", "Tool calls", Unit.NUMBER)
RAN_TESTS = _activity("ran_tests", "Ran tests", Unit.FRACTION)
TEST_RUNS = _activity("test_runs", "Test runs", Unit.NUMBER)
MADE_BULK_EDITS = _activity("made_bulk_edits", "Replaced in bulk", Unit.FRACTION)
BULK_EDITS = _activity("bulk_edits", "Bulk edits", Unit.NUMBER)
HUMAN_REFACTORINGS = _refactoring("human", "Human's", Unit.NUMBER)
AGENT_REFACTORINGS = _refactoring("agent", "Agent's", Unit.NUMBER)
AGREED_REFACTORINGS = _refactoring("agreed", "Both", Unit.NUMBER)
SAME_REFACTORINGS = _refactoring("same_result", "Same result", Unit.NUMBER)
REFACTORING_RECALL = _refactoring("recall", "Of the human's", Unit.FRACTION)
REFACTORING_PRECISION = _refactoring("precision", "Of the agent's", Unit.FRACTION)
REFACTORING_PURITY = _refactoring("purity", "Pure", Unit.FRACTION)
RATES = (PASS, ALIGNMENT, ALIGNMENT_PLUS, ALIGNMENT_MINUS, IFR, IFR_PLUS, IFR_MINUS)
PRECISION = (PREC, PREC_PLUS, PREC_MINUS)
