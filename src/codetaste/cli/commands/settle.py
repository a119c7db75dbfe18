"""``codetaste settle``: record the real cost of calls of unknown cost, from the provider's bill."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from codetaste.console import notify, print_result
from codetaste.core.section import did_you_mean
from codetaste.core.text import printable
from codetaste.core.units import format_usd, parse_usd
from codetaste.errors import ConfigError
from codetaste.orchestration.budget.node import CallState
from codetaste.orchestration.journal.history import History
from codetaste.orchestration.journal.journal import open_journal
from codetaste.report.status.status import find_run, model_of_call

if TYPE_CHECKING:
    from pathlib import Path

    from codetaste.orchestration.journal.history import CallRecord
    from codetaste.orchestration.journal.lines import SettledLine

_UNKNOWN = {CallState.IN_FLIGHT, CallState.UNKNOWN}


@dataclass(frozen=True, slots=True)
class SettleArguments:
    """Arguments of ``codetaste settle``; without ``call`` the calls of unknown cost are listed."""

    run: Path
    call: str = ""
    usd: str = ""
    json: bool = False


async def settle_call(arguments: SettleArguments) -> int:
    """Settle a call, or list the calls of unknown cost; returns the exit code, 0.

    Raises:
        ConfigError: the run or call does not exist, its cost is known, or the amount is invalid.
        RunBusy: another process is working on the run.
        JournalError: the journal is damaged or cannot be written.
    """
    directory, history = find_run(arguments.run), History()
    if bool(arguments.call) != bool(arguments.usd):
        raise ConfigError("give a call and its cost: codetaste settle RUN CALL --usd 0.0123")
    async with open_journal(directory, history.apply) as journal:
        unknown = {name: call for name, call in history.calls.items() if call.state in _UNKNOWN}
        settled: CallRecord | None = None
        if arguments.call:
            settled, usd = _find_unknown_call(arguments.call, history, unknown), _parse_amount(arguments.usd)
            if usd > (most := settled.granted.usd):
                notify(f"{format_usd(usd)} is more than the reserved maximum of {format_usd(most)}")
            line = _settled_line(settled, usd)
            await journal.append(line)
            history.apply(line)
            del unknown[settled.call]
    _print_result(arguments, history, settled, list(unknown.values()))
    return 0


def _find_unknown_call(name: str, history: History, unknown: dict[str, CallRecord]) -> CallRecord:
    call = history.calls.get(name)
    if call is None:
        raise ConfigError(f"the run made no call {name!r}{did_you_mean(name, list(unknown)[:100])}")
    if name not in unknown:
        cost = "was not billed" if call.state is CallState.RELEASED else f"cost {format_usd(call.cost.usd)}"
        raise ConfigError(f"{name}: nothing to settle, the call {cost}")
    return call


def _settled_line(call: CallRecord, usd: Decimal) -> SettledLine:
    """Return the journal line of the settlement; tokens stay at their maximum: a bill has only dollars."""
    return {
        "event": "settled",
        "call": call.call,
        "usd": str(usd),
        "tokens": call.granted.tokens,
        "by": "codetaste settle",
        "t": round(time.time(), 3),
    }


def _parse_amount(text: str) -> Decimal:
    try:
        return parse_usd(text)
    except ValueError as error:
        raise ConfigError(f"--usd: {error}") from None


def _print_result(
    arguments: SettleArguments, history: History, settled: CallRecord | None, unknown: list[CallRecord]
) -> None:
    total = sum((call.granted.usd for call in unknown), Decimal(0))
    if arguments.json:
        data: dict[str, Any] = {
            "settled": settled and {"call": settled.call, "usd": format(settled.cost.usd, "f")},
            "unknown": [
                {
                    "call": call.call,
                    "model": model_of_call(call, history.job(call.key).lane),
                    "usd": format(call.granted.usd, "f"),
                }
                for call in unknown
            ],
            "unknown_usd": format(total, "f"),
        }
        print_result(json.dumps(data, indent=2))
        return
    if settled is not None:
        print_result(printable(f"settled: {settled.call} cost {format_usd(settled.cost.usd)}"))
    else:
        for call in unknown:
            model = model_of_call(call, history.job(call.key).lane)
            print_result(printable(f"{format_usd(call.granted.usd):>9} at most, {model}: {call.call}", 500))
    print_result(
        f"{len(unknown)} calls of unknown cost, {format_usd(total)} at most, count against the budget"
    )
