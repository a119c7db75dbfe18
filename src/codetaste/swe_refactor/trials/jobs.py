"""The jobs of trials: the build of the files before, the answer, which is paid, and its score.

Nothing is paid for an instance whose files before cannot be built here: it could not be scored.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from anyio import to_thread

from codetaste.core.hashing import json_digest
from codetaste.errors import SourceError
from codetaste.flows.agents.install import INSTALL, install_handler, install_job
from codetaste.flows.inputs import digest_of_inputs, digests_of_inputs
from codetaste.orchestration.job import Job
from codetaste.orchestration.retry import mark_given_up
from codetaste.swe_refactor.config import StrategyKind
from codetaste.swe_refactor.examples.jobs import example_handlers, example_jobs
from codetaste.swe_refactor.score.base_build import BaseFails
from codetaste.swe_refactor.trials.agent.answer import answer_by_agent
from codetaste.swe_refactor.trials.agent.prompt import render_agent_prompt
from codetaste.swe_refactor.trials.answer import TrialAnswer
from codetaste.swe_refactor.trials.conversation import answer_prompt, first_request
from codetaste.swe_refactor.trials.inputs import trial_inputs
from codetaste.swe_refactor.trials.pair.pair import answer_by_pair
from codetaste.swe_refactor.trials.score_answer import score_answer

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from codetaste.llm.messages import Request
    from codetaste.orchestration.budget.cost import BudgetPath
    from codetaste.orchestration.job import Handler, JobContext
    from codetaste.orchestration.journal.journal import Json
    from codetaste.swe_refactor.dataset.instance import RefactoringInstance
    from codetaste.swe_refactor.trials.context import TrialContext
    from codetaste.swe_refactor.trials.plan import StrategyTrial

BASE, ANSWER, SCORE = "swe_refactor.base", "swe_refactor.answer", "swe_refactor.score"
"""The kinds of the jobs."""
_VERSION = 1
"""Increment it when a change makes other scores of the same files."""
_ANSWERS = {
    StrategyKind.SIMPLE: answer_prompt,
    StrategyKind.RAG: answer_prompt,
    StrategyKind.MULTI_AGENT: answer_by_pair,
    StrategyKind.AGENT: answer_by_agent,
}


async def trial_jobs(trials: Sequence[StrategyTrial], context: TrialContext, budget: BudgetPath) -> list[Job]:
    """Return the jobs of the trials under ``budget``, each that several need once.

    Raises:
        ConfigError: a prompt of the user's own is not valid.
    """
    made = {job.key: job for job in await to_thread.run_sync(_jobs, trials, context, budget)}
    for finder in context.finders.values():
        for job in await example_jobs(finder, budget):
            made.setdefault(job.key, job)
    return list(made.values())


def _jobs(trials: Iterable[StrategyTrial], context: TrialContext, budget: BudgetPath) -> list[Job]:
    made: dict[str, Job] = {}
    for trial in trials:
        made.setdefault(trial.base_key, _base_job(trial, context, budget))
        if trial.agent is not None and trial.install_key not in made:
            install = install_job(trial.install_key, trial.agent.id, context.agents, budget)
            made |= {install.key: install} if install else {}
        made[trial.answer_key] = _answer_job(trial, context, budget)
        made[trial.score_key] = _score_job(trial, context, budget)
    return list(made.values())


def trial_handlers(context: TrialContext) -> dict[str, Handler]:
    """Return what runs the jobs of ``trial_jobs``, by kind."""
    of_examples = {
        kind: handler
        for finder in context.finders.values()
        for kind, handler in example_handlers(finder).items()
    }
    return {
        **of_examples,
        BASE: lambda job, _run: _build(job.parameters, context),
        INSTALL: install_handler(context.agents),
        ANSWER: lambda job, run: _answer(job.parameters, context, run),
        SCORE: lambda job, run: _score(job.parameters, context, run),
    }


def _base_job(trial: StrategyTrial, context: TrialContext, budget: BudgetPath) -> Job:
    source = context.source(trial.instance)
    return Job(
        trial.base_key,
        BASE,
        budget,
        fingerprint=json_digest([_VERSION, source.base_commit, _java_settings(context)]),
        parameters=trial.instance,
        resources=_build_resources(context),
        title=f"{source.project} {source.base_commit[:12]}: the files before",
        group="projects built",
        costs_nothing=True,
        prerequisite_only=True,
    )


def _java_settings(context: TrialContext) -> Any:  # noqa: ANN401 - JSON
    """Return what decides builds and checks: all settings but those of speed."""
    settings: Any = json.loads(context.config.java.model_dump_json(exclude={"jdt_time_limit", "jdt_memory"}))
    settings["refactoring_miner"] = json.loads(
        context.config.java.refactoring_miner.model_dump_json(exclude={"workers", "jdk"})
    )
    return settings


def _build_resources(context: TrialContext) -> dict[str, float]:
    return {"cpu": 1, "sandbox": 1, "memory": context.sandbox_memory}


def _answer_job(trial: StrategyTrial, context: TrialContext, budget: BudgetPath) -> Job:
    agents = context.agents
    inputs = trial_inputs(trial, context.input_source, agents.sandbox_config, context.adapters)
    finder = context.finders.get(trial.strategy.title)
    examples = () if finder is None else finder.needs(trial.instance)
    request: Request | None
    handler_limits: Mapping[str, int] = {}
    if trial.agent is None:
        request = first_request(trial, context)
    else:
        runner = agents.runners[trial.agent.id]
        request = runner.first_request(render_agent_prompt(trial.instance, context.prompts))
        handler_limits = runner.limits
    in_sandbox = trial.strategy.kind in {StrategyKind.AGENT, StrategyKind.MULTI_AGENT}
    return Job(
        trial.answer_key,
        ANSWER,
        budget,
        fingerprint=digest_of_inputs(inputs),
        inputs=digests_of_inputs(inputs),
        parameters=trial,
        needs=tuple(filter(None, (trial.base_key, trial.install_key, *examples))),
        resources={"sandbox": 1} if in_sandbox else {},
        lane=trial.model_label,
        title=trial.title,
        group=f"answers of {trial.group}",
        min_cost=None if request is None else context.models.models[trial.model_id].min_cost(request),
        limits=trial.limits,
        handler_limits=handler_limits,
    )


def _score_job(trial: StrategyTrial, context: TrialContext, budget: BudgetPath) -> Job:
    return Job(
        trial.score_key,
        SCORE,
        budget,
        fingerprint=json_digest([_VERSION, trial.digest, _java_settings(context)]),
        parameters=trial,
        needs=(trial.answer_key, trial.base_key),
        resources=_build_resources(context),
        title=f"{trial.title}: score",
        group=f"scores of {trial.group}",
        costs_nothing=True,
    )


async def _build(instance: RefactoringInstance, context: TrialContext) -> Json:
    try:
        base = await context.bases.open(instance)
    except BaseFails as error:
        raise mark_given_up(SourceError(f"the files before cannot be built: {error}")) from error
    return {"jdk": base.jdk, "failing_tests": [*sorted(base.failures)]}


async def _answer(trial: StrategyTrial, context: TrialContext, run: JobContext) -> Json:
    answer: TrialAnswer = await _ANSWERS[trial.strategy.kind](trial, context, run)
    return await answer.store(run)


async def _score(trial: StrategyTrial, context: TrialContext, run: JobContext) -> Json:
    answer = await TrialAnswer.load(run.needs[trial.answer_key], run.load_text)
    score = await score_answer(answer, trial.instance, context)
    return score.to_json()
