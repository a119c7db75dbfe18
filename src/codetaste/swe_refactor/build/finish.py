"""The end of a construction: outcomes of all commits and candidates, and the instances."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from codetaste.core.text import one_line
from codetaste.swe_refactor.build.commits import SKIPPED, count_commits
from codetaste.swe_refactor.build.context import CommitTask
from codetaste.swe_refactor.build.outcomes import (
    ENRICHED,
    MINED,
    NOT_DONE,
    BuildStep,
    CandidateOutcome,
)
from codetaste.swe_refactor.build.verified import verified_instance
from codetaste.swe_refactor.dataset.instance import RefactoringInstance
from codetaste.swe_refactor.report.projects import ProjectInstances
from codetaste.swe_refactor.verify.verification import Verification

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from codetaste.orchestration.job import Outcome
    from codetaste.swe_refactor.build.context import BuildContext


@dataclass(frozen=True, slots=True)
class Construction:
    """What came out: the instances of each project, and the outcome of each commit and candidate."""

    projects: tuple[ProjectInstances, ...]
    outcomes: tuple[CandidateOutcome, ...]

    @property
    def instances(self) -> tuple[RefactoringInstance, ...]:
        """All instances, in the order of the projects and of their histories, the newest first."""
        return tuple(instance for project in self.projects for instance in project.instances)


async def finish_construction(
    context: BuildContext, done: Mapping[str, Outcome], load_text: Callable[[str], Awaitable[str]]
) -> Construction:
    """Read the results of the jobs ``done``, by their keys; ``load_text`` returns a stored text.

    Raises:
        JournalError: a stored text is missing or damaged.
        SourceError: git takes too long to count the commits.
    """
    projects, outcomes, owners = [], list[CandidateOutcome](), dict[str, str]()
    for project in context.projects.values():
        instances: list[RefactoringInstance] = []
        for commit in project.commits:
            if commit.skipped:
                reason = SKIPPED[commit.skipped]
                outcomes.append(
                    CandidateOutcome(project.name, commit.name, BuildStep.MINE, commit.skipped, reason)
                )
                continue
            task = CommitTask(project.name, commit.name)
            for each, document in _commit_outcomes(task, context, done):
                outcome = _once(each, owners)
                outcomes.append(outcome)
                if outcome.is_instance:
                    instances.append(await _instance(document, task, outcome, done, load_text))
        projects.append(ProjectInstances(project.name, instances, await count_commits(project.clone)))
    return Construction(tuple(projects), tuple(outcomes))


def _once(outcome: CandidateOutcome, owners: dict[str, str]) -> CandidateOutcome:
    """Return the outcome; its instance is dropped if an earlier project, in ``owners``, has it: of a fork."""
    if not outcome.is_instance:
        return outcome
    owner = owners.setdefault(outcome.unique_id, outcome.project)
    if owner == outcome.project:
        return outcome
    detail = f"{owner} has it, too: the same commit"
    return replace(outcome, step=str(BuildStep.ENRICH), outcome="same_id", detail=detail, is_instance=False)


async def _instance(
    document: str,
    task: CommitTask,
    outcome: CandidateOutcome,
    done: Mapping[str, Outcome],
    load_text: Callable[[str], Awaitable[str]],
) -> RefactoringInstance:
    stored = RefactoringInstance.from_document(json.loads(await load_text(document)))
    instance = stored.updated({"projectName": task.project.rpartition("/")[2]})
    verified = done.get(task.verify_key(outcome.unique_id))
    if verified is None:
        return instance
    value: Any = verified.value
    return verified_instance(instance, Verification.from_json(value))


def _commit_outcomes(
    task: CommitTask, context: BuildContext, done: Mapping[str, Outcome]
) -> list[tuple[CandidateOutcome, str]]:
    """Return the outcomes of a commit, each with the digest of its instance, "" if it has none."""
    detected = done.get(task.detect_key)
    if detected is None or not detected.usable:
        return [(_row(task, BuildStep.MINE, NOT_DONE, _error(detected)), "")]
    value: Any = detected.value
    if value["outcome"] != MINED:
        return [(_row(task, BuildStep.MINE, value["outcome"], value["detail"]), "")]
    if not value["refactorings"]:
        others = ", ".join(f"{count} {name}" for name, count in value["others"].items())
        name = "no_refactoring_of_the_types" if others else "no_refactoring"
        return [(_row(task, BuildStep.PURITY, name, others), "")]
    enriched = done.get(task.enrich_key)
    if enriched is None or not enriched.usable:
        return [(_row(task, BuildStep.ENRICH, NOT_DONE, _error(enriched)), "")]
    rows: Any = enriched.value
    return [(_candidate_outcome(task, row, context, done), row.get("instance", "")) for row in rows]


def _candidate_outcome(
    task: CommitTask, row: Mapping[str, Any], context: BuildContext, done: Mapping[str, Outcome]
) -> CandidateOutcome:
    names = {name: row.get(name, "") for name in ("type", "description", "unique_id")}
    if row["outcome"] != ENRICHED:
        return _row(task, row["step"], row["outcome"], row["detail"], **names)
    if not context.verify:
        return _row(task, BuildStep.ENRICH, ENRICHED, context.unverified, **names, is_instance=True)
    verified = done.get(task.verify_key(row["unique_id"]))
    if verified is None or not verified.usable:
        return _row(task, BuildStep.VERIFY, NOT_DONE, _error(verified), **names)
    value: Any = verified.value
    result = Verification.from_json(value)
    return _row(
        task,
        BuildStep.VERIFY,
        result.outcome.value,
        result.detail,
        **names,
        is_instance=result.is_verified,
    )


def _row(task: CommitTask, step: str, outcome: str, detail: str, **more: Any) -> CandidateOutcome:  # noqa: ANN401
    return CandidateOutcome(task.project, task.commit, str(step), outcome, one_line(detail), **more)


def _error(outcome: Outcome | None) -> str:
    return outcome.error if outcome is not None else "the run was stopped before"
