"""Write a trial as one ATIF file: the conversation that made its patch, and all others embedded in it."""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING, Any

from codetaste import __version__
from codetaste.core.files import storage_error
from codetaste.errors import JournalError
from codetaste.exports.atif.steps import steps_of
from codetaste.transcripts.atif import EXTRA
from codetaste.transcripts.read import read_events

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from codetaste.exports.trial import ExportedTrial
    from codetaste.transcripts.event import RecordedConversation, TranscriptEvent

ATIF_VERSION = "ATIF-v1.7"
"""The newest version that has a field which these files need; later ones add audio."""
_NOTES = (
    "Several blocks of reasoning in one reply are one text, and arguments of calls have their value but not "
    "their spacing. What ATIF has no field for is below extra.codetaste."
)
_NOTHING = "No conversation of this trial was recorded."


@dataclass(slots=True)
class AtifFile:
    """What was written: the number of steps of the main trajectory, and ids of the embedded ones."""

    path: Path
    steps: int = 0
    embedded: list[str] = field(default_factory=list)


def write_trial(trial: ExportedTrial, path: Path) -> AtifFile:
    """Write a trial to ``path``; a file that is there is replaced. Blocking.

    The main conversation is written as it is read.

    Raises:
        StorageFull: no space left.
        JournalError: the file cannot be written.
    """
    partial = path.with_name(f".{path.name}.partial")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with partial.open("w", encoding="utf-8", errors="replace", newline="\n") as file:
                written = _Writer(file, trial).write(path)
            partial.replace(path)
        finally:
            partial.unlink(missing_ok=True)
    except OSError as error:
        raise storage_error(error, path, JournalError) from error
    return written


@dataclass(slots=True)
class _Totals:
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0
    known: bool = True

    def add(self, step: dict[str, Any]) -> None:
        metrics = step.get("metrics")
        self.known = self.known and (metrics is None or "prompt_tokens" in metrics)
        for name in ("prompt_tokens", "completion_tokens", "cached_tokens"):
            setattr(self, name, getattr(self, name) + (metrics or {}).get(name, 0))


class _Writer:
    def __init__(self, file: IO[str], trial: ExportedTrial) -> None:
        self._file, self._trial = file, trial
        self._totals = _Totals()

    def write(self, path: Path) -> AtifFile:
        trial, written = self._trial, AtifFile(path)
        main = trial.main
        others: dict[str, list[dict[str, Any]]] = {}
        self._file.write("{")
        self._members(self._head(main.name if main else trial.name, ""), first=True)
        self._file.write(',\n"steps": [')
        if main is not None:
            aside: dict[str, list[TranscriptEvent]] = defaultdict(list)
            for step in steps_of(_own_events(self._events(main), aside)):
                self._step(step, written)
            others |= self._sub_agents(main, aside)
            others |= self._other_conversations(main)
        if not written.steps:
            self._step(
                {"step_id": 1, "source": "system", "message": _NOTHING, **_extra(others=True)}, written
            )
        if others:
            self._step(_references(others, written.steps + 1), written)
        self._file.write("]")
        if others:
            subs = [
                {**self._head(name, name.partition("#")[2]), "steps": each} for name, each in others.items()
            ]
            self._members({"subagent_trajectories": subs})
        self._members({"notes": _NOTES, "final_metrics": self._final_metrics(written.steps)})
        self._file.write("}\n")
        written.embedded = [*others]
        return written

    def _other_conversations(self, main: RecordedConversation) -> dict[str, list[dict[str, Any]]]:
        found: dict[str, list[dict[str, Any]]] = {}
        for each in self._trial.conversations:
            if each is main:
                continue
            aside: dict[str, list[TranscriptEvent]] = defaultdict(list)
            found[each.name] = self._steps(_own_events(self._events(each), aside))
            found |= self._sub_agents(each, aside)
        return {name: steps for name, steps in found.items() if steps}

    def _sub_agents(
        self, conversation: RecordedConversation, aside: dict[str, list[TranscriptEvent]]
    ) -> dict[str, list[dict[str, Any]]]:
        return {f"{conversation.name}#{agent}": self._steps(events) for agent, events in aside.items()}

    def _events(self, conversation: RecordedConversation) -> Iterator[TranscriptEvent]:
        return read_events(conversation, self._trial.journal)

    def _steps(self, events: Iterable[TranscriptEvent]) -> list[dict[str, Any]]:
        steps = [*steps_of(events)]
        for step in steps:
            self._totals.add(step)
        return steps

    def _step(self, step: dict[str, Any], written: AtifFile) -> None:
        self._totals.add(step)
        self._file.write(",\n" if written.steps else "\n")
        self._file.write(_json(step))
        written.steps += 1

    def _members(self, members: dict[str, Any], *, first: bool = False) -> None:
        for name, value in members.items():
            self._file.write("\n" if first else ",\n")
            self._file.write(f"{_json(name)}: {_json(value)}")
            first = False

    def _head(self, name: str, agent: str) -> dict[str, Any]:
        trial = self._trial
        model = {"model_name": trial.model} if trial.model else {}
        own = {"agent": agent} if agent else self._facts()
        return {
            "schema_version": ATIF_VERSION,
            "session_id": trial.name,
            "trajectory_id": name,
            "agent": {"name": trial.harness or trial.agent, "version": __version__, **model},
            **_extra(**own),
        }

    def _facts(self) -> dict[str, Any]:
        trial = self._trial
        return {
            "run": trial.run,
            "agent_id": trial.agent,
            "setting": trial.setting,
            "instance": trial.instance,
            "attempt": trial.attempt,
            "outcome": trial.facet.value,
            "message": trial.message,
            "scores": dict(trial.scores),
            **trial.details,
        }

    def _final_metrics(self, steps: int) -> dict[str, Any]:
        totals = self._totals
        cost = {} if self._trial.cost_usd is None else {"total_cost_usd": self._trial.cost_usd}
        tokens = {
            "total_prompt_tokens": totals.prompt_tokens,
            "total_completion_tokens": totals.completion_tokens,
            "total_cached_tokens": totals.cached_tokens,
        }
        known = totals.known and not self._trial.has_unknown_calls
        return {**(tokens if known else {}), **cost, "total_steps": steps}


def _own_events(
    events: Iterable[TranscriptEvent], aside: dict[str, list[TranscriptEvent]]
) -> Iterator[TranscriptEvent]:
    """Yield the events of the agent itself; put those of others aside by their names."""
    for event in events:
        if event.agent:
            aside[event.agent].append(event)
        else:
            yield event


def _references(others: Iterable[str], number: int) -> dict[str, Any]:
    refs = [{"trajectory_id": name} for name in others]
    return {
        "step_id": number,
        "source": "system",
        "message": "Other conversations of this trial: other steps and attempts, sub-agents, side calls.",
        "observation": {"results": [{"subagent_trajectory_ref": refs}]},
        **_extra(others=True),
    }


def _extra(**own: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
    return {"extra": {EXTRA: own}}


def _json(value: Any) -> str:  # noqa: ANN401 - JSON
    return json.dumps(value, ensure_ascii=False, allow_nan=False)
