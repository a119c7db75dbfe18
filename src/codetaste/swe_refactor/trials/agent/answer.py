"""``answer_by_agent``: a coding agent edits the repository, and its patch is the answer (SWE-Refactor §4.4).

The patch is taken however the run ends. If budget or time ended it, that patch is the answer.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from anyio import to_thread

from codetaste.benchmark.layout import FinishReason
from codetaste.errors import BudgetExceeded, CodetasteError, DeadlineExceeded
from codetaste.flows.agents.patch_run import load_partial_patch, store_partial_patch
from codetaste.flows.agents.run import AgentRunSpec
from codetaste.source.origin import GitOrigin
from codetaste.swe_refactor.answers.problem import AnswerProblem
from codetaste.swe_refactor.answers.problem import AnswerProblemKind as Kind
from codetaste.swe_refactor.trials.agent.changes import AgentChanges, read_changes
from codetaste.swe_refactor.trials.agent.project import ProjectAccess
from codetaste.swe_refactor.trials.agent.prompt import render_agent_prompt
from codetaste.swe_refactor.trials.agent.run import RepositoryRun
from codetaste.swe_refactor.trials.answer import TrialAnswer

if TYPE_CHECKING:
    from codetaste.flows.agents.result import AgentRunResult
    from codetaste.harness.patch.extract import ExtractedPatch
    from codetaste.orchestration.job import JobContext
    from codetaste.swe_refactor.trials.context import TrialContext
    from codetaste.swe_refactor.trials.plan import StrategyTrial

_LIMITS = {
    FinishReason.BUDGET_EXCEEDED: (BudgetExceeded, "no money"),
    FinishReason.TIMEOUT: (DeadlineExceeded, "the time limit was reached"),
}


async def answer_by_agent(trial: StrategyTrial, context: TrialContext, job: JobContext) -> TrialAnswer:
    """Run the agent of a trial on its instance, and return its patch as an answer.

    Raises:
        BaseFails: the files before cannot be built.
        SourceError: they cannot be read.
        SandboxError: no sandbox could be opened.
        ModelError: the provider stayed unusable after all retries.
        ToolMissing: the agent cannot be installed on this host.
    """
    began_s = time.monotonic()
    run = await _prepare(trial, context, job)
    try:
        async with run:
            await run.run_agent()
    except BaseException:
        if run.patch is not None:
            with job.cleanup_scope():
                await _keep_patch(run.patch, job)
        raise
    with job.cleanup_scope():
        patch, result = run.patch, run.result
        if result.finish_reason in _LIMITS and not result.turns:
            patch = await load_partial_patch(job) or patch
        assert patch is not None  # noqa: S101 - leaving the block has extracted it
        changes = await read_changes(patch, run.tree.path, context.agents.cache)
        _note_end(result, job)
        return TrialAnswer(
            changes.files,
            changes.problem or _problem(changes, result),
            patch.patch.decode("utf-8", "surrogateescape"),
            result.turns,
            time.monotonic() - began_s,
            _details(result, patch),
        )


async def _prepare(trial: StrategyTrial, context: TrialContext, job: JobContext) -> RepositoryRun:
    instance, source = trial.instance, context.source(trial.instance)
    assert trial.agent is not None  # noqa: S101 - strategies with agents have trials with agents
    access = ProjectAccess(await context.bases.open(instance))
    java_files = await to_thread.run_sync(lambda: () if instance.structure else source.tree.java_files)
    task = await to_thread.run_sync(render_agent_prompt, instance, context.prompts, java_files, access)
    origin = GitOrigin(str(source.repository.git_dir), source.base_commit, instance.commit_id)
    spec = AgentRunSpec(trial.agent, origin, task, trial.model_label)
    return RepositoryRun(spec, context.agents, job, source=source, access=access)


def _note_end(result: AgentRunResult, job: JobContext) -> None:
    if result.finish_reason in _LIMITS:
        kind, what = _LIMITS[result.finish_reason]
        why = f": {result.message}" if kind is BudgetExceeded else ""
        job.end_early(kind(f"{what} after {result.turns} turns{why}"))
    elif result.shortfall is not None:
        job.fall_short(result.shortfall)
    if result.cost_mismatch_note():
        job.note(result.cost_mismatch_note())


def _problem(changes: AgentChanges, result: AgentRunResult) -> AnswerProblem | None:
    """Return why there is no answer; None if there is one."""
    if changes.files:
        return None
    if result.finish_reason == FinishReason.SUCCESS:
        return AnswerProblem(Kind.NO_CHANGE, "The agent changed no file.")
    short, name = result.shortfall, result.finish_reason.value.replace("_", " ")
    why = result.message if short is None else short.text
    ended = f"{name}: {why}" if why else name
    return AnswerProblem(Kind.NO_ANSWER, f"The agent ended before it changed a file ({ended}).")


def _details(result: AgentRunResult, patch: ExtractedPatch) -> dict[str, Any]:
    return {
        "run": result.to_json(),
        "patch": {"files": patch.files, "problem": patch.problem, "notes": list(patch.notes)},
    }


async def _keep_patch(patch: ExtractedPatch, job: JobContext) -> None:
    """Store the patch of an attempt without a result; an error here must not hide the job's own error."""
    try:
        await store_partial_patch(job, patch)
    except CodetasteError as problem:
        job.note(f"the partial patch could not be written: {problem}")
