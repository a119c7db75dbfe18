"""A provider's bill against the books of a run, call by call; imports nothing of codetaste.

The books are the lines of ``journal.jsonl``. A reply's name, which the provider gave and the journal keeps,
says which billed call a settled one is; what was billed and not settled must be covered by an unknown one.
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
    """US dollars, and how many calls there were in each state."""

    bill: Decimal
    settled: Decimal
    unknown: Decimal
    states: Counter[str]
    highest: Decimal
    """The most that was charged at any time: settled, unknown and reserved together."""

    def __str__(self) -> str:
        states = ", ".join(f"{count} {state}" for state, count in sorted(self.states.items()))
        return f"{states}; bill ${self.bill}, settled ${self.settled}, unknown ${self.unknown}"


def journal_of(run: Path) -> list[dict[str, Any]]:
    """The whole lines of a journal."""
    raw = (run / "journal.jsonl").read_bytes()
    return [json.loads(line) for line in raw.split(b"\n")[: raw.count(b"\n")]]


def audited(run: Path, bill: Iterable[Billed], limits: Mapping[tuple[str, ...], Decimal]) -> Audit:
    """Compare; fails where a line charges more than a limit allows, or a call is not where it should be.

    Args:
        run: the run directory.
        bill: of all providers that the run had.
        limits: US dollars by the beginning of a budget's path; () is the whole run.
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

    for line in journal_of(run):
        if line["event"] not in {"reserved", "settled", "released", "unknown"}:
            continue
        call, event = line["call"], line["event"]
        if event == "reserved":
            assert call not in states, f"{call} was reserved twice"
            charge(call, tuple(line["path"]), Decimal(line["usd"]))
        elif event == "settled":
            assert states[call] in {"reserved", "unknown"}, f"{call} was {states[call]} and is settled"
            name = name_of(line["value"], run) if "value" in line else _said(call, line["usd"], unsettled)
            assert not name or name in billed, f"{call} is settled as {name}, which was never billed"
            assert not name or name in unsettled, f"{name} is settled twice"
            price, asked = _price(name, unsettled)
            assert price == Decimal(line["usd"]), f"{call} is settled at a wrong price"
            assert asked in {"", call.rpartition("#")[0]}, f"{call} has the reply of another"
            charge(call, charged[call][0], Decimal(line["usd"]))
        elif event == "released":
            assert states[call] == "reserved", f"{call} was {states[call]} and is released"
            charge(call, charged[call][0], Decimal(0))
        states[call] = event
        highest = max(highest, spent[()])
    open_ = {call: usd for call, (_, usd) in charged.items() if states[call] in {"reserved", "unknown"}}
    _cover(unsettled.values(), open_)
    settled = sum((usd for call, (_, usd) in charged.items() if states[call] == "settled"), Decimal(0))
    unknown = sum(open_.values(), Decimal(0))
    assert settled <= total <= settled + unknown <= limits[()], (settled, total, unknown, limits[()])
    return Audit(total, settled, unknown, Counter(states.values()), highest)


def _said(call: str, usd: str, unsettled: Mapping[str, Billed]) -> str:
    """Return which billed call somebody settled by hand as ``call``; "" where it was said to cost nothing."""
    if not Decimal(usd):
        return ""
    asked = call.rpartition("#")[0]
    fitting = [name for name, each in unsettled.items() if (each.asked, each.usd) == (asked, Decimal(usd))]
    assert fitting, f"{call} is settled by hand at ${usd}, which was not billed for it"
    return fitting[0]


def _price(name: str, unsettled: dict[str, Billed]) -> tuple[Decimal, str]:
    """Take a billed call from those that are not settled; returns its price, and what was asked."""
    if not name:
        return Decimal(0), ""
    each = unsettled.pop(name)
    return each.usd, each.asked


def name_of(value: Mapping[str, Any], run: Path) -> str:
    """Return what the provider called the reply that a journal line holds."""
    if "stored" in value:
        digest = value["stored"]
        found = run / "blobs" / digest[:2] / digest
        value = json.loads(found.read_text())
    match = _NAME.search(value["reply"]["request_id"])
    assert match, value["reply"]["request_id"]
    return match.group()


def _cover(billed: Iterable[Billed], unknown: Mapping[str, Decimal]) -> None:
    """Find for each billed call an unknown one of the same question that is charged at least its price."""
    by_question: dict[str, list[Decimal]] = defaultdict(list)
    for call, usd in unknown.items():
        by_question[call.rpartition("#")[0]].append(usd)
    for held in by_question.values():
        held.sort()
    for each in sorted(billed, key=lambda one: one.usd, reverse=True):
        held = by_question[each.asked]
        assert held, f"{each} is in nobody's books"
        assert held[-1] >= each.usd, f"{each} cost more than was kept for it"
        held.pop()
