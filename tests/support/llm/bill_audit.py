"""An audit of a run's journal against its providers' bills, call by call; imports nothing of codetaste.

The provider's name of a reply, which the journal stores, links a settled call to a billed one. Each billed
call that is not settled must be covered by one with unknown cost.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

from support.llm.provider.exchange import Billed

_NAME = re.compile(r"req_\w+$")


@dataclass(frozen=True)
class Audit:
    """US dollars, and the number of calls in each state."""

    bill: Decimal
    settled: Decimal
    unknown: Decimal
    states: Counter[str]
    highest: Decimal
    """The maximum charged at any time: settled, unknown and reserved together."""

    def __str__(self) -> str:
        states = ", ".join(f"{count} {state}" for state, count in sorted(self.states.items()))
        return f"{states}; bill ${self.bill}, settled ${self.settled}, unknown ${self.unknown}"


def read_journal(run: Path) -> list[dict[str, Any]]:
    """Return the complete lines of a journal."""
    raw = (run / "journal.jsonl").read_bytes()
    return [json.loads(line) for line in raw.split(b"\n")[: raw.count(b"\n")]]


def audit_run(run: Path, bill: Iterable[Billed], limits: Mapping[tuple[str, ...], Decimal]) -> Audit:
    """Compare journal and bill; assert that no line exceeds a limit and that every call is accounted for.

    Args:
        run: the run directory.
        bill: the billed calls of all providers of the run.
        limits: US dollars by the prefix of a budget's path; () is the whole run.
    """
    billed = {each.request_id: each for each in bill}
    total = sum((each.usd for each in billed.values()), Decimal(0))
    states: dict[str, str] = {}
    charged: dict[str, tuple[tuple[str, ...], Decimal]] = {}
    spent: dict[tuple[str, ...], Decimal] = defaultdict(Decimal)
    highest, unsettled = Decimal(0), dict(billed)

    def charge(call: str, path: tuple[str, ...], usd: Decimal) -> None:
        for top in limits:
            if path[: len(top)] == top:
                spent[top] += usd - charged.get(call, (path, Decimal(0)))[1]
                assert spent[top] <= limits[top], f"{spent[top]} of {limits[top]} at {top}, with {call}"
        charged[call] = (path, usd)

    for line in read_journal(run):
        if line["event"] not in {"reserved", "settled", "released", "unknown"}:
            continue
        call, event = line["call"], line["event"]
        if event == "reserved":
            assert call not in states, f"{call} was reserved twice"
            charge(call, tuple(line["path"]), Decimal(line["usd"]))
        elif event == "settled":
            assert states[call] in {"reserved", "unknown"}, f"{call} was {states[call]} and is settled"
            name = (
                reply_name(line["value"], run)
                if "value" in line
                else _settled_by_hand(call, line["usd"], unsettled)
            )
            assert not name or name in billed, f"{call} is settled as {name}, which was never billed"
            assert not name or name in unsettled, f"{name} is settled twice"
            price, question = _price(name, unsettled)
            assert price == Decimal(line["usd"]), f"{call} is settled at a wrong price"
            assert question in {"", call.rpartition("#")[0]}, f"{call} has the reply of another call"
            charge(call, charged[call][0], Decimal(line["usd"]))
        elif event == "released":
            assert states[call] == "reserved", f"{call} was {states[call]} and is released"
            charge(call, charged[call][0], Decimal(0))
        elif "usd" in line:
            charge(call, charged[call][0], Decimal(line["usd"]))
        states[call] = event
        highest = max(highest, spent[()])
    open_ = {call: usd for call, (_, usd) in charged.items() if states[call] in {"reserved", "unknown"}}
    _cover(unsettled.values(), open_)
    settled = sum((usd for call, (_, usd) in charged.items() if states[call] == "settled"), Decimal(0))
    unknown = sum(open_.values(), Decimal(0))
    assert settled <= total <= settled + unknown <= limits[()], (settled, total, unknown, limits[()])
    return Audit(total, settled, unknown, Counter(states.values()), highest)


def _settled_by_hand(call: str, usd: str, unsettled: Mapping[str, Billed]) -> str:
    """Return the billed call that was settled by hand as ``call``; "" if it was settled at zero."""
    if not Decimal(usd):
        return ""
    question = call.rpartition("#")[0]
    fitting = [
        name for name, each in unsettled.items() if (each.question, each.usd) == (question, Decimal(usd))
    ]
    assert fitting, f"{call} is settled by hand at ${usd}, which was not billed for it"
    return fitting[0]


def _price(name: str, unsettled: dict[str, Billed]) -> tuple[Decimal, str]:
    """Remove a billed call from the unsettled ones; return its price and its question."""
    if not name:
        return Decimal(0), ""
    each = unsettled.pop(name)
    return each.usd, each.question


def reply_name(value: Mapping[str, Any], run: Path) -> str:
    """Return the provider's name of the reply in a journal line."""
    if "stored" in value:
        digest = value["stored"]
        found = run / "blobs" / digest[:2] / digest
        value = json.loads(found.read_text())
    match = _NAME.search(value["reply"]["request_id"])
    assert match, value["reply"]["request_id"]
    return match.group()


def _cover(billed: Iterable[Billed], unknown: Mapping[str, Decimal]) -> None:
    """Check that each billed call has an unknown call of its question that is charged at least its price."""
    by_question: dict[str, list[Decimal]] = defaultdict(list)
    for call, usd in unknown.items():
        by_question[call.rpartition("#")[0]].append(usd)
    for amounts in by_question.values():
        amounts.sort()
    for each in sorted(billed, key=lambda one: one.usd, reverse=True):
        amounts = by_question[each.question]
        assert amounts, f"{each} is not in the journal"
        assert amounts[-1] >= each.usd, f"{each} cost more than is charged for it"
        amounts.pop()
