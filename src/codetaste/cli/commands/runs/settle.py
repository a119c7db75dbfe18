"""``codetaste settle``: record the real cost of calls of unknown cost, from the provider's bill."""

from __future__ import annotations

import time
from decimal import Decimal
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any

from codetaste.cli.options import AsJson, Flag
from codetaste.console.command import command
from codetaste.console.json import json_document
from codetaste.console.streams import notify, print_result
from codetaste.core.text import did_you_mean, plural, printable
from codetaste.core.units import format_usd, parse_usd
from codetaste.errors import ConfigError
from codetaste.orchestration.budget.node import CallState
from codetaste.orchestration.journal.history import History
from codetaste.orchestration.journal.journal import open_journal
from codetaste.report.status.status import find_run, model_of_call

if TYPE_CHECKING:
    from codetaste.orchestration.journal.history import CallRecord
    from codetaste.orchestration.journal.lines import SettledLine

_UNKNOWN = {CallState.IN_FLIGHT, CallState.UNKNOWN}


@command
async def settle(
    run: Path, call: str = "", /, *, all_: Flag = False, usd: str = "", json_: AsJson = False
) -> int:
    """Settle calls, or list the calls of unknown cost.

    Args:
        run: The run's folder (runs/NAME), or its name; no process may be working on it.
        call: The call's name, or a glob of calls or jobs; without it the calls of unknown cost are listed.
        all_: Settle every call of unknown cost.
        usd: The cost of each call in US dollars; 0 if it was not billed.
        json_: Print the result as JSON.

    Raises:
        ConfigError: the run or call does not exist, its cost is known, or the amount is invalid.
        RunBusy: another process is working on the run.
        JournalError: the journal is damaged or cannot be written.
    """
    directory, history = find_run(run), History()
    if (bool(call) + all_) != bool(usd):
        raise ConfigError("give a call, a glob or --all, and a cost: codetaste settle RUN CALL --usd 0.0123")
    async with open_journal(directory, history.apply) as journal:
        unknown = {name: each for name, each in history.calls.items() if each.state in _UNKNOWN}
        settled: list[CallRecord] = []
        if usd:
            settled = list(unknown.values()) if all_ else _find_unknown_calls(call, history, unknown)
            try:
                cost = parse_usd(usd)
            except ValueError as error:
                raise ConfigError(f"--usd: {error}") from None
        for each in settled:
            if cost > (most := each.granted.usd):
                notify(f"{format_usd(cost)} is more than the reserved maximum of {format_usd(most)}")
            # The tokens of a billed call stay at their maximum: a bill has only dollars.
            line: SettledLine = {
                "event": "settled",
                "call": each.call,
                "usd": str(cost),
                "tokens": each.granted.tokens if cost else 0,
                "by": "codetaste settle",
                "t": round(time.time(), 3),
            }
            group = journal.queue(line)
            history.apply(line)
            del unknown[each.call]
        if settled:
            await group.wait_durable()
    to_text = _result_to_json if json_ else _format_result
    print_result(to_text(history, settled, list(unknown.values())))
    return 0


def _find_unknown_calls(name: str, history: History, unknown: dict[str, CallRecord]) -> list[CallRecord]:
    call = history.calls.get(name)
    if call is None:
        calls = unknown.values()
        if found := [each for each in calls if fnmatchcase(each.call, name) or fnmatchcase(each.key, name)]:
            return found
        hint = did_you_mean(name, list(unknown)[:100])
        raise ConfigError(f"the run made no call {name!r}, and none of unknown cost matches it{hint}")
    if name not in unknown:
        cost = "was not billed" if call.state is CallState.RELEASED else f"cost {format_usd(call.cost.usd)}"
        raise ConfigError(f"{name}: nothing to settle, the call {cost}")
    return [call]


def _result_to_json(history: History, settled: list[CallRecord], unknown: list[CallRecord]) -> str:
    calls = [{"call": call.call, "usd": format(call.cost.usd, "f")} for call in settled]
    data: dict[str, Any] = {
        "settled": calls[0] if len(calls) == 1 else None,
        "settled_calls": calls,
        "unknown": [
            {
                "call": call.call,
                "model": model_of_call(call, history.job(call.key).lane),
                "usd": format(call.granted.usd, "f"),
            }
            for call in unknown
        ],
        "unknown_usd": format(_total(unknown), "f"),
    }
    return json_document(data)


def _format_result(history: History, settled: list[CallRecord], unknown: list[CallRecord]) -> str:
    if settled:
        lines = [printable(f"settled: {call.call} cost {format_usd(call.cost.usd)}") for call in settled]
    else:
        models = [model_of_call(call, history.job(call.key).lane) for call in unknown]
        lines = [
            printable(f"{format_usd(call.granted.usd):>9} at most, {model}: {call.call}", 500)
            for call, model in zip(unknown, models, strict=True)
        ]
    verb = "counts" if len(unknown) == 1 else "count"
    total = f"{format_usd(_total(unknown))} at most, {verb} against the budget"
    return "\n".join([*lines, f"{plural(len(unknown), 'call')} of unknown cost, {total}"])


def _total(calls: list[CallRecord]) -> Decimal:
    return sum((call.granted.usd for call in calls), Decimal(0))
