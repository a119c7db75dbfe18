"""Rows of trials made by the tests."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any

from codetaste.swe_refactor.report.trial_row import TrialRow
from codetaste.swe_refactor.score.check import CheckOutcome
from codetaste.swe_refactor.score.tested_answer import TestOutcome

if TYPE_CHECKING:
    from collections.abc import Mapping


def trial_row(*, success: bool = True, **changes: Any) -> TrialRow:
    """Return a row; ``success`` decides both verdicts where ``changes`` do not."""
    found: dict[str, Any] = {
        "strategy": "simple",
        "model": "m",
        "instance": "i1",
        "project": "junit4",
        "type": "Extract Method",
        "attempt": 1,
        "compiles_and_passes": success,
        "verified": success,
        "published_check": success,
        "codebleu": 0.5,
        "cost_usd": Decimal("0.01"),
        "turns": 1,
        "wall_s": 60.0,
    }
    found |= changes
    reached = CheckOutcome.NONE_FOUND if found["compiles_and_passes"] else TestOutcome.COMPILE_FAILS
    is_success = found["compiles_and_passes"] and found["verified"]
    return TrialRow(**{"outcome": CheckOutcome.VERIFIED if is_success else reached, **found})


def rows_of_counts(
    sizes: Mapping[str, int], successes: Mapping[str, int], compiles: int = 0, verified: int = 0, **names: Any
) -> list[TrialRow]:
    """Return a row for each of ``sizes`` instances of each type, so many of them successful.

    Of those that fail the first compile, and the ones behind them are verified, until ``compiles`` and
    ``verified`` rows of all are.
    """
    rows = []
    total = sum(successes.values())
    only_compile, only_verified = max(0, compiles - total), max(0, verified - total)
    for kind, size in sizes.items():
        for at in range(size):
            same = {"instance": f"{kind} {at}", "type": kind, "project": f"project {at % 18}", **names}
            if at < successes.get(kind, 0):
                rows.append(trial_row(**same))
                continue
            compiled = only_compile > 0
            only_compile -= compiled
            checked = not compiled and only_verified > 0
            only_verified -= checked
            rows.append(trial_row(success=False, compiles_and_passes=compiled, verified=checked, **same))
    return rows
