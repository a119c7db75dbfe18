"""Metadata of a trial: its agent and model, how it ended, its cost and its time."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from codetaste.benchmark.layout import (
    AGENT_CONFIG_FILE,
    JUDGE_METADATA_FILE,
    METADATA_FILE,
    MODES,
    PLAN_METADATA_FILE,
    PLANS_METADATA_FILE,
    FinishReason,
)
from codetaste.evaluation.trials.records import ProblemKind, TrialMetadata, TrialSource
from codetaste.evaluation.trials.untrusted_files import (
    FileProblem,
    parse_count,
    parse_number,
    parse_text,
    read_json_object,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

_STEPS = {
    "direct": (),
    "plan": (PLAN_METADATA_FILE,),
    "multiplan": (PLANS_METADATA_FILE, JUDGE_METADATA_FILE),
}
"""Metadata files of the steps before the execution in the published layout, by mode."""
_UNKNOWN_COST = -1.0
"""The published harness writes this for an unknown cost."""

_Value = TypeVar("_Value")
ProblemReporter: TypeAlias = "Callable[[str, FileProblem], None]"
"""Called with a file's name and the problem with it."""


@dataclass(slots=True)
class _StepTotals:
    """Sums of costs and times over steps, and whether any of them is unknown."""

    usd: float = 0.0
    known_usd: float | None = None
    time_s: float | None = None
    cost_open: bool = False
    time_open: bool = False

    def add(self, cost: float | None, published: float | None, seconds: float | None) -> None:
        """Add a step; ``published`` is its cost as the published harness reads it, None if it cannot."""
        if cost is not None:
            self.usd += cost
        if published is not None and published >= 0:
            self.known_usd = (self.known_usd or 0.0) + published
        if seconds is not None:
            self.time_s = (self.time_s or 0.0) + seconds
        self.cost_open |= cost is None
        self.time_open |= seconds is None


def read_metadata(
    folder: Path, root: str, mode: str, *, pseudo: bool, report: ProblemReporter
) -> TrialMetadata:
    """Read the metadata of the trial in ``folder``.

    Args:
        folder: the trial's folder.
        root: the real path of the folder that must contain all files.
        mode: the mode in the folder's path, "" if it has none.
        pseudo: whether it is a pseudo agent's trial, which may have no metadata and no cost.
        report: called for each file with a problem.
    """
    config = _read_json(folder, root, AGENT_CONFIG_FILE, report)
    metadata = _read_json(folder, root, METADATA_FILE, _ignore if pseudo else report)
    additional = metadata.get("additional")
    additional = additional if isinstance(additional, dict) else {}
    own = "codetaste_version" in additional
    totals = _StepTotals()
    if metadata:
        cost = (
            None
            if pseudo and metadata.get("cost_usd") is None
            else _cost(metadata, METADATA_FILE, "cost_usd", report)
        )
        totals.add(cost, _published_cost(metadata), _seconds(metadata, METADATA_FILE, report))
        steps = _STEPS.get(mode or parse_text(metadata.get("mode")), ())
        for name in () if own or pseudo else steps:
            _add_step(totals, folder, root, name, report)
    agent, model = config.get("agent"), config.get("model")
    identity = config.get("id")
    return TrialMetadata(
        agent_id=identity if isinstance(identity, str) else "",
        model=parse_text(model.get("name")) if isinstance(model, dict) else "",
        harness=parse_text(agent.get("name")) if isinstance(agent, dict) else "",
        source=TrialSource.CODETASTE if own else TrialSource.PUBLISHED,
        finish_reason=parse_text(metadata.get("finish_reason")),
        track=parse_text(metadata.get("description_type")),
        mode=parse_text(metadata.get("mode")),
        cost_usd=totals.usd if metadata and not totals.cost_open else None,
        known_cost_usd=totals.known_usd,
        time_s=None if totals.time_open else totals.time_s,
        turns=_try_read(METADATA_FILE, report, lambda: parse_count(additional.get("turns"), "turns")),
        tool_calls=_try_read(
            METADATA_FILE, report, lambda: parse_count(additional.get("tool_calls"), "tool_calls")
        ),
        message=parse_text(
            additional.get("message") or additional.get("error") or additional.get("error_message")
        ),
        interruption=parse_text(additional.get("interruption")),
        loadable=_loadable(metadata),
    )


_LOADABLE_MODES = (None, *MODES)


def _loadable(metadata: Mapping[str, Any]) -> bool:
    return (
        metadata.get("finish_reason") in [*FinishReason]
        and _lax_number(metadata.get("cost_usd", _UNKNOWN_COST)) is not None
        and metadata.get("mode") in _LOADABLE_MODES
    )


def _published_cost(metadata: Mapping[str, Any]) -> float | None:
    """Return the cost of a step that the published harness reads; None if it cannot load the step."""
    return _lax_number(metadata.get("cost_usd", _UNKNOWN_COST)) if _loadable(metadata) else None


def _lax_number(value: object) -> float | None:
    """Return a value that the published models accept as a number, including true and text like "2.5"."""
    try:
        return float(value) if isinstance(value, bool | int | float | str) else None
    except (ValueError, OverflowError):
        return None


def _add_step(totals: _StepTotals, folder: Path, root: str, name: str, report: ProblemReporter) -> None:
    step = _read_json(folder, root, name, report)
    if name == JUDGE_METADATA_FILE:
        # Its start and end times include the plans, which their own metadata count already.
        loadable = step.get("finish_reason") in [*FinishReason] and isinstance(step.get("start_time"), str)
        published = _lax_number(step.get("judge_cost_usd")) if loadable else None
        key = "judge_latency_seconds"
        seconds = _try_read(name, report, lambda: parse_number(step.get(key), key))
        totals.add(_cost(step, name, "judge_cost_usd", report), published, seconds)
    else:
        totals.add(_cost(step, name, "cost_usd", report), _published_cost(step), _seconds(step, name, report))


def _cost(data: Mapping[str, Any], name: str, key: str, report: ProblemReporter) -> float | None:
    if not data or data.get(key) == _UNKNOWN_COST:
        return None
    if data.get(key) is None:
        value = "null" if key in data else "missing"
        report(name, FileProblem(ProblemKind.NUMBER, f"{key} is {value}: the cost is unknown"))
        return None
    return _try_read(name, report, lambda: parse_number(data[key], key))


def _seconds(data: Mapping[str, Any], name: str, report: ProblemReporter) -> float | None:
    start, finish = _parse_time(data.get("start_time")), _parse_time(data.get("finish_time"))
    if start is None or finish is None:
        return None
    seconds = (finish - start).total_seconds()
    return _try_read(name, report, lambda: parse_number(seconds, "finish_time - start_time"))


def _parse_time(value: object) -> datetime | None:
    try:
        moment = datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        return None
    return moment.replace(tzinfo=UTC) if moment is not None and moment.tzinfo is None else moment


def _try_read(name: str, report: ProblemReporter, read: Callable[[], _Value]) -> _Value | None:
    try:
        return read()
    except FileProblem as problem:
        report(name, problem)
        return None


def _ignore(_name: str, _problem: FileProblem) -> None:
    """Report nothing: the file is optional."""


def _read_json(folder: Path, root: str, name: str, report: ProblemReporter) -> dict[str, Any]:
    try:
        return read_json_object(folder / name, root)
    except FileNotFoundError:
        report(name, FileProblem(ProblemKind.MISSING, "is missing"))
    except FileProblem as problem:
        report(name, problem)
    return {}
