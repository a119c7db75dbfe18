"""The passes of rule discovery in a run, read from its journal."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from codetaste.agent.rejected_rule import RejectedRule
from codetaste.agent.rule_tools import REGISTERED_RULE, REJECTED_RULE
from codetaste.benchmark.pass_identity import PASS_PREFIX, pass_of_job
from codetaste.orchestration.job import Status
from codetaste.orchestration.journal.history import History
from codetaste.orchestration.journal.journal import JOURNAL_FILE, read_lines, replay_line
from codetaste.report.ending import ending_of
from codetaste.rules.registration import RegisteredRule

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from codetaste.report.ending import Ending
    from codetaste.rules.registration import Direction
    from codetaste.rules.scan.model import Line


@dataclass(frozen=True, slots=True)
class PassRecord:
    """One pass of a run that has a result.

    Attributes:
        system: the name of its model, with that of the run where several runs are read.
        instance: the id of the instance.
        direction: the kind of its rules.
        ending: how it ended.
        turns: model calls.
        tool_calls: tool calls.
        usd: what it has cost, US dollars.
        rules: the registered rules, with the lines that they cover.
        rejected: the rejected candidates, oldest first.
        run: the folder of the run, None if it is not known.
        key: the key of its job.
    """

    system: str
    instance: str
    direction: Direction
    ending: Ending
    turns: int
    tool_calls: int
    usd: Decimal
    rules: tuple[RegisteredRule, ...] = ()
    rejected: tuple[RejectedRule, ...] = ()
    run: Path | None = None
    key: str = ""

    @property
    def rejections(self) -> Counter[str]:
        """The number of rejected candidates by kind."""
        return Counter(each.rejection for each in self.rejected)

    @property
    def lines(self) -> frozenset[Line]:
        """The lines that its rules cover, in R for reductive rules and in R∘X* for additive ones."""
        return frozenset[tuple[str, int]]().union(*(rule.coverage for rule in self.rules))


def read_passes(run: Path, label: str = "") -> list[PassRecord]:
    """Return the passes of the run in the folder ``run``; none if it has no journal.

    ``label`` is put before the names of the models.

    Raises:
        JournalError: the journal is damaged.
    """
    journal = run / JOURNAL_FILE
    if not journal.is_file() or not _may_have_passes(journal):
        return []
    history, facts = History(), dict[tuple[str, str], list[Any]]()
    last: dict[str, str] = {}
    for _, line in read_lines(journal):
        replay_line(journal, line, history.apply)
        key = str(line.get("key", ""))
        if pass_of_job(key) is None:
            continue
        match line["event"]:
            case "effect" if isinstance(line["value"], dict):
                # A resumed attempt restores the effects of earlier ones, and records none of them again.
                facts.setdefault((key, line["fingerprint"]), []).extend(line["value"].get("facts", []))
            case "rerun":
                facts = {at: each for at, each in facts.items() if at[0] != key}
            case "ended":
                last[key] = line["fingerprint"]
    return [replace(each, run=run) for each in _records(history, facts, last, label)]


def _may_have_passes(journal: Path) -> bool:
    """Whether a journal names a pass; parsing all lines of a long one takes seconds, and most have none."""
    try:
        with journal.open("rb") as file:
            return any(PASS_PREFIX.encode() in line for line in file)
    except OSError:
        return True  # reading it says what is wrong


def _records(
    history: History, facts: dict[tuple[str, str], list[Any]], last: dict[str, str], label: str
) -> Iterator[PassRecord]:
    spent_usd = history.spent_usd_by_job()
    for key, fingerprint in last.items():
        identity, end = pass_of_job(key), history.job(key).recorded_ends.get(fingerprint)
        if identity is None or end is None or not isinstance(end.value, dict):
            continue
        found = facts.get((key, fingerprint), [])
        yield PassRecord(
            f"{label}{identity.model}",
            identity.instance,
            identity.direction,
            ending_of(Status(end.status), end.shortfall, end.error),
            int(str(end.value["turns"])),
            int(str(end.value["tool_calls"])),
            spent_usd.get(key, Decimal(0)),
            tuple(RegisteredRule.from_json(fact) for kind, fact in found if kind == REGISTERED_RULE),
            tuple(RejectedRule.from_json(fact) for kind, fact in found if kind == REJECTED_RULE),
            key=key,
        )
