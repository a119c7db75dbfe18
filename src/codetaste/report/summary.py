"""The summary of a run that has ended: its results, costs and output paths."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from shlex import quote
from typing import TYPE_CHECKING, Any

from codetaste.console.exit_codes import STOPPED
from codetaste.console.streams import colour
from codetaste.core.text import printable, shorten, wrap
from codetaste.core.units import format_duration, format_usd
from codetaste.errors import Cause
from codetaste.report.dry_run import prices_to_json
from codetaste.report.ending import count_endings, ending_of_outcome, format_endings
from codetaste.report.live.progress import format_spend
from codetaste.report.render.json import table_to_json
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
    from codetaste.report.ending import Ending
    from codetaste.report.statistics.comparison import Comparison
    from codetaste.report.table import Table


MAX_LINES = 20
"""Up to this number all jobs have a line."""
_MOST_BAD = 14
"""Of more jobs those that ended well are only counted, and at most this number of the others has a line."""
_MAX_JOB_LINE = 400


@dataclass(frozen=True, slots=True)
class SummaryLine:
    """One job in the summary: its result and its output path."""

    outcome: Outcome
    title: str
    lane: str
    result: str = ""
    path: str = ""
    hidden: bool = False
    """Whether the line is left out if the job ended well, because another line or the comparison shows it."""

    @property
    def ending(self) -> Ending:
        """How the job ended."""
        return ending_of_outcome(self.outcome)


@dataclass(frozen=True, slots=True)
class Summary:
    """A run that has ended.

    ``scripted`` are the ids of scripted models, whose costs are not real; ``products`` are the output folders
    by title; ``prices`` are those of the models used, by id; ``notes`` are further lines for the user,
    ``tables`` those of SWE-Refactor's trials. With ``exit_zero`` the exit code does not
    say that a job with a result ended badly.
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
    exit_zero: bool = False
    notes: Sequence[str] = ()
    tables: Sequence[Table] = ()

    @property
    def endings(self) -> dict[str, int]:
        """The number of jobs by their ending."""
        return count_endings(line.ending for line in self.lines)

    @property
    def exit_code(self) -> int:
        """130 when the user stopped the run, 0 when every job ended well (or has a result), 1 otherwise."""
        if self.stop_reason:
            return STOPPED
        fine = all(line.outcome.usable if self.exit_zero else line.ending.well for line in self.lines)
        return 0 if fine else 1


def render_summary(summary: Summary, width: int | None = None, *, coloured: bool = False) -> str:
    """Render a summary as text, a screen long; the comparison is ``width`` columns wide if given."""
    endings = summary.endings
    result = f"{summary.name}: {endings.get('ok', 0)} of {len(summary.lines)} jobs ended well"
    output = [f"{result} · {format_duration(summary.wall_s)} · {format_spend(summary.money)}"]
    if set(endings) - {"ok"}:
        output.append(f"endings: {format_endings(endings)}")
    if summary.stop_reason:
        output.append(f"stopped: {summary.stop_reason}; run the same command again to continue")
    output = [wrap(line, width, "  ") for line in output]
    output.extend(_job_lines(summary, width, coloured=coloured))
    notes = [printable(note, 1000) for note in summary.notes]
    if len(summary.scripted) == 1:
        (name,) = summary.scripted
        notes.append(f"model {name} is scripted: no provider was called, and no money was spent on it")
    elif summary.scripted:
        named = ", ".join(summary.scripted)
        notes.append(f"models {named} are scripted: no provider was called, and no money was spent on them")
    notes.extend(
        f"model {name} was priced by {entry.source}"
        for name, entry in summary.prices.items()
        if entry.price is not None and entry.source != "config"
    )
    notes.extend(
        f"model {name} has no price: its cost is not included in these figures"
        for name, entry in summary.prices.items()
        if entry.price is None and name not in summary.scripted
    )
    unknown_usd = summary.money.unknown.usd
    if unknown_usd:
        notes.append(
            f"{format_usd(unknown_usd)} is unknown: interrupted calls may have been billed; if none was:"
        )
        notes.append(f"codetaste settle {quote(str(summary.directory))} --all --usd 0")
    notes.extend(f"{what}: {folder}" for what, folder in summary.products.items())
    notes.append(f"run folder: {summary.directory}")
    output.extend(wrap(note, width, "  ") for note in notes)
    if summary.comparison is not None:
        output.extend(["", render_comparison(summary.comparison, width)])
    for table in summary.tables:
        output.extend(["", render_text(table, width)])
    return "\n".join(output)


def render_comparison(comparison: Comparison, width: int | None = None) -> str:
    """Render a comparison as plain text, at most ``width`` columns wide where possible."""
    if not comparison.systems:
        return "There are no trials to compare."
    both = [comparison] if comparison.published is None else [comparison, comparison.published]
    tables = collapse_equal([comparison_table(each) for each in both])
    return "\n\n".join(render_text(table, width) for table in tables)


def _job_lines(summary: Summary, width: int | None, *, coloured: bool) -> list[str]:
    """Return a line for each job; of many jobs, for those that ended badly, and the most of these.

    Jobs that one fault of the set-up has ended have one line together.
    """
    setup = Counter(line.outcome.error for line in summary.lines if line.outcome.cause is Cause.SETUP)
    shared = {error: count for error, count in setup.items() if count > 1}
    lines = [
        line
        for line in summary.lines
        if not (line.hidden and line.ending.well) and line.outcome.error not in shared
    ]
    few = len(lines) <= MAX_LINES
    shown = lines if few else [line for line in lines if not line.ending.well][:_MOST_BAD]
    longest = max((len(line.title) for line in shown), default=0)
    output = [_job_line(line, longest) for line in shown]
    # Of many jobs each has one line, so that the summary stays a screen long.
    output = [
        wrap(line, width, "      ") if few else shorten(line, width or _MAX_JOB_LINE) for line in output
    ]
    if coloured:
        colours = [line.ending.mark.colour for line in shown]
        output = [_colour_mark(text, name) for text, name in zip(output, colours, strict=True)]
    output = [
        *(wrap(f"  --  {n} jobs: {printable(why)}", width, "      ") for why, n in shared.items()),
        *output,
    ]
    if len(shown) < len(lines):
        left_out = format_endings(count_endings(line.ending for line in lines if line not in shown))
        output.append(
            wrap(f"  … {left_out}: codetaste status {summary.directory} --all lists all jobs", width)
        )
    return output


def _colour_mark(text: str, name: str) -> str:
    """Return a job's line with its mark, which stands in columns 3 to 5, in a colour."""
    return f"{text[:2]}{colour(text[2:5], name)}{text[5:]}"


def _job_line(line: SummaryLine, width: int) -> str:
    outcome, ending = line.outcome, line.ending
    again = " (from an earlier session)" if outcome.resumed else ""
    money = format_usd(outcome.cost.spent.usd)
    how = "" if ending.well else f" {ending}"
    found = f"{';' if how else ''} {line.result}" if line.result else ""
    text = printable(f"{line.title:<{width}} {money:>9}{how}{found}{again}", _MAX_JOB_LINE)
    return f"  {ending.mark.text:<3} {text}"


def summary_to_json(summary: Summary) -> dict[str, Any]:
    """Return a summary as JSON data; money is exact, as text."""
    return {
        "name": summary.name,
        "directory": str(summary.directory),
        "exit_code": summary.exit_code,
        "stop_reason": summary.stop_reason or None,
        "endings": summary.endings,
        "wall_s": round(summary.wall_s, 3),
        "money": money_to_json(summary.money),
        "scripted_models": list(summary.scripted),
        "prices": prices_to_json(summary.prices),
        "comparison": None if summary.comparison is None else comparison_to_json(summary.comparison),
        "notes": list(summary.notes),
        "tables": [table_to_json(table) for table in summary.tables],
        "jobs": [
            {
                "key": line.outcome.key,
                "status": str(line.outcome.status),
                "ended_well": line.ending.well,
                "ending": line.ending.name,
                "reason": line.ending.reason or None,
                "cause": line.outcome.cause and str(line.outcome.cause),
                "error": line.outcome.error or None,
                # That of a model's script is in the journal: its author needs one line here.
                "traceback": (line.outcome.cause is Cause.FAULT and line.outcome.traceback) or None,
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
