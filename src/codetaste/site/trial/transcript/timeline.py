"""When the jobs of a trial worked, waited and paid, drawn on one axis of time, and by turn in a table."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from math import ceil, floor, log10
from typing import TYPE_CHECKING

from codetaste.benchmark.trial_identity import trial_of_step
from codetaste.core.units import format_duration, format_usd
from codetaste.orchestration.wait import WaitReason
from codetaste.transcripts.timeline.job import waited_s

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from codetaste.orchestration.wait import Wait
    from codetaste.site.trial.transcript.trial_jobs import TrialJobs
    from codetaste.transcripts.timeline.job import JobTimeline, TurnSpan

WIDTH, LEFT = 960.0, 90.0
_LANE, _GAP, _TOP, _COSTS = 14.0, 5.0, 8.0, 46.0
_MIN_WIDTH = 1.0
_MAX_BARS = 400
_MAX_ROWS = 100
_TICKS = 6
_MINUTE_S, _HOUR_S, _DAY_S = 60, 3600, 86400
_STEPS_S = (
    *(1, 2, 5, 10, 20, 30),
    *(minutes * _MINUTE_S for minutes in (1, 2, 5, 10, 20, 30)),
    *(hours * _HOUR_S for hours in (1, 2, 4, 6, 12, 24)),
)
"""Seconds from tick to tick of timelines longer than some seconds."""
_EXACT_S = 10.0


@dataclass(frozen=True, slots=True)
class Bar:
    """A rectangle: its kind ("model", "tool", "wait" or "cost"), its place, and what it says."""

    kind: str
    x: float
    y: float
    width: float
    height: float
    text: str


@dataclass(frozen=True, slots=True)
class Label:
    """A text at a place."""

    x: float
    y: float
    text: str


@dataclass(frozen=True, slots=True)
class TurnRow:
    """One turn: its step, its number, its beginning and lengths in words, its cost and tokens."""

    step: str
    number: int
    began: str
    took: str
    waited: str
    cost: str
    tokens: str
    state: str


@dataclass(frozen=True, slots=True)
class TimelineView:
    """The drawing and the table.

    Attributes:
        bars: rectangles.
        lanes: names of the lanes.
        ticks: times on the axis.
        height: of the drawing, in its own units.
        rows: the first hundred turns.
        more_rows: how many there are beyond.
        summary: seconds of work and of waits by reason, of which those at one time count once, and the cost.
    """

    bars: tuple[Bar, ...]
    lanes: tuple[Label, ...]
    ticks: tuple[Label, ...]
    height: float
    rows: tuple[TurnRow, ...]
    more_rows: int
    summary: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class _Axis:
    began: float
    ended: float

    def x(self, at: float) -> float:
        length = max(self.ended - self.began, 1e-3)
        share = min(1.0, max(0.0, (at - self.began) / length))
        return round(LEFT + (WIDTH - LEFT) * share, 1)


def make_timeline(jobs: TrialJobs) -> TimelineView | None:
    """Return the timeline of a trial; None if its journal has no job of it."""
    timelines = [each for each in jobs.timelines if each.attempts or each.turns]
    if not timelines:
        return None
    ends = (_end(each, jobs.until) for each in timelines)
    axis = _Axis(min(each.created for each in timelines), max(ends))
    bars, lanes = list(_costs(timelines, axis)), [Label(0, _TOP + _COSTS - 4, "cost")]
    y = _TOP + _COSTS + _GAP
    for each in timelines:
        step = each.key.rpartition("/")[2]
        bars += _work(each, axis, y, jobs.until)
        bars += _waits(each, axis, y + _LANE, jobs.until)
        lanes += [Label(0, y + _LANE - 3, step), Label(0, y + 2 * _LANE - 3, "waits")]
        y += 2 * _LANE + _GAP
    length = axis.ended - axis.began
    tick_s = _tick_step(length)
    ticks = [
        Label(axis.x(axis.began + tick * tick_s), y + 12, _tick(tick * tick_s))
        for tick in range(int(length / tick_s + 1e-9) + 1)
    ]
    rows = [row for each in timelines for row in _rows(each, axis.began, jobs.until)]
    return TimelineView(
        tuple(bars),
        tuple(lanes),
        tuple(ticks),
        y + 18,
        tuple(rows[:_MAX_ROWS]),
        max(0, len(rows) - _MAX_ROWS),
        tuple(_summary(timelines, jobs.until)),
    )


def _tick_step(length: float) -> float:
    """Return the seconds from one tick to the next: the first round number that gives six at most."""
    least = max(length, 1e-3) / _TICKS
    power = 10.0 ** floor(log10(least))
    steps = _STEPS_S if least > 1 else [power * factor for factor in (1, 2, 5, 10)]
    return next((step for step in steps if step >= least), ceil(least / _DAY_S) * _DAY_S)


def _tick(seconds: float) -> str:
    return f"{seconds:.3g}s" if seconds < _MINUTE_S else format_duration(seconds)


def _end(timeline: JobTimeline, until: float) -> float:
    return until if timeline.ended is None else timeline.ended


def _cost(turn: TurnSpan) -> Decimal:
    return turn.settled_usd + turn.unknown_usd


def _costs(timelines: Sequence[JobTimeline], axis: _Axis) -> Iterator[Bar]:
    """Yield a bar for each turn, as high as its cost beside that of the dearest."""
    turns = [turn for each in timelines for turn in each.turns]
    most = max((_cost(turn) for turn in turns), default=Decimal(0))
    for turn in turns[:_MAX_BARS] if most else ():
        height = max(_MIN_WIDTH, _COSTS * float(_cost(turn) / most))
        x = axis.x(turn.began)
        width = max(2.0, axis.x(turn.ended or turn.began) - x)
        yield Bar("cost", x, round(_TOP + _COSTS - height, 1), width, round(height, 1), _money(turn))


def _work(timeline: JobTimeline, axis: _Axis, y: float, until: float) -> Iterator[Bar]:
    for number, turn in enumerate(timeline.turns[:_MAX_BARS], 1):
        ended = until if turn.ended is None else turn.ended
        text = f"turn {number}: model {turn.model}, {_duration(ended - turn.began)}, {_money(turn)}"
        yield _bar("model", axis, y, (turn.began, ended), text)
    for tool in timeline.tools[:_MAX_BARS]:
        text = f"tool: {_duration(max(0.0, tool.ended - tool.began))}"
        yield _bar("tool", axis, y, (tool.began, tool.ended), text)


def _waits(timeline: JobTimeline, axis: _Axis, y: float, until: float) -> Iterator[Bar]:
    for span in timeline.waits[:_MAX_BARS]:
        ended = until if span.ended is None else span.ended
        text = f"waits for {_subject(span.wait)}: {_duration(max(0.0, ended - span.began))}"
        yield _bar("wait", axis, y, (span.began, ended), text)


def _bar(kind: str, axis: _Axis, y: float, times: tuple[float, float], text: str) -> Bar:
    x = axis.x(times[0])
    width = max(_MIN_WIDTH, axis.x(times[1]) - x)
    return Bar(kind, x, round(y, 1), round(width, 1), _LANE - 2, text)


def _rows(timeline: JobTimeline, began: float, until: float) -> Iterator[TurnRow]:
    step = timeline.key.rpartition("/")[2]
    before = timeline.created
    for number, turn in enumerate(timeline.turns, 1):
        ended = until if turn.ended is None else turn.ended
        waited = timeline.waited_s(turn.began, since=before)
        tokens = turn.tokens or {}
        counts = f"{tokens.get('input', 0):,} → {tokens.get('output', 0):,}" if tokens else ""
        yield TurnRow(
            step,
            number,
            f"+{_duration(max(0.0, turn.began - began))}",
            _duration(max(0.0, ended - turn.began)),
            _duration(waited) if waited else "",
            _money(turn),
            counts,
            turn.state.value.replace("_", " "),
        )
        before = ended


def _subject(wait: Wait) -> str:
    """Return what is waited for; another step of the trial by its name alone."""
    step = trial_of_step(wait.detail) if wait.reason is WaitReason.NEED else None
    return str(wait) if step is None else f"the step {wait.detail.rpartition('/')[2]}"


def _money(turn: TurnSpan) -> str:
    parts = [format_usd(turn.settled_usd)] if turn.settled_usd or not turn.unknown_usd else []
    parts += [f"{format_usd(turn.unknown_usd)} unknown"] if turn.unknown_usd else []
    return ", ".join(parts)


def _summary(timelines: Sequence[JobTimeline], until: float) -> Iterator[tuple[str, str]]:
    turns = [turn for each in timelines for turn in each.turns]
    model_s = sum((until if turn.ended is None else turn.ended) - turn.began for turn in turns)
    tool_s = sum(max(0.0, tool.ended - tool.began) for each in timelines for tool in each.tools)
    yield "Model", _duration(model_s)
    yield "Tools and other work", _duration(tool_s)
    spans = [span for each in timelines for span in each.waits]
    yield "Waits", _duration(waited_s(spans, until))
    subjects = {_subject(span.wait) for span in spans}
    waits = {
        subject: waited_s([span for span in spans if _subject(span.wait) == subject], until)
        for subject in sorted(subjects)
    }
    for text, seconds in sorted(waits.items(), key=lambda pair: -pair[1])[:5]:
        yield f"waits for {text}", _duration(seconds)
    yield "Billed", format_usd(sum((turn.settled_usd for turn in turns), Decimal(0)))
    if unknown := sum((turn.unknown_usd for turn in turns), Decimal(0)):
        yield "Unknown cost, at most", format_usd(unknown)
    retries = sum(sum((each.retries or {}).values()) for each in timelines)
    if retries:
        yield "Retried calls", str(retries)


def _duration(seconds: float) -> str:
    return f"{seconds:.2f}s" if seconds < _EXACT_S else format_duration(seconds)
