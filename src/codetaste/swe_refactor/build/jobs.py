"""The jobs of a construction: for each commit detection and enrichment, then one for each candidate.

The job that adds the verifications costs nothing and is repeated by each session; all others are done once.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any

from codetaste.core.hashing import json_digest
from codetaste.errors import JavaError, JavaOutcome, SourceError
from codetaste.java.jdt.service import ARTIFACT_SET
from codetaste.orchestration.job import Job
from codetaste.refactorings.model import detection_to_json, refactoring_from_json
from codetaste.swe_refactor.build.context import CandidateTask, CommitTask
from codetaste.swe_refactor.build.outcomes import ENRICHED, MINED, BuildStep
from codetaste.swe_refactor.build.verified import verification_request
from codetaste.swe_refactor.dataset.instance import REFACTORING_TYPES, RefactoringInstance
from codetaste.swe_refactor.enrich.enrich import enrich_commit
from codetaste.swe_refactor.verify.verify import verify_candidate

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from codetaste.orchestration.budget.cost import BudgetPath
    from codetaste.orchestration.job import JobContext
    from codetaste.orchestration.journal.journal import Json
    from codetaste.orchestration.session import Session
    from codetaste.refactorings.model import Refactoring
    from codetaste.swe_refactor.build.context import BuildContext

DETECT, ENRICH, PLAN, VERIFY = "build.detect", "build.enrich", "build.candidates", "build.verify"
"""The kinds of the jobs."""
_VERSION = 1
"""Increment it when a change of the construction changes which instances come out."""


def add_construction(session: Session, context: BuildContext, budget: BudgetPath) -> None:
    """Add the jobs of all commits that are mined to a session, and what runs them."""
    session.add_handlers(
        {
            DETECT: lambda job, _run: _detect(job.parameters, context),
            ENRICH: lambda job, run: _enrich(job.parameters, context, run),
            PLAN: lambda job, run: _plan(job.parameters, context, run, session, budget),
            VERIFY: lambda job, run: _verify(job.parameters, context, run),
        }
    )
    tasks = [
        CommitTask(project.name, commit.name)
        for project in context.projects.values()
        for commit in project.commits
        if not commit.skipped
    ]
    session.repeat(task.plan_key for task in tasks)
    for task in tasks:
        session.add(*_commit_jobs(task, context, budget))


def _commit_jobs(task: CommitTask, context: BuildContext, budget: BudgetPath) -> Iterator[Job]:
    config, short = context.config, task.commit[:12]
    miner = json.loads(config.refactoring_miner.model_dump_json(exclude={"workers", "jdk"}))
    detect = json_digest([_VERSION, task.project, task.commit, miner])
    jdt = [ARTIFACT_SET, config.jdt_time_limit, config.jdt_memory]
    enrich = json_digest([detect, sorted(config.types), jdt])
    yield Job(
        task.detect_key,
        DETECT,
        budget,
        fingerprint=detect,
        parameters=task,
        resources={"cpu": 1},
        title=f"{task.project} {short}",
        group="commits mined",
        costs_nothing=True,
    )
    yield Job(
        task.enrich_key,
        ENRICH,
        budget,
        fingerprint=enrich,
        parameters=task,
        needs=(task.detect_key,),
        resources={"cpu": 1},
        title=f"{task.project} {short}: instances",
        group="commits enriched",
        costs_nothing=True,
    )
    if context.verify:
        yield Job(
            task.plan_key,
            PLAN,
            budget,
            fingerprint=enrich,
            parameters=task,
            needs=(task.enrich_key,),
            title=f"{task.project} {short}: candidates",
            group="candidates",
            costs_nothing=True,
        )


async def _detect(task: CommitTask, context: BuildContext) -> Json:
    """Steps 1 and 2. The result has the refactorings of the six types, and how many others there are."""
    git_dir = context.projects[task.project].clone.git_dir
    try:
        detection = await context.miner.detect_commit(git_dir, task.commit)
    except JavaError as error:
        if error.outcome is JavaOutcome.NO_START:
            raise
        return {"outcome": f"detection_{error.outcome}", "detail": str(error)}
    found: list[Any] = detection_to_json(detection)["refactorings"]
    others = Counter(each["type"] for each in found if each["type"] not in REFACTORING_TYPES)
    return {
        "outcome": MINED,
        "detail": "",
        "refactorings": [each for each in found if each["type"] in REFACTORING_TYPES],
        "others": dict(sorted(others.items())),
        "purity_error": detection.purity_error,
    }


async def _enrich(task: CommitTask, context: BuildContext, run: JobContext) -> Json:
    """Steps 2 and 3. The result is the outcome of each refactoring of the six types, in their order."""
    detected: Any = run.needs[task.detect_key]
    return [] if detected["outcome"] != MINED else await _enrich_detected(task, detected, context, run)


async def _enrich_detected(
    task: CommitTask,
    detected: Any,  # noqa: ANN401 - JSON
    context: BuildContext,
    run: JobContext,
) -> list[Json]:
    found = [refactoring_from_json(each) for each in detected["refactorings"]]
    rows = [_purity_row(each, context.config.types, detected["purity_error"]) for each in found]
    pure = [index for index, row in enumerate(rows) if not row["outcome"]]
    if pure:
        try:
            made = await enrich_commit(
                context.jdt,
                context.projects[task.project].repository,
                task.commit,
                [found[index] for index in pure],
                scratch=context.scratch,
            )
        except SourceError as error:
            for index in pure:
                rows[index] |= {
                    "step": BuildStep.ENRICH,
                    "outcome": "unreadable",
                    "detail": str(error),
                }
            return list(rows)
        others = {"other_refactorings": detected["others"]}
        seen = set[str]()
        for index, each in zip(pure, made, strict=True):
            rows[index] |= {"step": BuildStep.ENRICH, "outcome": each.outcome, "detail": each.message}
            if each.instance is None:
                continue
            unique_id = each.instance.unique_id
            if unique_id in seen:
                rows[index] |= {"outcome": "same_id", "detail": f"another one has the id {unique_id}"}
                continue
            seen.add(unique_id)
            document = each.instance.with_own(**others).document
            text = await run.store_text(json.dumps(dict(document)))
            rows[index] |= {"outcome": ENRICHED, "unique_id": unique_id, "instance": text}
    return list(rows)


def _purity_row(refactoring: Refactoring, types: Sequence[str], problem: str) -> dict[str, Any]:
    """Return the row of a refactoring; its outcome is "" if it is a pure one of a type that is wanted."""
    row = {
        "type": refactoring.type,
        "description": refactoring.description,
        "step": BuildStep.PURITY.value,
    }
    if refactoring.type not in types:
        return {**row, "outcome": "type_not_wanted", "detail": "swe_refactor.build.types has other types"}
    if refactoring.purity is None:
        return {**row, "outcome": "purity_unknown", "detail": problem or "PurityChecker gave no verdict"}
    if not refactoring.purity.pure:
        return {**row, "outcome": "impure", "detail": refactoring.purity.description}
    return {**row, "outcome": "", "detail": ""}


async def _plan(
    task: CommitTask, context: BuildContext, run: JobContext, session: Session, budget: BudgetPath
) -> Json:
    """Add the verifications of a commit's instances."""
    rows: Any = run.needs[task.enrich_key]
    jobs = [
        _verify_job(CandidateTask(task, index, row["unique_id"]), context, budget)
        for index, row in enumerate(rows)
        if row["outcome"] == ENRICHED
    ]
    session.add(*jobs)
    return len(jobs)


def _verify_job(candidate: CandidateTask, context: BuildContext, budget: BudgetPath) -> Job:
    config, task = context.config, candidate.task
    verify = context.verify[task.project]
    limits = [config.compile_time_limit, config.fetch_time_limit, config.test_time_limit, config.jdks]
    return Job(
        task.verify_key(candidate.unique_id),
        VERIFY,
        budget,
        fingerprint=json_digest([_VERSION, candidate.unique_id, verify.image, limits, sorted(config.hosts)]),
        parameters=candidate,
        needs=(task.detect_key, task.enrich_key),
        resources={"cpu": 1, "sandbox": 1, "memory": context.sandbox_memory},
        title=f"{task.project} {candidate.unique_id[:12]} {candidate.index + 1}",
        group="candidates verified",
        costs_nothing=True,
    )


async def _verify(candidate: CandidateTask, context: BuildContext, run: JobContext) -> Json:
    """Step 4. The result is that of the verification."""
    task = candidate.task
    detected: Any = run.needs[task.detect_key]
    rows: Any = run.needs[task.enrich_key]
    refactoring = refactoring_from_json(detected["refactorings"][candidate.index])
    text = await run.load_text(rows[candidate.index]["instance"])
    instance = RefactoringInstance.from_document(json.loads(text))
    project = context.projects[task.project]
    request = await verification_request(run.key, instance, refactoring, project.repository)
    verification = await verify_candidate(context.verify[task.project], project.repository, request)
    return verification.to_json()
