"""The results of a trial's steps, as they are journalled and as ``inference_metadata.json`` repeats them."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any, TypeAlias

from codetaste.benchmark.layout import FinishReason
from codetaste.core.text import plural
from codetaste.core.units import format_size

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Self

    from codetaste.orchestration.journal.journal import Json


def unmetered_usd(runs: Iterable[Mapping[str, Any]]) -> Decimal:
    """Return the sum of the costs that the agents report of runs whose calls codetaste does not serve."""
    return sum((Decimal(run.get("reported_cost_usd", 0)) for run in runs if "cost_usd" not in run), Decimal())


@dataclass(frozen=True, slots=True)
class AgentStep:
    """The execute step, whose only run is ``run``: an agent run's result as JSON data."""

    run: Mapping[str, Any]

    @property
    def runs(self) -> list[Mapping[str, Any]]:
        """The only run."""
        return [self.run]

    def metadata(self) -> dict[str, Any]:
        """Return the run's result."""
        return dict(self.run)


@dataclass(frozen=True, slots=True)
class PlanAttempt:
    """One run of the planning agent: ``run`` is its result as JSON data, ``plans`` the digests of its plans.

    ``problem`` says why it left no usable plan.
    """

    run: Mapping[str, Any]
    plans: tuple[str, ...] = ()
    problem: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return the attempt as JSON data."""
        return {**self.run, "plans": list(self.plans), "problem": self.problem}

    @classmethod
    def from_json(cls, data: Any) -> Self:  # noqa: ANN401 - JSON
        """Read what ``to_json`` returned."""
        run = dict(data)
        plans, problem = run.pop("plans"), run.pop("problem")
        return cls(run, tuple(plans), problem)

    def metadata(self) -> dict[str, Any]:
        """Return the attempt without its plans, which have their own files."""
        return {**self.run, "problem": self.problem}


@dataclass(frozen=True, slots=True)
class PlanResult:
    """The result of the plan step: all its attempts; the plans are those of the last one."""

    finish_reason: FinishReason
    attempts: tuple[PlanAttempt, ...]
    cost_usd: str

    @property
    def plans(self) -> tuple[str, ...]:
        """The digests of the plans; empty where no attempt left usable ones."""
        return self.attempts[-1].plans

    @property
    def problem(self) -> str:
        """Why there is no usable plan."""
        return self.attempts[-1].problem

    @property
    def runs(self) -> list[Mapping[str, Any]]:
        """The results of the agent's runs as JSON data."""
        return [each.run for each in self.attempts]

    @property
    def usd(self) -> Decimal:
        """The cost of all attempts; runs whose calls codetaste does not serve count with what they report."""
        return Decimal(self.cost_usd) + unmetered_usd(self.runs)

    def to_json(self) -> Json:
        """Return the result as JSON data."""
        attempts: list[Json] = [each.to_json() for each in self.attempts]
        return {"finish_reason": self.finish_reason, "attempts": attempts, "cost_usd": self.cost_usd}

    @classmethod
    def from_json(cls, data: Any) -> Self:  # noqa: ANN401 - JSON
        """Read what ``to_json`` returned."""
        attempts = tuple(map(PlanAttempt.from_json, data["attempts"]))
        return cls(FinishReason(data["finish_reason"]), attempts, data["cost_usd"])

    def metadata(self) -> dict[str, Any]:
        """Return what ``inference_metadata.json`` says about the step."""
        return {
            "finish_reason": self.finish_reason,
            "problem": self.problem,
            "attempts": [each.metadata() for each in self.attempts],
            "cost_usd": self.cost_usd,
        }


@dataclass(frozen=True, slots=True)
class JudgeResult:
    """The result of the judge step: the number of the selected plan (from 0), None if none was selected.

    ``answer`` is the digest of the judge's last answer, "" if there is none. It may quote the whole
    description, so it belongs in no prompt and in no sandbox.
    """

    finish_reason: FinishReason
    selected: int | None
    tokens: Mapping[str, int]
    start_time: str
    finish_time: str
    cost_usd: str
    answer: str = ""

    @property
    def usd(self) -> Decimal:
        """The cost of all its calls."""
        return Decimal(self.cost_usd)

    @property
    def runs(self) -> list[Mapping[str, Any]]:
        """The judge's own result, as one run."""
        return [asdict(self)]

    def to_json(self) -> Json:
        """Return the result as JSON data."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Any) -> Self:  # noqa: ANN401 - JSON
        """Read what ``to_json`` returned."""
        return cls(**{**data, "finish_reason": FinishReason(data["finish_reason"])})

    def metadata(self) -> dict[str, Any]:
        """Return what ``inference_metadata.json`` says about the step."""
        return asdict(self)


StepMetadata: TypeAlias = AgentStep | PlanResult | JudgeResult
"""A step's result with what ``inference_metadata.json`` needs: its ``runs`` and its ``metadata()``."""


@dataclass(frozen=True, slots=True)
class ExecuteResult:
    """The result of the execute step: the whole prediction.

    Attributes:
        patch: the digest of the patch.
        plans: the digests of the plans that the trial's earlier steps made.
        metadata: ``inference_metadata.json``.
    """

    patch: str
    plans: tuple[str, ...]
    metadata: Mapping[str, Any]

    def to_json(self) -> Json:
        """Return the result as JSON data."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Any) -> Self:  # noqa: ANN401 - JSON
        """Read what ``to_json`` returned."""
        return cls(data["patch"], tuple(data["plans"]), data["metadata"])

    def describe(self) -> str:
        """Describe the trial's outcome in one line."""
        facts = self.metadata["additional"]
        files = plural(facts["patch_files"], "file")
        size = format_size(facts["patch_bytes"])
        text = f"{facts['turns']} turns, {files} changed, patch of {size}"
        if facts["patch_problem"]:
            text += f"; {facts['patch_problem']}"
        # The line of the job shows any other reason.
        return f"success, {text}" if self.metadata["finish_reason"] == FinishReason.SUCCESS else text
