"""The summary of a run that has ended: its results, costs and output paths."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from codetaste.core.text import printable
from codetaste.core.units import format_duration, format_usd
from codetaste.orchestration.job import Status
from codetaste.report.dry_run import prices_to_json
from codetaste.report.live.progress import format_spend
from codetaste.report.render.text import render_text
from codetaste.report.table import collapse_equal
from codetaste.report.tables.comparison import comparison_table, comparison_to_json

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from decimal import Decimal
    from pathlib import Path

    from codetaste.llm.price_table import PriceEntry
    from codetaste.orchestration.budget.cost import BudgetSnapshot
    from codetaste.orchestration.job import Outcome
    from codetaste.report.statistics.comparison import Comparison


@dataclass(frozen=True, slots=True)
class SummaryLine:
    """One job in the summary: its result and its output path."""

    outcome: Outcome
    title: str
    lane: str
    result: str = ""
    path: str = ""
    hidden: bool = False
    """Whether the line is left out if the job succeeded, because another line or the comparison shows it."""


@dataclass(frozen=True, slots=True)
class Summary:
    """A run that has ended.

    ``scripted`` are the ids of scripted models, whose costs are not real; ``products`` are the output folders
    by title; ``prices`` are those of the models used, by id; ``notes`` are further lines for the user.
    """

    name: str
    directory: Path
    money: BudgetSnapshot
    wall_s: float
    lines: Sequence[SummaryLine]
    scripted: Sequence[str] = ()
    products: Mapping[str, Path] = field(default_factory=dict)
    prices: Mapping[str, PriceEntry] = field(default_factory=dict)
    stop_reason: str = ""
    comparison: Comparison | None = None
    notes: Sequence[str] = ()

    @property
    def failed(self) -> list[SummaryLine]:
        """The jobs without a result."""
        return [line for line in self.lines if not line.outcome.usable]

    @property
    def exit_code(self) -> int:
        """0 when every job has a result, 130 when the user stopped the run, 1 otherwise."""
        if self.stop_reason:
            return 130
        return 1 if self.failed else 0


def render_summary(summary: Summary, width: int | None = None) -> str:
    """Render a summary as plain text, one line a job; the comparison is ``width`` columns wide if given."""
    done = len(summary.lines) - len(summary.failed)
    result = f"{summary.name}: {done} of {len(summary.lines)} jobs have a result"
    output = [f"{result} · {format_duration(summary.wall_s)} · {format_spend(summary.money)}"]
    if summary.stop_reason:
        output.append(f"stopped: {summary.stop_reason}; run the same command again to continue")
    lines = [line for line in summary.lines if not (line.hidden and line.outcome.usable)]
    longest = max((len(line.title) for line in lines), default=0)
    output.extend(_job_line(line, longest) for line in lines)
    output.extend(printable(note, 1000) for note in summary.notes)
    output.extend(
        f"model {model} is scripted: no provider was called, and no money was spent on it"
        for model in summary.scripted
    )
    output.extend(
        f"model {name} was priced by {entry.source}"
        for name, entry in summary.prices.items()
        if entry.price is not None and entry.source != "config"
    )
    output.extend(
        f"model {name} has no price: its cost is not included in these figures"
        for name, entry in summary.prices.items()
        if entry.price is None and name not in summary.scripted
    )
    unknown_usd = summary.money.unknown.usd
    if unknown_usd:
        output.append(f"{format_usd(unknown_usd)} is unknown: interrupted calls may have been billed")
    output.extend(f"{what}: {folder}" for what, folder in summary.products.items())
    output.append(f"run folder: {summary.directory}")
    if summary.comparison is not None:
        output.extend(["", render_comparison(summary.comparison, width)])
    return "\n".join(output)


def render_comparison(comparison: Comparison, width: int | None = None) -> str:
    """Render a comparison as plain text, at most ``width`` columns wide where possible."""
    if not comparison.systems:
        return "There are no trials to compare."
    both = [comparison] if comparison.published is None else [comparison, comparison.published]
    tables = collapse_equal([comparison_table(each) for each in both])
    return "\n\n".join(render_text(table, width) for table in tables)


def _job_line(line: SummaryLine, width: int) -> str:
    outcome = line.outcome
    mark = "ok " if outcome.status is Status.DONE else "cut" if outcome.usable else "-- "
    again = " (from an earlier session)" if outcome.resumed else ""
    why = f": {outcome.error}" if outcome.error else ""
    money = format_usd(outcome.cost.spent.usd)
    status = "" if outcome.status is Status.DONE else f" {outcome.status}{why}"
    found = f"{';' if status else ''} {line.result}" if line.result else ""
    return printable(f"  {mark} {line.title:<{width}} {money:>9}{status}{found}{again}", 1000)


def summary_to_json(summary: Summary) -> dict[str, Any]:
    """Return a summary as JSON data; money is exact, as text."""
    return {
        "name": summary.name,
        "directory": str(summary.directory),
        "exit_code": summary.exit_code,
        "stop_reason": summary.stop_reason or None,
        "wall_s": round(summary.wall_s, 3),
        "money": money_to_json(summary.money),
        "scripted_models": list(summary.scripted),
        "prices": prices_to_json(summary.prices),
        "comparison": None if summary.comparison is None else comparison_to_json(summary.comparison),
        "notes": list(summary.notes),
        "jobs": [
            {
                "key": line.outcome.key,
                "status": str(line.outcome.status),
                "cause": line.outcome.cause and str(line.outcome.cause),
                "error": line.outcome.error or None,
                "traceback": line.outcome.traceback or None,
                "attempts": line.outcome.attempts,
                "resumed": line.outcome.resumed,
                "model": line.lane or None,
                "money": money_to_json(line.outcome.cost),
                "result": line.result or None,
                "path": line.path or None,
                "value": line.outcome.value,
            }
            for line in summary.lines
        ],
    }


def money_to_json(money: BudgetSnapshot) -> dict[str, Any]:
    """Return the money of a budget node as JSON data; dollars are text."""

    def usd(amount: Decimal | None) -> str | None:
        return None if amount is None else format(amount, "f")

    return {
        "settled_usd": usd(money.settled.usd),
        "unknown_usd": usd(money.unknown.usd),
        "reserved_usd": usd(money.reserved.usd),
        "limit_usd": usd(money.limits.usd),
        "tokens": money.spent.tokens,
    }
