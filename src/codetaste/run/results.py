"""Collect the results of a run after its last job: products, summary lines, and the comparison of agents."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from anyio import to_thread

from codetaste.benchmark.layout import OUTPUTS_FOLDER
from codetaste.benchmark.trial_identity import StepKind
from codetaste.case_study.publish import StudyResult, restore_study, study_folder
from codetaste.flows.describe.publish import published_path, write_described_benchmark
from codetaste.flows.describe.result import DescriptionResult
from codetaste.flows.discover.publish import discovery_folder, rules_file, write_discovered_benchmarks
from codetaste.flows.discover.result import DiscoveryResult
from codetaste.flows.environment.publish import (
    ENVIRONMENTS_FOLDER,
    environments_root,
    publish_environment,
)
from codetaste.flows.environment.result import EnvironmentResult
from codetaste.flows.evaluate.finish import (
    finish_evaluations,
    read_comparison_records,
    write_measured_baselines,
)
from codetaste.flows.evaluate.predictions import prediction_folder
from codetaste.flows.evaluate.refactoring_jobs import describe_refactorings, write_compared_refactorings
from codetaste.flows.evaluate.result import EvaluationResult
from codetaste.flows.infer.finish import finish_trials
from codetaste.flows.infer.outputs import output_folder
from codetaste.flows.infer.results import ExecuteResult
from codetaste.orchestration.job import Status
from codetaste.orchestration.journal.results import result_from_json
from codetaste.report.summary import SummaryLine
from codetaste.report.tables.comparison import compare
from codetaste.swe_refactor.trials.results import describe_score

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from codetaste.case_study.jobs import StudyContext
    from codetaste.flows.context import ModelSet
    from codetaste.flows.describe.context import DescriptionContext
    from codetaste.flows.discover.context import DiscoveryContext
    from codetaste.flows.environment.context import EnvironmentContext
    from codetaste.flows.evaluate.context import EvaluationContext
    from codetaste.flows.evaluate.refactoring_jobs import RefactoringContext
    from codetaste.flows.infer.context import InferenceContext
    from codetaste.orchestration.job import Outcome
    from codetaste.orchestration.journal.blobs import Blobs
    from codetaste.orchestration.session import Session
    from codetaste.report.live.progress import RunProgress
    from codetaste.report.statistics.comparison import Comparison
    from codetaste.run.flow_plan import FlowPlan
    from codetaste.swe_refactor.trials.context import TrialContext


@dataclass(frozen=True, slots=True)
class RunContext:
    """The open parts of a run: session, progress, models, and the context of each flow in its plan.

    A flow that is not in the plan has no context.
    """

    out: Path
    plan: FlowPlan
    session: Session
    progress: RunProgress
    models: ModelSet
    descriptions: DescriptionContext | None
    discovery: DiscoveryContext | None
    environments: EnvironmentContext | None
    inference: InferenceContext | None
    evaluation: EvaluationContext | None
    refactorings: RefactoringContext | None
    strategies: TrialContext | None
    studies: StudyContext | None


async def collect_results(context: RunContext, outcomes: Mapping[str, Outcome]) -> list[SummaryLine]:
    """Complete the products; return a summary line for each failed need and for each result.

    Raises:
        JournalError: a file cannot be read or written, also as StorageFull.
        ExceptionGroup: several such errors; everything that could be written is written.
    """
    plan, session = context.plan, context.session
    lines, blobs = _failed_needs(plan, outcomes), session.record.blobs
    if context.descriptions is not None:
        await write_described_benchmark(plan.descriptions, outcomes, context.descriptions, blobs)
        lines.extend(_description_lines(plan, outcomes, context.descriptions))
    if context.discovery is not None:
        await write_discovered_benchmarks(plan.passes, outcomes, context.discovery, blobs)
        for each in plan.passes:
            outcome = outcomes[each.key]
            path = str(rules_file(each, context.discovery)) if outcome.usable else ""
            text = result_from_json(DiscoveryResult, outcome.value).describe() if outcome.usable else ""
            lines.append(SummaryLine(outcome, each.title, each.model_id, text, path))
    if context.environments is not None:
        lines.extend(await _environment_lines(context, outcomes))
    trials: dict[str, Outcome] = {}
    if context.inference is not None:
        budget = session.budget.child("infer")
        trials = await finish_trials(plan.steps, outcomes, context.inference, budget, blobs)
    scores: dict[str, Outcome] = {}
    if context.evaluation is not None:
        scores = {each.key: outcomes[each.key] for each in plan.evaluations}
        if not session.scheduler.draining:
            scores = await finish_evaluations(plan.evaluations, outcomes, trials, context.evaluation, blobs)
        await write_measured_baselines(plan.tested, outcomes, context.out / ENVIRONMENTS_FOLDER, blobs)
        await write_compared_refactorings(plan.refactored, outcomes, context.evaluation, blobs)
        await to_thread.run_sync(context.evaluation.remove_scratch)
    results = {
        key: result_from_json(EvaluationResult, outcome.value)
        for key, outcome in scores.items()
        if outcome.value is not None
    }
    evaluated = {
        each.trial.key: results[each.key]
        for each in plan.evaluations
        if each.trial is not None and each.key in results
    }
    lines.extend(_trial_lines(context, outcomes, trials, evaluated))
    for task in plan.evaluations:
        outcome, result = scores[task.key], results.get(task.key)
        path = str(prediction_folder(context.out, task)) if outcome.usable else ""
        # With trials in the run, the line of the trial has the scores already.
        hidden = bool(plan.steps) and result is not None and result.is_expected_score
        lines.append(
            SummaryLine(outcome, task.title, "", result.summary if result else "", path, hidden=hidden)
        )
    lines.extend(_refactoring_lines(plan, outcomes))
    if context.strategies is not None:
        lines.extend(_strategy_lines(plan, outcomes))
    lines.extend(await _study_lines(plan, outcomes, blobs))
    return lines


async def _study_lines(plan: FlowPlan, outcomes: Mapping[str, Outcome], blobs: Blobs) -> list[SummaryLine]:
    """File the studies that are no longer where they belong, and return a line for each study."""
    lines = []
    for task in plan.studies:
        outcome, text, path = outcomes[task.key], "", ""
        if outcome.usable:
            result = result_from_json(StudyResult, outcome.value)
            text = result.describe()
            path = str(await restore_study(task, result, blobs.load) or "")
        lines.append(SummaryLine(outcome, task.title, task.agent.model, text, path))
    return lines


def _refactoring_lines(plan: FlowPlan, outcomes: Mapping[str, Outcome]) -> Iterator[SummaryLine]:
    for task in plan.refactored:
        outcome = outcomes[task.refactorings_key]
        yield SummaryLine(outcome, f"{task.title} refactorings", "", describe_refactorings(outcome))


def _strategy_lines(plan: FlowPlan, outcomes: Mapping[str, Outcome]) -> Iterator[SummaryLine]:
    for trial in plan.strategy_trials:
        answer, score = outcomes[trial.answer_key], outcomes.get(trial.score_key)
        yield SummaryLine(answer, trial.title, trial.model_id, describe_score(score))
        if score is not None:
            yield SummaryLine(score, f"{trial.title}: score", "", hidden=True)


def _description_lines(
    plan: FlowPlan, outcomes: Mapping[str, Outcome], descriptions: DescriptionContext
) -> Iterator[SummaryLine]:
    for task in plan.descriptions:
        outcome = outcomes[task.key]
        text = result_from_json(DescriptionResult, outcome.value).describe() if outcome.usable else ""
        path = str(published_path(task, descriptions)) if outcome.usable else ""
        yield SummaryLine(outcome, task.title, task.model_id, text, path)


async def _environment_lines(context: RunContext, outcomes: Mapping[str, Outcome]) -> list[SummaryLine]:
    """Write the proven environments, and return a line for each environment of this run."""
    lines, load_text = list[SummaryLine](), context.session.record.blobs.load
    assert context.environments is not None  # noqa: S101 - the caller checked it
    for task in context.plan.environments:
        if not task.proves:
            continue
        outcome, image = outcomes[task.key], outcomes.get(task.image_key)
        result = EnvironmentResult.from_json(outcome.value) if outcome.usable else None
        runtime = None if image is None else image.value
        path = await publish_environment(task, result, runtime, context.environments, load_text)
        text = "" if result is None else result.describe()
        lines.append(SummaryLine(outcome, task.title, task.model_id, text, str(path) if path else ""))
    return lines


def _trial_lines(
    context: RunContext,
    outcomes: Mapping[str, Outcome],
    trials: Mapping[str, Outcome],
    evaluated: Mapping[str, EvaluationResult],
) -> Iterator[SummaryLine]:
    for step in context.plan.steps:
        trial = step.trial
        if trial.key not in trials:
            yield SummaryLine(outcomes[step.key], step.title, step.model_id)
        elif step.kind is StepKind.EXECUTE:
            outcome, scores = trials[trial.key], evaluated.get(trial.key)
            path = str(output_folder(context.out, trial)) if outcome.usable else ""
            text = ExecuteResult.from_json(outcome.value).describe() if outcome.value is not None else ""
            if scores is not None and scores.is_expected_score:
                text += f"; {scores.summary}"
            yield SummaryLine(outcome, trial.title, trial.agent.model, text, path)


def _failed_needs(plan: FlowPlan, outcomes: Mapping[str, Outcome]) -> list[SummaryLine]:
    titles = {each.sources_key: f"sources of {each.instance.id}" for each in plan.passes}
    titles |= {each.sources_key: f"sources of {each.instance.id}" for each in plan.descriptions}
    for step in plan.steps:
        titles.setdefault(step.sources_key, f"sources of {step.trial.instance.id}")
        titles.setdefault(step.install_key, f"the program of {step.trial.agent.id}")
    for task in plan.evaluations:
        titles.setdefault(task.sources_key, f"sources of {task.instance.id}")
    titles |= {each.image_key: f"{each.instance.id} image" for each in plan.environments}
    for task in plan.tested:
        titles |= task.test_titles
    # What examples need is known only once their corpus was read.
    titles |= {key: key for key in outcomes if plan.strategy_trials and key.startswith("examples/")}
    for study in plan.studies:
        titles.setdefault(study.sources_key, f"sources of {study.subject.id}")
        titles.setdefault(study.install_key, f"the program of {study.agent.id}")
    for trial in plan.strategy_trials:
        titles.setdefault(trial.base_key, f"the files before {trial.instance.commit_id[:12]}")
        titles.setdefault(trial.install_key, f"the program of {trial.system}")
    ended = [(outcomes[key], title) for key, title in titles.items() if key in outcomes]
    lines = [SummaryLine(each, title, "") for each, title in ended if each.status is not Status.SKIPPED]
    return [line for line in lines if not line.ending.well]


def product_folders(context: RunContext, outcomes: Mapping[str, Outcome]) -> dict[str, Path]:
    """Return the folders of the products, by their titles in the summary."""
    named: dict[str, Path] = {}
    if context.descriptions is not None and any(
        outcomes[each.key].usable for each in context.plan.descriptions
    ):
        named["descriptions"] = context.descriptions.folder
    if context.discovery is not None:
        for each in context.plan.passes:
            if outcomes[each.key].usable:
                named[f"rules discovered by {each.model_label}"] = discovery_folder(each, context.discovery)
    if context.environments is not None and any(
        outcomes[each.key].usable for each in context.plan.environments if each.proves
    ):
        named["environments"] = environments_root(context.environments)
    if context.inference is not None:
        named["predictions"] = context.out / OUTPUTS_FOLDER
    elif context.evaluation is not None:
        named["scored predictions"] = context.out / OUTPUTS_FOLDER
    for study in context.plan.studies:
        if outcomes[study.key].usable:
            folder = study_folder(study)
            named[folder.name] = folder
    return named


def compare_agents(plan: FlowPlan, context: EvaluationContext) -> tuple[Comparison, list[str]]:
    """Compare the agents by the results in the run's folder; also returns notes on irregular results."""
    records, notes = read_comparison_records(
        context.out, context.benchmark, plan.evaluations, pseudo_agents=context.config.pseudo_agents
    )
    return compare(records.records), notes
