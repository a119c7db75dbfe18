"""What is told of a trial beside its patch: who did it, how it ended, what it cost and how long it took."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from codetaste.evaluation.records import ProblemKind, Source
from codetaste.evaluation.stray_files import Faulty, count, number, read_object, text

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

AGENT, METADATA = "agent_config.json", "inference_metadata.json"
_STEPS = {
    "direct": (),
    "plan": ("plan_metadata.json",),
    "multiplan": ("multiplan_generation_metadata.json", "multiplan_metadata.json"),
}
"""What the published harness leaves of the steps before the execution."""
_UNKNOWN_COST = -1.0
"""What the published harness writes where it does not know a cost."""

_Read = TypeVar("_Read")
Report: TypeAlias = "Callable[[str, Faulty], None]"
"""Takes a file's name and what is wrong with it."""


@dataclass(frozen=True, slots=True)
class Story:
    """As told; "" and None are "nobody says".

    Attributes:
        agent: the agent's own id for itself, as it stands there.
        model: the model's name.
        harness: the agent program's name.
        source: whose files these are.
        finish_reason: how it ended.
        track: "instructed" or "open", as the metadata have it.
        mode: as the metadata have it.
        cost_usd: all steps together; None where one of them is not known.
        known_usd: what is known of it, as the published harness adds it up.
        time_s: seconds, all steps together.
        turns: model replies.
        tool_calls: of the agent.
        message: the agent's last words, or why it ended, one line.
        interrupted: why this is no outcome, but only what there was so far.
        loads: whether the published harness could read the metadata.
    """

    agent: str = ""
    model: str = ""
    harness: str = ""
    source: Source = Source.PUBLISHED
    finish_reason: str = ""
    track: str = ""
    mode: str = ""
    cost_usd: float | None = None
    known_usd: float | None = None
    time_s: float | None = None
    turns: int | None = None
    tool_calls: int | None = None
    message: str = ""
    interrupted: str = ""
    loads: bool = False


@dataclass(slots=True)
class _Effort:
    """Costs and times that add up, as long as all are known."""

    usd: float = 0.0
    known_usd: float | None = None
    time_s: float | None = None
    cost_open: bool = False
    time_open: bool = False

    def add(self, cost: float | None, theirs: float | None, seconds: float | None) -> None:
        """Add a step; ``theirs`` is what the published harness takes it to have cost, if it can load it."""
        if cost is not None:
            self.usd += cost
        if theirs is not None and theirs >= 0:
            self.known_usd = (self.known_usd or 0.0) + theirs
        if seconds is not None:
            self.time_s = (self.time_s or 0.0) + seconds
        self.cost_open |= cost is None
        self.time_open |= seconds is None


def read_story(folder: Path, root: str, mode: str, *, pseudo: bool, report: Report) -> Story:
    """Read what is told of the trial in ``folder``.

    Args:
        folder: the trial's.
        root: the real path of the folder that all files must be in.
        mode: as its place says, "" where that does not say.
        pseudo: whether it is a pseudo agent, of whom nobody tells a cost.
        report: is told of each file that is wrong.
    """
    config = _object(folder, root, AGENT, report)
    metadata = _object(folder, root, METADATA, _quiet if pseudo else report)
    more = metadata.get("additional")
    more = more if isinstance(more, dict) else {}
    ours = "codetaste_version" in more
    effort = _Effort()
    if metadata:
        cost = (
            None
            if pseudo and metadata.get("cost_usd") is None
            else _cost(metadata, METADATA, "cost_usd", report)
        )
        effort.add(cost, _their_cost(metadata), _seconds(metadata, METADATA, report))
        steps = _STEPS.get(mode or text(metadata.get("mode")), ())
        for name in () if ours or pseudo else steps:
            _add_step(effort, folder, root, name, report)
    agent, model = config.get("agent"), config.get("model")
    identity = config.get("id")
    return Story(
        agent=identity if isinstance(identity, str) else "",
        model=text(model.get("name")) if isinstance(model, dict) else "",
        harness=text(agent.get("name")) if isinstance(agent, dict) else "",
        source=Source.CODETASTE if ours else Source.PUBLISHED,
        finish_reason=text(metadata.get("finish_reason")),
        track=text(metadata.get("description_type")),
        mode=text(metadata.get("mode")),
        cost_usd=effort.usd if metadata and not effort.cost_open else None,
        known_usd=effort.known_usd,
        time_s=None if effort.time_open else effort.time_s,
        turns=_tried(METADATA, report, lambda: count(more.get("turns"), "turns")),
        tool_calls=_tried(METADATA, report, lambda: count(more.get("tool_calls"), "tool_calls")),
        message=text(more.get("message") or more.get("error") or more.get("error_message")),
        interrupted=text(more.get("interrupted")),
        loads=_loads(metadata),
    )


FINISH_REASONS = frozenset({
    "success", "timeout", "execution_error", "error", "unknown", "budget_exceeded", "error_planmode",
    "error_multiplan", "error_judge",
})  # fmt: skip
"""Those of the published layout; the published harness reads no metadata with another."""
_LOADED_MODES = (None, "direct", "plan", "multiplan")


def _loads(metadata: Mapping[str, Any]) -> bool:
    return (
        metadata.get("finish_reason") in [*FINISH_REASONS]
        and _lax(metadata.get("cost_usd", _UNKNOWN_COST)) is not None
        and metadata.get("mode") in _LOADED_MODES
    )


def _their_cost(metadata: Mapping[str, Any]) -> float | None:
    """Return the cost that the published harness reads of a step; None where it cannot load the step."""
    return _lax(metadata.get("cost_usd", _UNKNOWN_COST)) if _loads(metadata) else None


def _lax(value: object) -> float | None:
    """Return what the published models take as a number: true and text like "2.5" among them."""
    try:
        return float(value) if isinstance(value, bool | int | float | str) else None
    except (ValueError, OverflowError):
        return None


def _add_step(effort: _Effort, folder: Path, root: str, name: str, report: Report) -> None:
    step = _object(folder, root, name, report)
    if name == "multiplan_metadata.json":
        # Its times begin with the plans', whose metadata tell them too.
        loads = step.get("finish_reason") in [*FINISH_REASONS] and isinstance(step.get("start_time"), str)
        theirs = _lax(step.get("judge_cost_usd")) if loads else None
        effort.add(_cost(step, name, "judge_cost_usd", report), theirs, _judging(step, name, report))
    else:
        effort.add(_cost(step, name, "cost_usd", report), _their_cost(step), _seconds(step, name, report))


def _judging(step: Mapping[str, Any], name: str, report: Report) -> float | None:
    key = "judge_latency_seconds"
    return _tried(name, report, lambda: number(step.get(key), key))


def _cost(data: Mapping[str, Any], name: str, key: str, report: Report) -> float | None:
    if not data or data.get(key) == _UNKNOWN_COST:
        return None
    if data.get(key) is None:
        said = "null" if key in data else "missing"
        report(name, Faulty(ProblemKind.NUMBER, f"{key} is {said}: what it cost is not known"))
        return None
    return _tried(name, report, lambda: number(data[key], key))


def _seconds(data: Mapping[str, Any], name: str, report: Report) -> float | None:
    begun, ended = _moment(data.get("start_time")), _moment(data.get("finish_time"))
    if begun is None or ended is None:
        return None
    seconds = (ended - begun).total_seconds()
    return _tried(name, report, lambda: number(seconds, "finish_time - start_time"))


def _moment(value: object) -> datetime | None:
    try:
        moment = datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        return None
    return moment.replace(tzinfo=UTC) if moment is not None and moment.tzinfo is None else moment


def _tried(name: str, report: Report, read: Callable[[], _Read]) -> _Read | None:
    try:
        return read()
    except Faulty as fault:
        report(name, fault)
        return None


def _quiet(_name: str, _fault: Faulty) -> None:
    """Nobody expects that file."""


def _object(folder: Path, root: str, name: str, report: Report) -> dict[str, Any]:
    try:
        return read_object(folder / name, root)
    except FileNotFoundError:
        report(name, Faulty(ProblemKind.MISSING, "is missing"))
    except Faulty as fault:
        report(name, fault)
    return {}
