"""The plan step of a trial: an agent writes one plan or five, in up to three attempts (CodeTaste §3.5).

Each attempt runs in a fresh sandbox. An attempt without usable plans is followed by another one while the
trial's budget and the step's time last. After the last failed attempt the trial's outcome is
``error_planmode`` or ``error_multiplan``.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from codetaste.benchmark.layout import FinishReason, Track
from codetaste.core.units import format_exact_usd
from codetaste.errors import BudgetExceeded, DeadlineExceeded
from codetaste.flows.agents.result import AgentRunResult
from codetaste.flows.agents.run import run_agent_in_sandbox
from codetaste.flows.infer.plan import PLAN_COUNT
from codetaste.flows.infer.plan_files import AgentPlans, read_plans
from codetaste.llm.prompts import load_prompt

if TYPE_CHECKING:
    from codetaste.flows.agents.context import InferenceContext
    from codetaste.flows.infer.plan import Step
    from codetaste.harness.testbed.testbed import Testbed
    from codetaste.orchestration.job import JobContext
    from codetaste.orchestration.journal.journal import Json
    from codetaste.sandbox.base import Sandbox

PLAN_ERRORS = {"plan": FinishReason.ERROR_PLANMODE, "multiplan": FinishReason.ERROR_MULTIPLAN}


def planning_prompt(step: Step, context: InferenceContext) -> str:
    """Return the planning agent's prompt, which has only the open-track description of the task."""
    area = context.benchmark.description(step.trial.instance, Track.OPEN)
    if step.trial.track.mode == "plan":
        return load_prompt("plan").render(task=area)
    return load_prompt("multiplan").render(task=area, plans=PLAN_COUNT)


async def plan(step: Step, context: InferenceContext, job: JobContext) -> Json:
    """Run the planning agent and return the job's value: the finish reason and the digests of the plans.

    Raises:
        SandboxError: no sandbox could be opened.
        ModelError: the provider stayed unusable after all retries.
    """
    track = step.trial.track
    task = planning_prompt(step, context)
    attempts: list[Any] = []
    for number in range(1, track.plan_attempts + 1):
        name = f"go-{number}"
        record, early_end = None, ""
        if not job.is_recorded(name):
            result, plans = await _attempt(step, task, context, job, name)
            record = await _attempt_record(result, plans, job)
            early_end = "" if plans.texts else _early_end(result, track.mode, job)
        # An attempt that ended early is not recorded: under a higher limit it continues or is repeated.
        attempts.append(record if early_end else await job.effect(name, partial(_same, record)))
        if early_end or attempts[-1]["plans"]:
            return _value(early_end or FinishReason.SUCCESS, attempts, job)
        problem = attempts[-1]["problem"]
        job.note(f"attempt {number} of {track.plan_attempts} left no usable plan: {problem}")
    return _value(PLAN_ERRORS[track.mode], attempts, job)


async def _attempt(
    step: Step, task: str, context: InferenceContext, job: JobContext, name: str
) -> tuple[AgentRunResult, AgentPlans]:
    result, plans = AgentRunResult(), AgentPlans(problem="no plan was written")

    async def collect(sandbox: Sandbox, _testbed: Testbed) -> None:
        nonlocal plans
        plans = await read_plans(sandbox, step.trial.track.mode)

    await run_agent_in_sandbox(step, task, context, job, result, collect, name)
    if result.cost_mismatch_note():
        job.note(result.cost_mismatch_note())
    return result, plans


def _early_end(result: AgentRunResult, mode: str, job: JobContext) -> str:
    """Return the finish reason of a trial that ended early by its budget or a time limit; "" if none did.

    The step's own time limit counts as a failure of planning; the time limit of the trial or run is a
    timeout.
    """
    if result.finish_reason == FinishReason.BUDGET_EXCEEDED:
        job.end_early(BudgetExceeded(f"the budget was used up by planning after {result.turns} turns"))
        return FinishReason.BUDGET_EXCEEDED
    if result.finish_reason == FinishReason.TIMEOUT:
        job.end_early(DeadlineExceeded(f"the time limit was reached in planning after {result.turns} turns"))
        return FinishReason.TIMEOUT if job.budget.chain[-2].clock.time_left_s() <= 0 else PLAN_ERRORS[mode]
    return ""


async def _attempt_record(result: AgentRunResult, plans: AgentPlans, job: JobContext) -> Json:
    digests = [await job.store_text(text) for text in plans.texts]
    return {**result.to_json(), "plans": digests, "problem": plans.problem}


async def _same(value: Json) -> Json:
    return value


def _value(reason: str, attempts: list[Any], job: JobContext) -> Json:
    return {
        "finish_reason": reason,
        "plans": attempts[-1]["plans"],
        "problem": attempts[-1]["problem"],
        "goes": attempts,
        "cost_usd": format_exact_usd(job.budget.snapshot().spent.usd),
    }
