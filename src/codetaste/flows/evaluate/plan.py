"""The predictions that a config selects for evaluation.

A prediction belongs to a trial or to a pseudo agent (the golden patch, or no patch).
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING

from codetaste.benchmark.layout import GOLDEN, NULL
from codetaste.benchmark.trial_identity import StepKind
from codetaste.evaluation.test_runs.gates import Side
from codetaste.flows.job_keys import baseline_key, image_key, pass_key, sources_key
from codetaste.rules.registration import Direction

if TYPE_CHECKING:
    from collections.abc import Iterable

    from codetaste.benchmark.instance import Instance
    from codetaste.evaluation.config import EvaluateConfig
    from codetaste.flows.infer.plan import Step, Trial


@dataclass(frozen=True, slots=True)
class EvaluationTask:
    """One evaluation job: a prediction at an instance. ``execution`` is its step; None for a pseudo agent."""

    instance: Instance
    agent_id: str
    execution: Step | None = None
    rules_model_id: str | None = None
    """Id of the model that discovers the rules in this run; None for the benchmark's rules."""
    baseline_runs: int = 0
    """Test runs on each of R and R∘X* that PASS is measured with; 0 takes recorded results."""
    refactorings: bool = False
    """Whether its refactorings are compared with the human's."""
    patch: bytes | None = None
    """The patch, if it was given by hand: it belongs to no trial and to no pseudo agent."""

    @property
    def trial(self) -> Trial | None:
        """The evaluated trial; None for a pseudo agent."""
        return None if self.execution is None else self.execution.trial

    @property
    def key(self) -> str:
        """The job's key."""
        trial = self.trial
        return (
            f"evaluate/{self.agent_id}/{self.instance.id}"
            if trial is None
            else f"evaluate/{trial.budget_name}"
        )

    @property
    def title(self) -> str:
        """The job's display name."""
        trial = self.trial
        return (
            f"{self.instance.id} {self.group}"
            if trial is None
            else trial.describe(f"{trial.track.name} scores")
        )

    @property
    def group(self) -> str:
        """The name under which it is counted."""
        trial = self.trial
        return f"scores of {self.agent_id}" if trial is None else trial.group_of(f"{trial.track.name} scores")

    @property
    def sources_key(self) -> str:
        """The key of the job that checks out the instance's trees."""
        return sources_key(self.instance)

    @property
    def pass_keys(self) -> tuple[str, ...]:
        """The keys of the jobs that discover the rules; empty where the benchmark's rules are used."""
        if self.rules_model_id is None:
            return ()
        return tuple(pass_key(self.rules_model_id, self.instance, each) for each in Direction)

    @property
    def needs(self) -> tuple[str, ...]:
        """The keys of the jobs that must have a result first."""
        image = (self.image_key,) if self.baseline_runs else ()
        return (self.sources_key, *self.patch_keys, *self.pass_keys, *image, *self.test_titles)

    @property
    def patch_keys(self) -> tuple[str, ...]:
        """The key of the job that makes the patch; empty for a pseudo agent."""
        return () if self.execution is None else (self.execution.key,)

    @property
    def image_key(self) -> str:
        """The key of the job that makes or finds the instance's runtime image."""
        return image_key(self.instance)

    @property
    def tests_key(self) -> str:
        """The key of the job that runs the tests on the patched code."""
        return f"tests/{self.key.removeprefix('evaluate/')}"

    @property
    def refactorings_key(self) -> str:
        """The key of the job that compares the refactorings."""
        return f"refactorings/{self.key.removeprefix('evaluate/')}"

    @property
    def refactoring_needs(self) -> tuple[str, ...]:
        """The keys of the jobs that this job needs."""
        return (self.sources_key, *self.patch_keys)

    @property
    def test_titles(self) -> dict[str, str]:
        """The titles of the test runs that measure PASS, by key; none if it is of recorded results."""
        own = {self.tests_key: f"{self.title} tests"} if self.baseline_runs else {}
        return own | {each.key: each.title for each in baseline_tasks(self.instance, self.baseline_runs)}


@dataclass(frozen=True, slots=True)
class BaselineTask:
    """One test run, from 1, on R or on R∘X*."""

    instance: Instance
    side: Side
    number: int

    @property
    def key(self) -> str:
        """The job's key."""
        return baseline_key(self.instance, self.side, self.number)

    @property
    def image_key(self) -> str:
        """The key of the job that makes or finds the instance's runtime image."""
        return image_key(self.instance)

    @property
    def title(self) -> str:
        """The job's display name."""
        return f"{self.instance.id} tests on {self.side}, run {self.number}"


def baseline_tasks(instance: Instance, runs: int) -> tuple[BaselineTask, ...]:
    """Return the test runs of the baseline of ``instance``: ``runs`` on each side (CodeTaste §4.1)."""
    return tuple(BaselineTask(instance, side, number) for number in range(1, runs + 1) for side in Side)


def given_prediction(instance: Instance, patch: bytes, baseline_runs: int) -> EvaluationTask:
    """Return the evaluation of a patch that was given by hand; its key has the patch's digest."""
    agent_id = f"patch-{sha256(patch).hexdigest()[:16]}"
    return EvaluationTask(instance, agent_id, baseline_runs=baseline_runs, patch=patch)


def evaluation_tasks(
    config: EvaluateConfig, steps: Iterable[Step], instances: Iterable[Instance]
) -> tuple[EvaluationTask, ...]:
    """List the evaluations; those of pseudo agents come first, since their predictions need no agent run."""
    by, runs = config.discovery_model, config.baseline_runs if config.tests else 0
    pseudo = (
        EvaluationTask(
            instance, agent_id, rules_model_id=by, baseline_runs=runs, refactorings=config.refactorings
        )
        for instance in (instances if config.pseudo_agents else ())
        for agent_id in (GOLDEN, NULL)
    )
    executions = (step for step in steps if step.kind is StepKind.EXECUTE)
    trials = (
        EvaluationTask(step.trial.instance, step.trial.agent.id, step, by, runs, config.refactorings)
        for step in executions
    )
    return (*pseudo, *trials)
