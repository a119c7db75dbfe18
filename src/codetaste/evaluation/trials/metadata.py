"""Metadata of a trial: its agent and model, how it ended, its cost and its time."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypeVar

from codetaste.benchmark.layout import (
    AGENT_CONFIG_FILE,
    JUDGE_METADATA_FILE,
    METADATA_FILE,
    MODES,
    PLAN_METADATA_FILES,
    FinishReason,
    Mode,
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

    from codetaste.evaluation.trials.context import ReadContext
    from codetaste.evaluation.trials.find import TrialFolder

_STEPS: dict[str, tuple[str, ...]] = {
    Mode.DIRECT: (),
    Mode.PLAN: (PLAN_METADATA_FILES[Mode.PLAN],),
    Mode.MULTIPLAN: (PLAN_METADATA_FILES[Mode.MULTIPLAN], JUDGE_METADATA_FILE),
}
"""Metadata files of the steps before the execution in the published layout, by mode."""
_UNKNOWN_COST = -1.0
"""The published harness writes this for an unknown cost."""

_Value = TypeVar("_Value")


@dataclass(slots=True)
class _StepTotals:
    """Sums of costs and times over steps; ``usd`` and ``time_s`` are None if one of them is unknown."""

    usd: float | None = 0.0
    known_usd: float | None = None
    time_s: float | None = 0.0

    def add(self, cost: float | None, published: float | None, seconds: float | None) -> None:
        """Add a step; ``published`` is its cost as the published harness reads it, None if it cannot."""
        self.usd = None if cost is None or self.usd is None else self.usd + cost
        if published is not None and published >= 0:
            self.known_usd = (self.known_usd or 0.0) + published
        self.time_s = None if seconds is None or self.time_s is None else self.time_s + seconds


class _MetadataFiles:
    """The metadata files of one trial; a problem with a value is reported, and the value is unknown."""

    def __init__(self, trial: TrialFolder, context: ReadContext) -> None:
        self._trial = trial
        self._context = context

    def read(self, name: str, *, quiet: bool = False) -> dict[str, Any]:
        try:
            return read_json_object(self._trial.folder / name, self._context.root)
        except FileProblem as problem:
            if not quiet:
                self._report(name, problem)
            return {}

    def value(
        self, name: str, key: str, value: object, parse: Callable[[object, str], _Value | None]
    ) -> _Value | None:
        try:
            return parse(value, key)
        except FileProblem as problem:
            self._report(name, problem)
            return None

    def cost(self, name: str, data: Mapping[str, Any], key: str = "cost_usd") -> float | None:
        if not data or data.get(key) == _UNKNOWN_COST:
            return None
        if data.get(key) is None:
            value = "null" if key in data else "missing"
            self._report(name, FileProblem(ProblemKind.NUMBER, f"{key} is {value}: the cost is unknown"))
            return None
        return self.value(name, key, data[key], parse_number)

    def seconds(self, name: str, data: Mapping[str, Any]) -> float | None:
        start, finish = _parse_time(data.get("start_time")), _parse_time(data.get("finish_time"))
        if start is None or finish is None:
            return None
        seconds = (finish - start).total_seconds()
        return self.value(name, "finish_time - start_time", seconds, parse_number)

    def _report(self, name: str, problem: FileProblem) -> None:
        self._context.add_fault(f"{self._trial.label}/{name}", problem)


def read_metadata(trial: TrialFolder, context: ReadContext, *, pseudo: bool) -> TrialMetadata:
    """Read the metadata of ``trial``; a pseudo agent's trial may have no metadata and no cost."""
    files = _MetadataFiles(trial, context)
    config = files.read(AGENT_CONFIG_FILE)
    metadata = files.read(METADATA_FILE, quiet=pseudo)
    additional = metadata.get("additional")
    additional = additional if isinstance(additional, dict) else {}
    own = "codetaste_version" in additional
    totals = _StepTotals()
    if metadata:
        no_cost = pseudo and metadata.get("cost_usd") is None
        cost = None if no_cost else files.cost(METADATA_FILE, metadata)
        totals.add(cost, _published_cost(metadata), files.seconds(METADATA_FILE, metadata))
        steps = _STEPS.get(trial.mode or parse_text(metadata.get("mode")), ())
        for name in () if pseudo else steps:
            step = files.read(name, quiet=own)
            if own and not step:
                continue  # our trials have the files of those steps that have a result
            if name == JUDGE_METADATA_FILE:
                # Its start and end times include the plans, which their own metadata count already.
                key = "judge_latency_seconds"
                seconds = files.value(name, key, step.get(key), parse_number)
                loadable = step.get("finish_reason") in [*FinishReason]
                loadable = loadable and isinstance(step.get("start_time"), str)
                published = _lax_number(step.get("judge_cost_usd")) if loadable else None
                totals.add(files.cost(name, step, "judge_cost_usd"), published, seconds)
            else:
                totals.add(files.cost(name, step), _published_cost(step), files.seconds(name, step))
    agent, model = config.get("agent"), config.get("model")
    identity = config.get("id")
    turns, tool_calls, refusals = (
        files.value(METADATA_FILE, key, additional.get(key), parse_count)
        for key in ("turns", "tool_calls", "refusals")
    )
    message = additional.get("message") or additional.get("error") or additional.get("error_message")
    return TrialMetadata(
        agent_id=identity if isinstance(identity, str) else "",
        model=parse_text(model.get("name")) if isinstance(model, dict) else "",
        provider=parse_text(model.get("provider")) if isinstance(model, dict) else "",
        harness=parse_text(agent.get("name")) if isinstance(agent, dict) else "",
        source=TrialSource.CODETASTE if own else TrialSource.PUBLISHED,
        finish_reason=parse_text(metadata.get("finish_reason")),
        track=parse_text(metadata.get("description_type")),
        mode=parse_text(metadata.get("mode")),
        cost_usd=totals.usd if metadata else None,
        known_cost_usd=totals.known_usd,
        time_s=totals.time_s if metadata else None,
        turns=turns,
        tool_calls=tool_calls,
        refusals=refusals,
        message=parse_text(message),
        interruption=parse_text(additional.get("interruption")),
        loadable=_loadable(metadata),
    )


def _loadable(metadata: Mapping[str, Any]) -> bool:
    return (
        metadata.get("finish_reason") in [*FinishReason]
        and _lax_number(metadata.get("cost_usd", _UNKNOWN_COST)) is not None
        and metadata.get("mode") in (None, *MODES)
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


def _parse_time(value: object) -> datetime | None:
    try:
        moment = datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        return None
    return moment.replace(tzinfo=UTC) if moment is not None and moment.tzinfo is None else moment
