"""The funnel: how many commits entered and left each filter, why, and at which cost (CodeTaste Figure 2).

It is built while commits are filtered, from their ``FilterResult``s. Filters that run as a query add counts
instead.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from codetaste.core.units import format_exact_usd
from codetaste.mining.filter_result import Stage

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from codetaste.mining.filter_result import FilterResult

UNKNOWN = "unknown"
"""The value of a ``FilterResult`` whose number the source does not know; the commit passes and is counted."""
MAX_EXAMPLES = 5
MAX_REASONS = 20
_OTHER = "other reasons"
_NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")
_STAGES = tuple(Stage)


@dataclass(frozen=True, slots=True)
class FunnelRow:
    """What one filter did.

    Attributes:
        stage: the stage that it belongs to.
        filter: its name.
        entered: commits that reached it.
        removed: those of them that it dropped.
        unknown: those that passed because their number is not known.
        reasons: commits dropped by each reason, the most frequent first; numbers in a reason are "N".
        examples: names of the first commits that it dropped.
        cost_usd: what its model calls and queries cost, US dollars.
    """

    stage: Stage
    filter: str
    entered: int = 0
    removed: int = 0
    unknown: int = 0
    reasons: tuple[tuple[str, int], ...] = ()
    examples: tuple[str, ...] = ()
    cost_usd: Decimal = Decimal(0)

    @property
    def passed(self) -> int:
        """Commits that it left for the next filter."""
        return self.entered - self.removed


@dataclass(slots=True)
class _Counts:
    """The changing counts behind a row."""

    entered: int = 0
    unknown: int = 0
    cost_usd: Decimal = Decimal(0)
    reasons: Counter[str] = field(default_factory=Counter)
    examples: list[str] = field(default_factory=list)

    def drop(self, reason: str, number: int) -> None:
        short = _NUMBER.sub("N", reason) or "no reason"
        self.reasons[short if short in self.reasons or len(self.reasons) < MAX_REASONS else _OTHER] += number

    def add_examples(self, names: Iterable[str]) -> None:
        for name in names:
            if len(self.examples) >= MAX_EXAMPLES:
                return
            if name not in self.examples:
                self.examples.append(name)


class Funnel:
    """The rows of a run of mining, built up step by step. Its memory does not grow with the commits."""

    def __init__(self, rows: Iterable[FunnelRow] = ()) -> None:
        self._counts: dict[tuple[Stage, str], _Counts] = {}
        self.add_rows(rows)

    def add(self, commit: str, results: Iterable[FilterResult]) -> None:
        """Count one commit at each of its filters up to the first that drops it.

        Args:
            commit: its name, see ``CommitRecord.name``.
            results: of its filters, in order.
        """
        for result in results:
            counts = self._counts_of(result.stage, result.filter)
            counts.entered += 1
            counts.unknown += result.passed and result.value == UNKNOWN
            if not result.passed:
                counts.drop(result.reason, 1)
                counts.add_examples([commit])
                return

    def add_rows(self, rows: Iterable[FunnelRow]) -> None:
        """Add counts: those of a filter that ran as a query, or of another part of the run."""
        for row in rows:
            counts = self._counts_of(row.stage, row.filter)
            counts.entered += row.entered
            counts.unknown += row.unknown
            counts.cost_usd += row.cost_usd
            for reason, number in row.reasons:
                counts.drop(reason, number)
            unexplained = row.removed - sum(number for _, number in row.reasons)
            if unexplained:
                counts.drop("", unexplained)
            counts.add_examples(row.examples)

    def add_cost(self, stage: Stage, name: str, usd: Decimal) -> None:
        """Add what the filter ``name`` cost, US dollars."""
        self._counts_of(stage, name).cost_usd += usd

    @property
    def rows(self) -> tuple[FunnelRow, ...]:
        """All filters: by stage, and within one in the order in which they were first reached."""
        return tuple(
            FunnelRow(
                stage,
                name,
                counts.entered,
                counts.reasons.total(),
                counts.unknown,
                tuple(sorted(counts.reasons.items(), key=lambda item: (-item[1], item[0]))),
                tuple(counts.examples),
                counts.cost_usd,
            )
            for (stage, name), counts in sorted(
                self._counts.items(), key=lambda item: _STAGES.index(item[0][0])
            )
        )

    def _counts_of(self, stage: Stage, name: str) -> _Counts:
        return self._counts.setdefault((stage, name), _Counts())


@dataclass(frozen=True, slots=True)
class StepYield:
    """What one step of a run that mines did, from commits to instances.

    Attributes:
        step: its name.
        entered: commits or candidates that reached it.
        removed: those of them that left the run there.
        pending: those of the others for which the step has not ended well yet.
        cost_usd: what its calls and queries cost, US dollars.
    """

    step: str
    entered: int
    removed: int
    pending: int = 0
    cost_usd: Decimal = Decimal(0)

    @property
    def passed(self) -> int:
        """Commits or candidates that it left for the next step."""
        return self.entered - self.removed


def yield_of_stages(funnels: Iterable[Sequence[FunnelRow]]) -> list[StepYield]:
    """Return the yield of each stage that the mining runs have reached, all runs taken together."""
    found: dict[Stage, list[StepYield]] = {}
    for rows in funnels:
        for stage in _STAGES:
            own = [row for row in rows if row.stage is stage]
            if own:
                removed = own[0].entered - own[-1].passed
                cost_usd = sum((row.cost_usd for row in own), Decimal(0))
                found.setdefault(stage, []).append(
                    StepYield(stage.value, own[0].entered, removed, cost_usd=cost_usd)
                )
    return [
        StepYield(
            stage.value,
            sum(each.entered for each in found[stage]),
            sum(each.removed for each in found[stage]),
            cost_usd=sum((each.cost_usd for each in found[stage]), Decimal(0)),
        )
        for stage in _STAGES
        if stage in found
    ]


def yields_to_json(steps: Iterable[StepYield]) -> list[dict[str, Any]]:
    """Return the yield of steps as JSON data."""
    return [
        {
            "step": each.step,
            "entered": each.entered,
            "removed": each.removed,
            "passed": each.passed,
            "pending": each.pending,
            "cost_usd": format_exact_usd(each.cost_usd),
        }
        for each in steps
    ]


def funnel_to_json(rows: Sequence[FunnelRow]) -> dict[str, Any]:
    """Return the data of the figure: a box for each filter, with its counts, reasons, examples and cost."""
    return {
        "rows": [
            {
                "stage": row.stage.value,
                "filter": row.filter,
                "entered": row.entered,
                "removed": row.removed,
                "passed": row.passed,
                "unknown": row.unknown,
                "reasons": dict(row.reasons),
                "examples": list(row.examples),
                "cost_usd": format_exact_usd(row.cost_usd),
            }
            for row in rows
        ]
    }


def funnel_from_json(data: Mapping[str, Any]) -> tuple[FunnelRow, ...]:
    """Read what ``funnel_to_json`` returned."""
    return tuple(
        FunnelRow(
            Stage(row["stage"]),
            row["filter"],
            row["entered"],
            row["removed"],
            row["unknown"],
            tuple(row["reasons"].items()),
            tuple(row["examples"]),
            Decimal(row["cost_usd"]),
        )
        for row in data["rows"]
    )
