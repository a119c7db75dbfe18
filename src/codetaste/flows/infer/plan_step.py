"""The plan step of a trial: an agent writes one plan or five, in up to three attempts (CodeTaste §3.5).

Each attempt runs in a fresh sandbox. An attempt without usable plans is followed by another one while the
trial's budget and the step's time last. After the last failed attempt the trial's outcome is
``error_planmode`` or ``error_multiplan``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from codetaste.benchmark.layout import FinishReason, Mode
from codetaste.core.units import format_exact_usd
from codetaste.errors import BudgetExceeded, DeadlineExceeded
from codetaste.flows.agents.run import AgentRun, AgentRunSpec
from codetaste.flows.describe.result import take_descriptions
from codetaste.flows.infer.candidate_plans import AgentPlans, read_plans
from codetaste.flows.infer.environment import environment_of
from codetaste.flows.infer.plan import PLAN_COUNT
from codetaste.flows.infer.results import PlanAttempt, PlanResult
from codetaste.orchestration.shortfall import Shortfall

if TYPE_CHECKING:
    from codetaste.flows.agents.result import AgentRunResult
    from codetaste.flows.infer.context import InferenceContext
    from codetaste.flows.infer.plan import Step
    from codetaste.orchestration.job import JobContext
    from codetaste.orchestration.journal.journal import Json

PLAN_ERRORS = {Mode.PLAN: FinishReason.ERROR_PLANMODE, Mode.MULTIPLAN: FinishReason.ERROR_MULTIPLAN}


def planning_prompt(step: Step, context: InferenceContext) -> str:
    """Return the planning agent's prompt, which has only its track's description of the task."""
    task = context.benchmark.description(step.trial.instance, step.trial.track.track)
    if step.trial.track.mode is Mode.PLAN:
        return context.prompts.load("plan").render(task=task)
    return context.prompts.load("multiplan").render(task=task, plans=PLAN_COUNT)


@dataclass(slots=True)
class PlanRun(AgentRun):
    """An agent run whose output are the plans for ``mode``."""

    mode: Mode = field(kw_only=True)
    plans: AgentPlans = field(default_factory=lambda: AgentPlans(problem="no plan was written"), init=False)

    async def extract(self) -> None:
        """Read the plans."""
        self.plans = await read_plans(self.sandbox, self.mode, self.token)


async def plan(step: Step, context: InferenceContext, job: JobContext) -> Json:
    """Run the planning agent and return the job's value: the finish reason and the digests of the plans.

    Raises:
        SandboxError: no sandbox could be opened.
        ModelError: the provider stayed unusable after all retries.
    """
    await take_descriptions(step.trial.instance, context.benchmark, job)
    trial, track = step.trial, step.trial.track
    origin, task = context.benchmark.origin(trial.instance), planning_prompt(step, context)
    attempts: list[PlanAttempt] = []
    reason, early_end = PLAN_ERRORS[track.mode], None
    for number in range(1, track.plan_attempts + 1):
        name, early_end = f"plan-attempt-{number}", None
        if job.is_recorded(name):
            attempt = PlanAttempt.from_json(job.recorded(name))
        else:
            spec = AgentRunSpec(
                trial.agent,
                origin,
                task,
                step.lane,
                name,
                track.track,
                track.mode,
                environment=environment_of(trial, job),
            )
            run = PlanRun(spec, context.agents, job, mode=track.mode)
            async with run:
                await run.run_agent()
            if run.result.cost_mismatch_note():
                job.note(run.result.cost_mismatch_note())
            digests = tuple([await job.store_text(text) for text in run.plans.texts])
            problem, shortfall = run.plans.problem, run.result.shortfall
            if problem and shortfall is not None and shortfall.text:
                problem = f"{problem}; the agent: {shortfall.text}"
            attempt = PlanAttempt(run.result.to_json(), digests, problem)
            early_end = None if digests else _early_end(run.result, track.mode, job)
            # An attempt that ended early is not recorded: under a higher limit it continues or is repeated.
            if not early_end:
                await job.record(name, attempt.to_json())
        attempts.append(attempt)
        if early_end or attempt.plans:
            reason = early_end or FinishReason.SUCCESS
            break
        job.note(f"attempt {number} of {track.plan_attempts} left no usable plan: {attempt.problem}")
    if not attempts[-1].plans and not early_end:
        job.fall_short(Shortfall(reason.value, attempts[-1].problem))
    cost_usd = format_exact_usd(job.budget.snapshot().spent.usd)
    return PlanResult(reason, tuple(attempts), cost_usd).to_json()


def _early_end(result: AgentRunResult, mode: Mode, job: JobContext) -> FinishReason | None:
    """Return the finish reason of a trial that ended early by its budget or a time limit; None if none did.

    The step's own limit of time counts as a failure of planning; that of the trial or run is a timeout.
    """
    if result.finish_reason == FinishReason.BUDGET_EXCEEDED:
        job.end_early(BudgetExceeded(f"no money after {result.turns} turns of planning: {result.message}"))
        return FinishReason.BUDGET_EXCEEDED
    if result.finish_reason == FinishReason.TIMEOUT:
        job.end_early(DeadlineExceeded(f"the time limit was reached in planning after {result.turns} turns"))
        return FinishReason.TIMEOUT if job.budget.chain[-2].clock.time_left_s() <= 0 else PLAN_ERRORS[mode]
    return None
