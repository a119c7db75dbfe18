"""One agent run in a fresh sandbox: open, add the task, run the agent, collect its output on every ending."""

from __future__ import annotations

from typing import TYPE_CHECKING

from codetaste.benchmark.layout import DESCRIPTION_FILES, FinishReason, Track
from codetaste.errors import CodetasteError, ModelUnavailable, SandboxError
from codetaste.flows.agents.result import utc_now
from codetaste.flows.agents.runners import runner_for
from codetaste.harness.testbed.testbed import prepare_testbed, testbed_archive
from codetaste.orchestration.retry import mark_given_up
from codetaste.sandbox.base import TASK
from codetaste.sandbox.provider import sandbox_spec
from codetaste.source.checkout import checkout_trees
from codetaste.source.tree.store import Tree

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from codetaste.flows.agents.context import InferenceContext
    from codetaste.flows.agents.result import AgentRunResult
    from codetaste.flows.infer.plan import Step
    from codetaste.harness.testbed.testbed import Testbed
    from codetaste.orchestration.job import JobContext
    from codetaste.sandbox.base import Sandbox

DESCRIPTION_PATH = f"{TASK}/{DESCRIPTION_FILES[Track.INSTRUCTED]}"
"""Path of the task description in the sandbox; the agent's prompt has the same text."""
_LEAST_LIFETIME_S = 6 * 3600.0


async def run_agent_in_sandbox(
    step: Step,
    task: str,
    context: InferenceContext,
    job: JobContext,
    result: AgentRunResult,
    collect: Callable[[Sandbox, Testbed], Awaitable[None]],
    name: str = "",
) -> None:
    """Run the agent of ``step`` on ``task`` in a new sandbox, and ``collect`` its output.

    The sandbox has R and the task, and nothing else of the instance. ``collect`` gets the stopped sandbox on
    every ending: success, time limit, budget, crash, a sandbox that died, cancellation.

    Args:
        step: the step of a trial that is run.
        task: the whole prompt.
        context: the context that all trials share.
        job: the job whose budget and clock limit the run.
        result: filled in while the agent runs.
        collect: takes the output from the sandbox.
        name: distinguishes several attempts of one job; "" where there is one.

    Raises:
        SandboxError: the sandbox could not be opened, or died for a reason that is not the agent's fault.
        ModelError: the provider stayed unusable after all retries.
    """
    trees = await checkout_trees(context.benchmark.origin(step.trial.instance), context.cache)
    testbed = await prepare_testbed(Tree(trees.base, trees.base_digest), context.cache)
    runner = await runner_for(step, context)
    lifetime_s = max(_LEAST_LIFETIME_S, 4 * step.trial.agent.time_limit)
    spec = sandbox_spec(
        context.sandbox_config, job.key, mounts=runner.mounts, egress=runner.egress, lifetime_s=lifetime_s
    )
    collected: list[CodetasteError | None] = []
    async with context.sandboxes.open(spec) as sandbox:
        await sandbox.put(testbed_archive(testbed, {DESCRIPTION_PATH: f"{task}\n".encode()}))
        try:
            with job.budget.deadline() as scope:
                await runner.run(sandbox, task, result, job, name)
            if scope.cancelled_caught:
                result.finish_reason = FinishReason.TIMEOUT
            else:
                collected.append(await _collect(sandbox, testbed, collect, result))
        except SandboxError:
            if sandbox.end is None:
                raise
        finally:
            if not collected:
                with job.cleanup_scope():
                    collected.append(await _collect(sandbox, testbed, collect, result))
    end = sandbox.end
    if (
        end
        and end.reason.caused_by_agent
        and result.finish_reason
        in {
            FinishReason.UNKNOWN,
            FinishReason.EXECUTION_ERROR,
        }
    ):
        result.finish_reason, result.message = FinishReason.EXECUTION_ERROR, f"the sandbox ended: {end}"
    if not collected:
        raise SandboxError("the agent's output could not be collected from its sandbox in time")
    if collected[0] is not None:
        raise collected[0]
    if end and not end.reason.caused_by_agent:
        raise SandboxError(f"the sandbox ended: {end}")
    # A CLI agent may report success although no model call was answered.
    worked = result.finish_reason in {FinishReason.BUDGET_EXCEEDED, FinishReason.TIMEOUT} or (
        result.finish_reason == FinishReason.SUCCESS and result.turns
    )
    if result.provider_error and not worked:
        raise mark_given_up(ModelUnavailable(result.provider_error))


async def _collect(
    sandbox: Sandbox,
    testbed: Testbed,
    collect: Callable[[Sandbox, Testbed], Awaitable[None]],
    result: AgentRunResult,
) -> CodetasteError | None:
    """Stop the sandbox and collect the output; return an error, which must not hide why the run ended."""
    result.finished_at = result.finished_at or utc_now()
    try:
        await sandbox.stop()
        await collect(sandbox, testbed)
    except CodetasteError as error:
        return error
    return None
