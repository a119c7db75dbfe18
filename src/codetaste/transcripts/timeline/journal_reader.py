"""Timelines of all jobs of a run, from its journal, also while another process appends to it.

Calls, money and states are folded by ``orchestration/journal/history.py`` and ``report/status/``, as for
``codetaste status``. Values of effects are not stored: their places in the file are.
"""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from codetaste.core.files import open_regular_file
from codetaste.core.text import one_line
from codetaste.errors import CodetasteError
from codetaste.orchestration.journal.history import History
from codetaste.orchestration.journal.journal import JOURNAL_FILE, read_lines
from codetaste.orchestration.journal.run_lock import lock_owner
from codetaste.orchestration.wait import Wait, WaitReason
from codetaste.report.status.journal_view import JournalView, usage_in
from codetaste.report.status.model import Spend
from codetaste.report.status.status import call_state, model_of_call
from codetaste.transcripts.timeline.job import AttemptSpan, JobTimeline, ToolSpan, TurnSpan, WaitSpan

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from codetaste.orchestration.journal.history import CallRecord

_DAMAGE = (LookupError, TypeError, ValueError, ArithmeticError, AttributeError)


@dataclass(frozen=True, slots=True)
class EffectPlace:
    """Where the journal has the value of an effect: offset and length of its line."""

    effect: str
    at: float
    offset: int
    size: int
    of_call: str = ""
    """The call whose reply it is."""


@dataclass(slots=True)
class _JobRecord:
    created: float = 0.0
    ended: float | None = None
    attempts: list[AttemptSpan] = field(default_factory=list)
    waits: list[WaitSpan] = field(default_factory=list)
    effects: list[EffectPlace] = field(default_factory=list)
    calls: list[CallRecord] = field(default_factory=list)


class JournalReader:
    """Reads a journal; each ``poll`` reads only what was appended since the last one.

    Attributes:
        problem: why the rest of the journal cannot be read, "" if nothing is wrong.
        at: the time of the last line, in seconds of the epoch.
    """

    def __init__(self, run: Path) -> None:
        self.path = run / JOURNAL_FILE
        self._run = run
        self._end, self._live = 0, False
        self._history, self._view = History(), JournalView()
        self._jobs: defaultdict[str, _JobRecord] = defaultdict(_JobRecord)
        self._below: defaultdict[str, dict[str, None]] = defaultdict(dict)
        self.at, self.problem = 0.0, ""

    def poll(self) -> None:
        """Read what is new. Blocking; damage ends the reading and is the ``problem``."""
        try:
            self._live = bool(lock_owner(self._run))
            if self.path.stat().st_size < self._end:
                self._restart()
            for end, line in read_lines(self.path, self._end):
                self._take(line, self._end, end)
                self._end = end
            self.problem = ""
        except CodetasteError as error:
            self.problem = one_line(error)
        except OSError as error:
            self.problem = f"{self.path}: cannot be read: {error.strerror}"
        except _DAMAGE as error:
            self.problem = f"{self.path}: a line is not in the format that codetaste writes ({error!r})"

    def keys_of(self, prefix: str) -> tuple[str, ...]:
        """Return the key ``prefix`` if there is such a job, and the keys one level below it."""
        own = (prefix,) if prefix in self._jobs else ()
        return (*own, *self._below.get(prefix, ()))

    def effects(self, key: str) -> tuple[EffectPlace, ...]:
        """Return the places of a job's effects, in order."""
        return tuple(self._jobs[key].effects) if key in self._jobs else ()

    def value(self, place: EffectPlace) -> Any:  # noqa: ANN401 - JSON
        """Return the value of an effect; None if it cannot be read. Blocking."""
        try:
            with open_regular_file(self.path) as file:
                file.seek(place.offset)
                return json.loads(file.read(place.size)).get("value")
        except (OSError, ValueError, RecursionError, AttributeError):
            return None

    def result(self, key: str) -> Any:  # noqa: ANN401 - JSON
        """Return the value with which a job ended last; None if it has none."""
        ends = self._history.jobs[key].recorded_ends if key in self._history.jobs else {}
        return next((end.value for end in reversed(ends.values())), None)

    def job(self, key: str) -> JobTimeline | None:
        """Return the timeline of a job; None if the journal does not have it."""
        record = self._jobs.get(key)
        if record is None:
            return None
        view = self._view.jobs.get(key)
        end = None if self._live and record.ended is None else record.ended or self.at
        return JobTimeline(
            key,
            record.created,
            record.ended,
            tuple(record.attempts),
            self._turns(record),
            _tools(record),
            tuple(sorted(self._waits(record, key, end), key=lambda span: span.began)),
            dict(view.retries) if view else {},
        )

    def _restart(self) -> None:
        self._end, self.at, self.problem = 0, 0.0, ""
        self._history, self._view = History(), JournalView()
        self._jobs.clear()
        self._below.clear()

    def _take(self, line: dict[str, Any], offset: int, end: int) -> None:
        event = line["event"]
        place = None
        if event in {"settled", "effect"} and line.get("value") is not None:
            value = line["value"]
            place = EffectPlace(line.get("name", ""), 0.0, offset, end - offset, line.get("call", ""))
            line = {**line, "value": _without_content(value)}
        self._history.apply(line)
        if event == "session":
            self._end_session()
        self._view.apply(line)
        self.at = at = self._view.last_at
        if place is not None:
            self._effect(line, replace(place, at=at))
        elif "key" in line and (key := line["key"]):
            self._job_line(event, line, self._jobs[key], at)

    def _effect(self, line: Mapping[str, Any], place: EffectPlace) -> None:
        if line["event"] == "settled":
            call = self._history.calls[line["call"]]
            self._jobs[call.key].effects.append(replace(place, effect=call.effect))
            return
        value, record = line["value"], self._jobs[line["key"]]
        call_id = value.get("call") if isinstance(value, dict) else None
        if isinstance(call_id, str) and call_id in self._history.calls:  # a reply of unknown cost
            place = replace(place, of_call=call_id)
        record.effects.append(place)

    def _job_line(self, event: str, line: Mapping[str, Any], record: _JobRecord, at: float) -> None:
        match event:
            case "job":
                self._below[line["key"].rpartition("/")[0]][line["key"]] = None
                record.created = record.created or at
            case "rerun":
                record.effects.clear()
            case "started":
                record.attempts.append(AttemptSpan(line["attempt"], at, None))
                record.ended = None
            case "retry" if record.attempts:
                self._end_attempt(record, at, line["cause"])
                wait = Wait(WaitReason.RETRY, "", line["delay_s"])
                record.waits.append(WaitSpan(wait, at, at + line["delay_s"]))
            case "ended":
                self._end_attempt(record, at, line.get("cause") or "")
                record.ended = at
            case "reserved":
                record.calls.append(self._history.calls[line["call"]])
            case "wait_ended":
                wait = Wait(WaitReason(line["reason"]), line["detail"])
                record.waits.append(WaitSpan(wait, at - line["waited_s"], at))

    def _end_attempt(self, record: _JobRecord, at: float, cause: str) -> None:
        if record.attempts and record.attempts[-1].ended is None:
            record.attempts[-1] = replace(record.attempts[-1], ended=at, cause=cause)

    def _end_session(self) -> None:
        """End what the process of an earlier session has not ended, at the time of its last line."""
        for key, record in self._jobs.items():
            self._end_attempt(record, self.at, "interrupted")
            record.waits += self._open_waits(key, self.at)

    def _open_waits(self, key: str, end: float | None) -> list[WaitSpan]:
        times = self._view.jobs.get(key)
        waits = times.waits.items() if times else ()
        return [WaitSpan(wait, began, end) for wait, begun in waits for began in begun]

    def _waits(self, record: _JobRecord, key: str, end: float | None) -> list[WaitSpan]:
        return [*self._queue(record, key, end), *record.waits, *self._open_waits(key, end)]

    def _queue(self, record: _JobRecord, key: str, end: float | None) -> list[WaitSpan]:
        """Return the waits before the first attempt: for other jobs, then for a permit or a resource."""
        if not record.created or record.created == record.ended:
            return []
        began = record.attempts[0].began if record.attempts else end
        needs = {need: self._jobs[need].ended for need in self._history.job(key).needs if need in self._jobs}
        ready, spans = record.created, list[WaitSpan]()
        for need, ended in needs.items():
            until = began if ended is None else ended if began is None else min(ended, began)
            if until is None or until > record.created:
                spans.append(WaitSpan(Wait(WaitReason.NEED, need), record.created, until))
            ready = max(ready, until or ready)
        waits_for_need = began is None and any(ended is None for ended in needs.values())
        if not waits_for_need and (began is None or began > ready):
            spans.append(WaitSpan(Wait(WaitReason.JOBS), ready, began))
        return spans

    def _turns(self, record: _JobRecord) -> tuple[TurnSpan, ...]:
        turns: dict[str, TurnSpan] = {}
        for call in record.calls:
            times = self._view.calls[call.call]
            state = call_state(call, self._history, live=self._live)
            spend = Spend()
            spend.add(call, state)
            before = turns.get(call.effect)
            ended = times.answered_at
            turns[call.effect] = TurnSpan(
                call.effect,
                model_of_call(call, self._history.job(call.key).lane),
                state,
                before.began if before and before.ended is None else times.sent_at,
                ended,
                (before.settled_usd if before else Decimal(0)) + spend.settled_usd,
                (before.unknown_usd if before else Decimal(0)) + spend.unknown_usd,
                (before.reserved_usd if before else Decimal(0)) + spend.reserved_usd,
                dict(times.usage) if times.usage or not before else before.tokens,
                before.calls + 1 if before else 1,
            )
        return tuple(turns.values())


def _without_content(value: Any) -> Any:  # noqa: ANN401 - JSON
    """Return what the folds need of an effect's value, which may be long."""
    if not isinstance(value, dict):
        return True
    needed: dict[str, Any] = {"call": value["call"]} if "call" in value else {}
    return {**needed, "usage": usage_in(value)}


def _tools(record: _JobRecord) -> tuple[ToolSpan, ...]:
    spans: list[ToolSpan] = []
    before = record.created
    starts = iter(sorted(attempt.began for attempt in record.attempts))
    start = next(starts, None)
    for place in record.effects:
        while start is not None and start <= place.at:
            before, start = max(before, start), next(starts, None)
        if not place.of_call:
            spans.append(ToolSpan(place.effect, before, place.at))
        before = place.at
    return tuple(spans)
