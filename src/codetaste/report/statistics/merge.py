"""Merge the trials of several runs and published outputs, and note duplicates and invalid values.

An agent id in two runs means one agent, unless both runs have the same trial of it. Then the runs repeat the
same work, so the agent is listed once for each run, with the run's name, and a note says so.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from codetaste.benchmark.layout import GOLDEN, MODES, NULL, TRACKS, Mode, Track
from codetaste.report.statistics import measures

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from codetaste.benchmark.trial_identity import TrialIdentity
    from codetaste.evaluation.trials.records import TrialRecord

REFERENCE_TITLES = {GOLDEN: "Golden Patch", NULL: "Base Commit"}
"""Titles of the pseudo agents in the paper's tables."""
_CHECKED = (
    measures.IFR,
    measures.IFR_PLUS,
    measures.IFR_MINUS,
    *measures.PRECISION,
    measures.COST,
    measures.TIME,
)


@dataclass(frozen=True, slots=True, order=True)
class TrackMode:
    """A track with a mode."""

    track: str
    mode: str

    @property
    def title(self) -> str:
        """The title in the paper: "Instructed", "Open Plan"."""
        if (self.track, self.mode) == (Track.INSTRUCTED, Mode.DIRECT):
            return "Instructed"
        return f"{self.track} {self.mode}".strip().title()


def track_mode_of(record: TrialRecord) -> TrackMode:
    """Return the track and mode of a trial."""
    return TrackMode(record.track, record.mode)


def track_mode_order(track_mode: TrackMode) -> tuple[int, str, int, str]:
    """Return the sort key for the paper's order: instructed, open; direct, plan, multiplan."""
    track = TRACKS.index(track_mode.track) if track_mode.track in TRACKS else len(TRACKS)
    mode = MODES.index(track_mode.mode) if track_mode.mode in MODES else len(MODES)
    return track, track_mode.track, mode, track_mode.mode


@dataclass(frozen=True, slots=True)
class MergedTrials:
    """Trials with unique agent names and without duplicates.

    ``agents`` has the trials of agents, ``pseudo`` those of the golden and the null agent, one for each
    instance.
    """

    agents: tuple[TrialRecord, ...]
    pseudo: tuple[TrialRecord, ...]
    track_modes: tuple[TrackMode, ...]
    """The tracks and modes that occur, in the paper's order."""
    notes: tuple[str, ...]

    @property
    def agent_names(self) -> list[str]:
        """The names of the agents, in the order of their first trials."""
        return list(dict.fromkeys(record.agent for record in self.agents))


def merge_runs(records: Iterable[TrialRecord]) -> MergedTrials:
    """Merge the records of one or more runs."""
    notes: list[str] = []
    real: dict[tuple[str, TrialIdentity], TrialRecord] = {}
    pseudo: dict[tuple[str, str], TrialRecord] = {}
    for record in records:
        if record.pseudo:
            _add_pseudo(record, pseudo, notes)
        elif real.setdefault((record.run, record.identity), record) is not record:
            notes.append(f"{_describe(record)} is in {record.run} twice: the first counts")
    agents = _with_run_names([*real.values()], notes)
    notes += _notes_of_models(agents)
    # A value must be finite, and in 0..1 if it is a fraction.
    notes += [
        f"{_describe(record)}: {measure.title} is {value}, which is left out"
        for record in (*agents, *pseudo.values())
        for measure in _CHECKED
        if (value := measure.value(record)) is not None and not measure.accepts(value)
    ]
    track_modes = sorted({track_mode_of(record) for record in agents}, key=track_mode_order)
    return MergedTrials(tuple(agents), tuple(pseudo.values()), tuple(track_modes), tuple(notes))


def original_identity(record: TrialRecord) -> TrialIdentity:
    """Return what identifies a trial in its own run: without the run's name, which merging may have added."""
    return record.identity._replace(agent=record.agent.removesuffix(f" ({record.run})"))


def _add_pseudo(record: TrialRecord, added: dict[tuple[str, str], TrialRecord], notes: list[str]) -> None:
    """Add a record of a pseudo agent, which every run has for its instances; note values that differ."""
    first = added.setdefault((record.agent, record.instance), record)
    ifr, first_ifr = record.scores.ifr, first.scores.ifr
    if first_ifr is None and ifr is not None:
        added[record.agent, record.instance] = record
    elif first_ifr != ifr and ifr is not None:
        notes.append(
            f"{record.agent} of {record.instance} has IFR {first_ifr} in {first.run} and {ifr} in"
            f" {record.run}: the first counts"
        )


def _describe(record: TrialRecord) -> str:
    again = f", attempt {record.attempt}" if record.attempt > 1 else ""
    return f"{record.agent} on {record.instance} ({track_mode_of(record).title}{again})"


def _notes_of_models(records: Iterable[TrialRecord]) -> Iterator[str]:
    """Yield a note for each agent that has one model in one run and another one in another run."""
    models: defaultdict[str, dict[str, str]] = defaultdict(dict)
    for record in records:
        if record.metadata.model:
            models[record.agent].setdefault(record.metadata.model, record.run)
    for agent, runs in models.items():
        if len({*runs.values()}) > 1:
            listed = ", ".join(f"{model} in {run}" for model, run in runs.items())
            yield f"{agent} is one agent here, with different models: {listed}"


def _with_run_names(records: list[TrialRecord], notes: list[str]) -> list[TrialRecord]:
    """Add the run's name to agents of whom two runs have the same trial, and note them."""
    runs: defaultdict[TrialIdentity, list[TrialRecord]] = defaultdict(list)
    for record in records:
        runs[record.identity].append(record)
    twice: defaultdict[str, list[list[TrialRecord]]] = defaultdict(list)
    for same in runs.values():
        if len(same) > 1:
            twice[same[0].agent].append(same)
    for agent, cases in twice.items():
        names = " and ".join(dict.fromkeys(record.run for same in cases for record in same))
        more = f" and {len(cases) - 1} more" if len(cases) > 1 else ""
        notes.append(f"{_describe(cases[0][0])}{more}: in {names}; {agent} is listed separately for each run")
    return [
        replace(record, agent=f"{record.agent} ({record.run})") if record.agent in twice else record
        for record in records
    ]
