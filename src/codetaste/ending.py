"""What a run ends with: its products in their places, a line for each result, its agents compared."""

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
    """What the flows of a run need, as far as they have anything to do.

    ``config`` is what the run's folder keeps of its config, JSON.
    """

    out: Path
    config: str
    crew: Crew
    around: Surroundings | None = None
    site: Site | None = None
    lab: Laboratory | None = None


async def concluded(
    wanted: Agenda, outcomes: Mapping[str, Outcome], ground: Ground, session: Session
) -> list[Line]:
    """Put what was found into its place; return a line for each failed need, pass, trial and scoring.

    Raises:
        JournalError: something cannot be read or written; StorageFull among them.
        ExceptionGroup: of such; all that could be written is there.
    """
    lines, blobs = _failed_needs(wanted, outcomes), session.record.blobs
    if ground.around is not None:
        await products.write_products(wanted.passes, outcomes, ground.around, blobs)
        lines.extend(_pass_lines(wanted, outcomes, ground.around))
    trials: dict[str, Outcome] = {}
    if ground.site is not None:
        budget = session.budget.child("infer")
        trials = await conclude(wanted.steps, outcomes, ground.site, budget, blobs)
    scores: dict[str, Outcome] = {}
    if ground.lab is not None:
        if not session.scheduler.draining:
            scores = await conclude_scores(wanted.scorings, outcomes, trials, ground.lab, blobs)
        else:
            scores = {each.key: outcomes[each.key] for each in wanted.scorings}
        await to_thread.run_sync(ground.lab.sweep)
    return [
        *lines,
        *_trial_lines(wanted, outcomes, trials, scores, ground),
        *_score_lines(wanted, scores, ground),
    ]


def _pass_lines(wanted: Agenda, outcomes: Mapping[str, Outcome], around: Surroundings) -> Iterator[Line]:
    for each in wanted.passes:
        outcome = outcomes[each.key]
        path = str(products.rules_file(each, around)) if outcome.usable else ""
        yield Line(outcome, each.title, each.model_id, discover.found(outcome), path)


def _trial_lines(
    wanted: Agenda,
    outcomes: Mapping[str, Outcome],
    trials: Mapping[str, Outcome],
    scores: Mapping[str, Outcome],
    ground: Ground,
) -> Iterator[Line]:
    worth = {each.trial.key: scores[each.key].value for each in wanted.scorings if each.trial is not None}
    for step in wanted.steps:
        trial = step.trial
        if trial.key not in trials:
            yield Line(outcomes[step.key], step.title, step.model_id)
        elif step.kind is StepKind.EXECUTE:
            outcome, value = trials[trial.key], worth.get(trial.key)
            path = str(output_folder(ground.out, trial)) if outcome.usable else ""
            scored = f"; {evaluate.found(value)}" if evaluate.routine(value) else ""
            yield Line(outcome, trial.title, trial.agent.model, f"{found(outcome.value)}{scored}", path)


def _score_lines(wanted: Agenda, scores: Mapping[str, Outcome], ground: Ground) -> Iterator[Line]:
    for scoring in wanted.scorings:
        outcome = scores[scoring.key]
        path = str(scored_folder(ground.out, scoring)) if outcome.usable else ""
        text, told_elsewhere = evaluate.found(outcome.value), bool(wanted.steps)
        quiet = told_elsewhere and evaluate.routine(outcome.value)
        yield Line(outcome, scoring.title, "", text, path, quiet=quiet)


def _failed_needs(wanted: Agenda, outcomes: Mapping[str, Outcome]) -> list[Line]:
    titles = {each.sources: f"sources of {each.instance.id}" for each in wanted.passes}
    for step in wanted.steps:
        titles.setdefault(step.sources, f"sources of {step.trial.instance.id}")
        titles.setdefault(step.install, f"the program of {step.trial.agent.id}")
    for scoring in wanted.scorings:
        titles.setdefault(scoring.sources, f"sources of {scoring.instance.id}")
    return [
        Line(outcomes[key], title, "")
        for key, title in titles.items()
        if key in outcomes and not outcomes[key].usable and outcomes[key].status is not Status.SKIPPED
    ]


def folders(wanted: Agenda, outcomes: Mapping[str, Outcome], ground: Ground) -> dict[str, Path]:
    """Name the folders of what was found."""
    named: dict[str, Path] = {}
    if ground.around is not None:
        for each in wanted.passes:
            if outcomes[each.key].usable:
                named[f"what {each.label} found"] = products.product(each, ground.around)
    if ground.site is not None:
        named["what the agents changed"] = outputs_root(ground.out)
    elif ground.lab is not None:
        named["what was scored"] = outputs_root(ground.out)
    return named


def compared(wanted: Agenda, lab: Laboratory) -> tuple[Comparison, list[str]]:
    """Compare the agents by what lies in the run's folder, and say what is odd there; blocks."""
    records, notes = comparables(lab.out, lab.benchmark, wanted.scorings, references=lab.config.references)
    return compare(records.records), notes
