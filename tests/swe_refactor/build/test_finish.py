"""The end of a construction: the outcome of each commit and candidate, and the instances."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from codetaste.mining.clones.clone import open_clone
from codetaste.orchestration.job import Outcome, Status
from codetaste.source.repository import open_repository
from codetaste.swe_refactor.build.commits import HistoryCommit
from codetaste.swe_refactor.build.context import BuildContext, CommitTask, Project
from codetaste.swe_refactor.build.finish import Construction, finish_construction
from codetaste.swe_refactor.report.projects import project_table
from codetaste.swe_refactor.verify.outcome import VerificationOutcome
from codetaste.swe_refactor.verify.verification import Verification
from support.source.repositories import make_repository
from support.swe_refactor.documents import document

pytestmark = pytest.mark.anyio

NAME = "owner/repo"
TASK = CommitTask(NAME, "c" * 40)
REFACTORING = {"type": "Extract Method"}
MINED = {"outcome": "mined", "detail": "", "refactorings": [REFACTORING], "others": {}, "purity_error": ""}


def row(number: int, **more: str) -> dict[str, str]:
    """Return what step 3 says of a refactoring: that it has an instance, unless ``more`` says otherwise."""
    found = {"type": "Extract Method", "description": f"refactoring {number}", "step": "3 enrich"}
    enriched = {"outcome": "enriched", "detail": "", "unique_id": f"id-{number}", "instance": f"{number}"}
    return found | enriched | more


class Jobs:
    """How jobs ended, as a session says it."""

    def __init__(self) -> None:
        self.done: dict[str, Outcome] = {}

    def end(self, key: str, value: Any, status: Status = Status.DONE, error: str = "") -> Jobs:
        self.done[key] = Outcome(key, status, value, error=error)
        return self


async def make_project(folder: Path, name: str, commits: tuple[HistoryCommit, ...]) -> Project:
    repository = make_repository(folder / name)
    for text in (b"1", b"2"):
        repository.commit({b"a": text})
    return Project(await open_clone(folder / name), await open_repository(folder / name), commits)


async def finish(
    folder: Path,
    jobs: Jobs,
    *commits: HistoryCommit,
    verify: bool = True,
    unverified: str = "",
    names: tuple[str, ...] = (NAME,),
) -> Construction:
    """Finish a construction of projects with histories of two commits, of which ``commits`` were read."""
    projects = {name: await make_project(folder, name, commits) for name in names}
    parts = {"projects": projects, "verify": dict.fromkeys(names) if verify else {}, "unverified": unverified}

    async def load_text(digest: str) -> str:
        return json.dumps(document(uniqueId=f"id-{digest}"))

    return await finish_construction(cast("BuildContext", SimpleNamespace(**parts)), jobs.done, load_text)


def short(made: Construction) -> list[tuple[str, str, str]]:
    return [(each.step, each.outcome, each.detail) for each in made.outcomes]


COMMIT = HistoryCommit(TASK.commit, "")


async def test_each_candidate_ends_in_the_step_that_dropped_it(tmp_path: Path) -> None:
    rows = [
        row(1),
        row(2, step="2 purity", outcome="impure", detail="a\nreason", unique_id="", instance=""),
        row(3),
        row(4),
        row(5),
    ]
    jobs = Jobs().end(TASK.detect_key, MINED).end(TASK.enrich_key, rows)
    verified = Verification(VerificationOutcome.VERIFIED, jdk=8, commands=("mvn -o test",))
    dropped = Verification(VerificationOutcome.NOT_COVERED, "no test runs it")
    jobs.end(TASK.verify_key("id-1"), verified.to_json()).end(TASK.verify_key("id-3"), dropped.to_json())
    jobs.end(TASK.verify_key("id-4"), None, Status.FAILED, "it broke")
    made = await finish(tmp_path, jobs, COMMIT)
    assert short(made) == [
        ("4 verify", "verified", ""),
        ("2 purity", "impure", "a reason"),
        ("4 verify", "not_covered", "no test runs it"),
        ("4 verify", "not_done", "it broke"),
        ("4 verify", "not_done", "the run was stopped before"),
    ]
    assert [each.is_instance for each in made.outcomes] == [True, False, False, False, False]
    (instance,) = made.instances
    assert (instance.unique_id, instance.project_name) == ("id-1", "repo")
    assert (instance.compile_command, instance.java_release) == ("mvn test", 8)


async def test_without_verification_what_step_3_leaves_are_instances(tmp_path: Path) -> None:
    jobs = Jobs().end(TASK.detect_key, MINED).end(TASK.enrich_key, [row(1), row(2)])
    made = await finish(tmp_path, jobs, COMMIT, verify=False, unverified="no sandbox")
    assert short(made) == [("3 enrich", "enriched", "no sandbox")] * 2
    assert [each.unique_id for each in made.instances] == ["id-1", "id-2"]
    assert [each.compile_command for each in made.instances] == [None, None]
    assert {each.project_name for each in made.instances} == {"repo"}


async def test_an_instance_of_two_projects_belongs_to_the_first(tmp_path: Path) -> None:
    jobs = Jobs()
    for task in (TASK, fork := CommitTask("fork/repo", TASK.commit)):
        jobs.end(task.detect_key, MINED).end(task.enrich_key, [row(1)])
    made = await finish(tmp_path, jobs, COMMIT, verify=False, names=(NAME, fork.project))
    assert short(made) == [
        ("3 enrich", "enriched", ""),
        ("3 enrich", "same_id", f"{NAME} has it, too: the same commit"),
    ]
    assert [each.is_instance for each in made.outcomes] == [True, False]
    assert [len(each.instances) for each in made.projects] == [1, 0]


@pytest.mark.parametrize(
    ("jobs", "expected"),
    [
        (Jobs(), ("1 mine", "not_done", "the run was stopped before")),
        (
            Jobs().end(TASK.detect_key, {"outcome": "detection_timeout", "detail": "after 1 s"}),
            ("1 mine", "detection_timeout", "after 1 s"),
        ),
        (
            Jobs().end(TASK.detect_key, None, Status.FAILED, "no JVM"),
            ("1 mine", "not_done", "no JVM"),
        ),
        (
            Jobs().end(TASK.detect_key, {**MINED, "refactorings": []}),
            ("2 purity", "no_refactoring", ""),
        ),
        (
            Jobs().end(TASK.detect_key, {**MINED, "refactorings": [], "others": {"Rename Class": 2}}),
            ("2 purity", "no_refactoring_of_the_types", "2 Rename Class"),
        ),
        (
            Jobs().end(TASK.detect_key, MINED).end(TASK.enrich_key, None, Status.CANCELLED, "stopped"),
            ("3 enrich", "not_done", "stopped"),
        ),
    ],
)
async def test_a_commit_without_candidates_has_one_outcome(
    tmp_path: Path, jobs: Jobs, expected: tuple[str, str, str]
) -> None:
    made = await finish(tmp_path, jobs, COMMIT)
    assert short(made) == [expected]
    assert made.instances == ()


async def test_commits_that_are_not_mined_are_named_and_table_6_counts_the_whole_history(
    tmp_path: Path,
) -> None:
    made = await finish(tmp_path, Jobs(), HistoryCommit("d" * 40, "merge"))
    assert short(made) == [("1 mine", "merge", "a merge; the merged commits are mined")]
    (cells,) = [each.cells for each in project_table(made.projects).rows]
    assert cells[:2] == (NAME, 2)
