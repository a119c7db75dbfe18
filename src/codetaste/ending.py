"""Collect the results of a run after its last job: products, summary lines, and the comparison of agents."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from anyio import to_thread

from codetaste.flows import discover, evaluate, products
from codetaste.flows.comparables import comparables
from codetaste.flows.conclusion import conclude
from codetaste.flows.execution import found
from codetaste.flows.outputs import output_folder, outputs_root
from codetaste.flows.score_conclusion import conclude_scores
from codetaste.flows.scored import scored_folder
from codetaste.flows.trials import StepKind
from codetaste.orchestration.job import Status
from codetaste.report.comparison import compare
from codetaste.report.summary import Line

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from codetaste.flows.agenda import Agenda
    from codetaste.flows.discover import Crew, Surroundings
    from codetaste.flows.laboratory import Laboratory
    from codetaste.flows.site import Site
    from codetaste.orchestration.job import Outcome
    from codetaste.orchestration.session import Session
    from codetaste.report.comparison import Comparison


@dataclass(frozen=True, slots=True)
class Ground:
    """Shared context of a run: its folder, its models, and the context of each enabled flow.

    ``config`` is the run's config as JSON, as stored in its folder.
    """

    out: Path
    config: str
    crew: Crew
    around: Surroundings | None = None
    site: Site | None = None
    lab: Laboratory | None = None


async def concluded(
    agenda: Agenda, outcomes: Mapping[str, Outcome], context: Ground, session: Session
) -> list[Line]:
    """Write the products; return a summary line for each failed need, pass, trial and evaluation.

    Raises:
        JournalError: a file cannot be read or written, also as StorageFull.
        ExceptionGroup: several such errors; everything that could be written is written.
    """
    lines, blobs = _failed_needs(agenda, outcomes), session.record.blobs
    if context.around is not None:
        await products.write_products(agenda.passes, outcomes, context.around, blobs)
        lines.extend(_pass_lines(agenda, outcomes, context.around))
    trials: dict[str, Outcome] = {}
    if context.site is not None:
        budget = session.budget.child("infer")
        trials = await conclude(agenda.steps, outcomes, context.site, budget, blobs)
    scores: dict[str, Outcome] = {}
    if context.lab is not None:
        if not session.scheduler.draining:
            scores = await conclude_scores(agenda.scorings, outcomes, trials, context.lab, blobs)
        else:
            scores = {each.key: outcomes[each.key] for each in agenda.scorings}
        await to_thread.run_sync(context.lab.sweep)
    return [
        *lines,
        *_trial_lines(agenda, outcomes, trials, scores, context),
        *_score_lines(agenda, scores, context),
    ]


def _pass_lines(agenda: Agenda, outcomes: Mapping[str, Outcome], around: Surroundings) -> Iterator[Line]:
    for each in agenda.passes:
        outcome = outcomes[each.key]
        path = str(products.rules_file(each, around)) if outcome.usable else ""
        yield Line(outcome, each.title, each.model_id, discover.found(outcome), path)


def _trial_lines(
    agenda: Agenda,
    outcomes: Mapping[str, Outcome],
    trials: Mapping[str, Outcome],
    scores: Mapping[str, Outcome],
    context: Ground,
) -> Iterator[Line]:
    values = {each.trial.key: scores[each.key].value for each in agenda.scorings if each.trial is not None}
    for step in agenda.steps:
        trial = step.trial
        if trial.key not in trials:
            yield Line(outcomes[step.key], step.title, step.model_id)
        elif step.kind is StepKind.EXECUTE:
            outcome, value = trials[trial.key], values.get(trial.key)
            path = str(output_folder(context.out, trial)) if outcome.usable else ""
            scored = f"; {evaluate.found(value)}" if evaluate.routine(value) else ""
            yield Line(outcome, trial.title, trial.agent.model, f"{found(outcome.value)}{scored}", path)


def _score_lines(agenda: Agenda, scores: Mapping[str, Outcome], context: Ground) -> Iterator[Line]:
    for task in agenda.scorings:
        outcome = scores[task.key]
        path = str(scored_folder(context.out, task)) if outcome.usable else ""
        # With trials in the run, the line of the trial has the scores already.
        quiet = bool(agenda.steps) and evaluate.routine(outcome.value)
        yield Line(outcome, task.title, "", evaluate.found(outcome.value), path, quiet=quiet)


def _failed_needs(agenda: Agenda, outcomes: Mapping[str, Outcome]) -> list[Line]:
    titles = {each.sources: f"sources of {each.instance.id}" for each in agenda.passes}
    for step in agenda.steps:
        titles.setdefault(step.sources, f"sources of {step.trial.instance.id}")
        titles.setdefault(step.install, f"the program of {step.trial.agent.id}")
    for task in agenda.scorings:
        titles.setdefault(task.sources, f"sources of {task.instance.id}")
    return [
        Line(outcomes[key], title, "")
        for key, title in titles.items()
        if key in outcomes and not outcomes[key].usable and outcomes[key].status is not Status.SKIPPED
    ]


def folders(agenda: Agenda, outcomes: Mapping[str, Outcome], context: Ground) -> dict[str, Path]:
    """Return the folders of the products, by their titles in the summary."""
    named: dict[str, Path] = {}
    if context.around is not None:
        for each in agenda.passes:
            if outcomes[each.key].usable:
                named[f"what {each.label} found"] = products.product(each, context.around)
    if context.site is not None:
        named["what the agents changed"] = outputs_root(context.out)
    elif context.lab is not None:
        named["what was scored"] = outputs_root(context.out)
    return named


def compared(agenda: Agenda, lab: Laboratory) -> tuple[Comparison, list[str]]:
    """Compare the agents by the results in the run's folder; also returns notes on irregular results."""
    records, notes = comparables(lab.out, lab.benchmark, agenda.scorings, references=lab.config.references)
    return compare(records.records), notes
