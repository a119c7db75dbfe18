"""Collect the results of a run after its last job: products, summary lines, and the comparison of agents."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from anyio import to_thread

from codetaste.benchmark.layout import OUTPUTS_FOLDER
from codetaste.flows.discover import jobs as discover
from codetaste.flows.discover import publish as products
from codetaste.flows.evaluate import jobs as evaluate
from codetaste.flows.evaluate.evaluate_prediction import prediction_folder
from codetaste.flows.evaluate.finish import finish_evaluations, read_comparison_records
from codetaste.flows.infer.execute_step import describe_trial
from codetaste.flows.infer.finish import finish_trials
from codetaste.flows.infer.outputs import output_folder
from codetaste.flows.infer.plan import StepKind
from codetaste.orchestration.job import Status
from codetaste.report.summary import SummaryLine
from codetaste.report.tables.comparison import compare

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from codetaste.flows.agents.context import InferenceContext
    from codetaste.flows.discover.context import DiscoveryContext, DiscoveryModels
    from codetaste.flows.evaluate.context import EvaluationContext
    from codetaste.orchestration.job import Outcome
    from codetaste.orchestration.session import Session
    from codetaste.report.statistics.comparison import Comparison
    from codetaste.run.plan import FlowPlan


@dataclass(frozen=True, slots=True)
class RunContext:
    """Shared context of a run: its folder, its models, and the context of each enabled flow.

    ``config`` is the run's config as JSON, as stored in its folder.
    """

    out: Path
    config: str
    models: DiscoveryModels
    discovery: DiscoveryContext | None = None
    inference: InferenceContext | None = None
    evaluation: EvaluationContext | None = None


async def collect_results(
    agenda: FlowPlan, outcomes: Mapping[str, Outcome], context: RunContext, session: Session
) -> list[SummaryLine]:
    """Write the products; return a summary line for each failed need, pass, trial and evaluation.

    Raises:
        JournalError: a file cannot be read or written, also as StorageFull.
        ExceptionGroup: several such errors; everything that could be written is written.
    """
    lines, blobs = _failed_needs(agenda, outcomes), session.record.blobs
    if context.discovery is not None:
        await products.write_discovered_benchmarks(agenda.passes, outcomes, context.discovery, blobs)
        lines.extend(_pass_lines(agenda, outcomes, context.discovery))
    trials: dict[str, Outcome] = {}
    if context.inference is not None:
        budget = session.budget.child("infer")
        trials = await finish_trials(agenda.steps, outcomes, context.inference, budget, blobs)
    scores: dict[str, Outcome] = {}
    if context.evaluation is not None:
        if not session.scheduler.draining:
            scores = await finish_evaluations(agenda.evaluations, outcomes, trials, context.evaluation, blobs)
        else:
            scores = {each.key: outcomes[each.key] for each in agenda.evaluations}
        await to_thread.run_sync(context.evaluation.remove_scratch)
    return [
        *lines,
        *_trial_lines(agenda, outcomes, trials, scores, context),
        *_score_lines(agenda, scores, context),
    ]


def _pass_lines(
    agenda: FlowPlan, outcomes: Mapping[str, Outcome], around: DiscoveryContext
) -> Iterator[SummaryLine]:
    for each in agenda.passes:
        outcome = outcomes[each.key]
        path = str(products.rules_file(each, around)) if outcome.usable else ""
        yield SummaryLine(outcome, each.title, each.model_id, discover.describe_pass(outcome), path)


def _trial_lines(
    agenda: FlowPlan,
    outcomes: Mapping[str, Outcome],
    trials: Mapping[str, Outcome],
    scores: Mapping[str, Outcome],
    context: RunContext,
) -> Iterator[SummaryLine]:
    values = {each.trial.key: scores[each.key].value for each in agenda.evaluations if each.trial is not None}
    for step in agenda.steps:
        trial = step.trial
        if trial.key not in trials:
            yield SummaryLine(outcomes[step.key], step.title, step.model_id)
        elif step.kind is StepKind.EXECUTE:
            outcome, value = trials[trial.key], values.get(trial.key)
            path = str(output_folder(context.out, trial)) if outcome.usable else ""
            scored = f"; {evaluate.describe_evaluation(value)}" if evaluate.is_expected_score(value) else ""
            yield SummaryLine(
                outcome, trial.title, trial.agent.model, f"{describe_trial(outcome.value)}{scored}", path
            )


def _score_lines(
    agenda: FlowPlan, scores: Mapping[str, Outcome], context: RunContext
) -> Iterator[SummaryLine]:
    for task in agenda.evaluations:
        outcome = scores[task.key]
        path = str(prediction_folder(context.out, task)) if outcome.usable else ""
        # With trials in the run, the line of the trial has the scores already.
        quiet = bool(agenda.steps) and evaluate.is_expected_score(outcome.value)
        yield SummaryLine(
            outcome, task.title, "", evaluate.describe_evaluation(outcome.value), path, hidden=quiet
        )


def _failed_needs(agenda: FlowPlan, outcomes: Mapping[str, Outcome]) -> list[SummaryLine]:
    titles = {each.sources_key: f"sources of {each.instance.id}" for each in agenda.passes}
    for step in agenda.steps:
        titles.setdefault(step.sources_key, f"sources of {step.trial.instance.id}")
        titles.setdefault(step.install_key, f"the program of {step.trial.agent.id}")
    for task in agenda.evaluations:
        titles.setdefault(task.sources_key, f"sources of {task.instance.id}")
    return [
        SummaryLine(outcomes[key], title, "")
        for key, title in titles.items()
        if key in outcomes and not outcomes[key].usable and outcomes[key].status is not Status.SKIPPED
    ]


def product_folders(
    agenda: FlowPlan, outcomes: Mapping[str, Outcome], context: RunContext
) -> dict[str, Path]:
    """Return the folders of the products, by their titles in the summary."""
    named: dict[str, Path] = {}
    if context.discovery is not None:
        for each in agenda.passes:
            if outcomes[each.key].usable:
                named[f"what {each.model_label} found"] = products.discovery_folder(each, context.discovery)
    if context.inference is not None:
        named["what the agents changed"] = context.out / OUTPUTS_FOLDER
    elif context.evaluation is not None:
        named["what was scored"] = context.out / OUTPUTS_FOLDER
    return named


def compare_agents(agenda: FlowPlan, lab: EvaluationContext) -> tuple[Comparison, list[str]]:
    """Compare the agents by the results in the run's folder; also returns notes on irregular results."""
    records, notes = read_comparison_records(
        lab.out, lab.benchmark, agenda.evaluations, pseudo_agents=lab.config.pseudo_agents
    )
    return compare(records.records), notes
