"""The trials of several runs and published outputs brought together: who is who, which counts, what is odd.

An agent of one id in two runs is one agent, unless both runs have the same trial of it: then the runs did the
same twice, and their agents are kept apart by the run's name, and named.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from codetaste.evaluation.records import GOLDEN, NULL
from codetaste.report import measures

if TYPE_CHECKING:
    from collections.abc import Iterable

    from codetaste.evaluation.records import TrialRecord

_Key = tuple[str, str, str, str, int]

REFERENCES = {GOLDEN: "Golden Patch", NULL: "Base Commit"}
"""The pseudo agents as the paper's tables call them."""
_CHECKED = (
    measures.IFR,
    measures.IFR_PLUS,
    measures.IFR_MINUS,
    measures.PREC,
    measures.PREC_PLUS,
    measures.PREC_MINUS,
    measures.COST,
    measures.TIME,
)
_TRACKS = {"instructed": 0, "open": 1}
_MODES = {"direct": 0, "plan": 1, "multiplan": 2}


@dataclass(frozen=True, slots=True, order=True)
class Lane:
    """A track with a mode: what an agent was asked, and how."""

    track: str
    mode: str

    @property
    def title(self) -> str:
        """As the paper writes it: "Instructed", "Open Plan"."""
        if (self.track, self.mode) == ("instructed", "direct"):
            return "Instructed"
        return f"{self.track} {self.mode}".strip().title()


def lane_of(record: TrialRecord) -> Lane:
    """Return the lane of a trial."""
    return Lane(record.track, record.mode)


def lane_order(lane: Lane) -> tuple[int, str, int, str]:
    """Sort lanes as the paper does: instructed, then open; direct, plan, multiplan."""
    return (
        _TRACKS.get(lane.track, len(_TRACKS)),
        lane.track,
        _MODES.get(lane.mode, len(_MODES)),
        lane.mode,
    )


@dataclass(frozen=True, slots=True)
class Trials:
    """Trials that can be counted together: each agent's name says who it is, each trial stands there once.

    ``agents`` has the trials of agents, ``pseudo`` those of the golden and the null agent, one an instance.
    """

    agents: tuple[TrialRecord, ...]
    pseudo: tuple[TrialRecord, ...]
    lanes: tuple[Lane, ...]
    """Those that there are, in the paper's order."""
    notes: tuple[str, ...]

    @property
    def names(self) -> list[str]:
        """The agents that there are, in the order of their first trials."""
        return list(dict.fromkeys(record.agent for record in self.agents))


def gather(records: Iterable[TrialRecord]) -> Trials:
    """Bring records of one or more runs together."""
    notes: list[str] = []
    real: list[TrialRecord] = []
    pseudo: dict[tuple[str, str], TrialRecord] = {}
    for record in records:
        if record.pseudo:
            _keep_pseudo(record, pseudo, notes)
        else:
            real.append(record)
    agents = _apart(_once(real, notes), notes)
    notes += _faults([*agents, *pseudo.values()])
    lanes = sorted({lane_of(record) for record in agents}, key=lane_order)
    return Trials(tuple(agents), tuple(pseudo.values()), tuple(lanes), tuple(notes))


def _faults(records: list[TrialRecord]) -> list[str]:
    """Name every value that is no number, or no share of 0..1."""
    return [
        f"{_say(record)}: {measure.title} is {value}, which is left out"
        for record in records
        for measure in _CHECKED
        if (value := measure.of(record)) is not None and not measure.takes(value)
    ]


def _keep_pseudo(record: TrialRecord, kept: dict[tuple[str, str], TrialRecord], notes: list[str]) -> None:
    """Runs that score the same instance all have its golden and null agent: one is enough, if they agree."""
    key = (record.agent, record.instance)
    first = kept.setdefault(key, record)
    if first.ifr is None and record.ifr is not None:
        kept[key] = record
    elif first.ifr != record.ifr and record.ifr is not None:
        notes.append(
            f"{record.agent} of {record.instance} has IFR {first.ifr} in {first.run} and {record.ifr} in"
            f" {record.run}: the first counts"
        )


def _key(record: TrialRecord) -> _Key:
    return (record.agent, record.track, record.mode, record.instance, record.attempt)


def _say(record: TrialRecord) -> str:
    again = f", attempt {record.attempt}" if record.attempt > 1 else ""
    return f"{record.agent} on {record.instance} ({lane_of(record).title}{again})"


def _once(records: list[TrialRecord], notes: list[str]) -> list[TrialRecord]:
    """Leave out what one run has twice, and say so."""
    seen: dict[tuple[str, _Key], TrialRecord] = {}
    for record in records:
        first = seen.setdefault((record.run, _key(record)), record)
        if first is not record:
            notes.append(f"{_say(record)} is in {record.run} twice: the first counts")
    return list(seen.values())


def _apart(records: list[TrialRecord], notes: list[str]) -> list[TrialRecord]:
    """Name agents by their run, too, where two runs have the same trial."""
    runs: defaultdict[_Key, list[TrialRecord]] = defaultdict(list)
    for record in records:
        runs[_key(record)].append(record)
    twice: defaultdict[str, list[list[TrialRecord]]] = defaultdict(list)
    for same in runs.values():
        if len(same) > 1:
            twice[same[0].agent].append(same)
    for agent, cases in twice.items():
        names = " and ".join(dict.fromkeys(record.run for same in cases for record in same))
        more = f" and {len(cases) - 1} more" if len(cases) > 1 else ""
        notes.append(f"{_say(cases[0][0])}{more}: in {names}; {agent} is kept apart by the run's name")
    return [
        replace(record, agent=f"{record.agent} ({record.run})") if record.agent in twice else record
        for record in records
    ]
