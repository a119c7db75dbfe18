"""What is verified of an instance, and the published fields that the answer gives."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from codetaste.errors import SourceError
from codetaste.java.build.coverage import Counter, CoverageTarget, MethodCoverage
from codetaste.source.repository import Repository, open_repository
from codetaste.swe_refactor.build.verified import verification_request, verified_instance
from codetaste.swe_refactor.dataset.instance import RefactoringInstance
from codetaste.swe_refactor.verify.outcome import VerificationOutcome
from codetaste.swe_refactor.verify.request import MoveTarget
from codetaste.swe_refactor.verify.verification import SideRun, Verification
from support.swe_refactor.documents import document
from support.swe_refactor.history import UTIL, A, B, detections, make_history

pytestmark = pytest.mark.anyio

UNVERIFIED = dict.fromkeys(
    ("compileResultBefore", "compileResultCurrent", "compileJDK", "testResult", "coverageInfo"), ...
)


@pytest.fixture
async def history(tmp_path: Path) -> tuple[Repository, str]:
    folder, commit = make_history(tmp_path / "owner/repo")
    return await open_repository(folder), commit


def instance_of(commit: str, owner: str, method: str) -> RefactoringInstance:
    return RefactoringInstance.from_document(
        document(commitId=commit, classNameBefore=owner, methodNameBefore=f"{owner}#{method}")
    )


@pytest.mark.parametrize(
    ("kind", "owner", "method", "target", "after", "moved"),
    [
        ("Extract Method", "p.A", "sum", (A, 5), [A, A], []),
        ("Extract And Move Method", "p.A", "show", (A, 14), [A, UTIL], [MoveTarget(UTIL)]),
        ("Inline Method", "p.B", "one", (B, 8), [B], []),
        ("Move Method", "p.B", "helper", (B, 12), [UTIL], [MoveTarget(UTIL)]),
    ],
)
async def test_the_target_is_measured_before_and_what_it_became_after(
    history: tuple[Repository, str],
    kind: str,
    owner: str,
    method: str,
    target: tuple[str, int],
    after: list[str],
    moved: list[MoveTarget],
) -> None:
    repository, commit = history
    request = await verification_request(
        "key", instance_of(commit, owner, method), detections()[kind], repository
    )
    (before,) = request.before_methods
    assert isinstance(before, CoverageTarget)
    assert (before.path, before.start_line, before.class_name, before.name) == (*target, owner, method)
    assert [each.path for each in request.after_methods] == after
    assert list(request.move_targets) == moved
    assert (request.key, request.after) == ("key", commit)
    assert len(request.before) == 40
    assert request.before != commit


async def test_methods_after_are_named_by_their_signatures(history: tuple[Repository, str]) -> None:
    repository, commit = history
    found = detections()["Extract Method"]
    right = tuple(replace(each, code_element="private a$b(int n) : int") for each in found.right)
    request = await verification_request(
        "key", instance_of(commit, "p.A", "sum"), replace(found, right=right), repository
    )
    assert [each.name for each in request.after_methods] == ["a$b", "a$b"]


async def test_a_commit_without_a_parent_is_an_error(history: tuple[Repository, str]) -> None:
    repository, commit = history
    first = (
        await verification_request(
            "k", instance_of(commit, "p.A", "sum"), detections()["Extract Method"], repository
        )
    ).before
    with pytest.raises(SourceError, match="has no parent here"):
        await verification_request(
            "k", instance_of(first, "p.A", "sum"), detections()["Extract Method"], repository
        )


def verification(**changes: object) -> Verification:
    covered = MethodCoverage("p/A", "a", "()V", {"LINE": Counter(1, 2), "INSTRUCTION": Counter(0, 9)})
    side = SideRun(3, 0, 0, coverage=(covered,))
    found = Verification(
        VerificationOutcome.VERIFIED,
        tool="maven",
        jdk=11,
        commands=("mvn -B -o -Dx test", "mvn -B -o -Dy test"),
        compiles_before=True,
        compiles_after=True,
        before=side,
        after=side,
        log="much",
    )
    return replace(found, **changes)  # type: ignore[arg-type]


def test_the_published_fields_are_those_of_the_verification() -> None:
    instance = RefactoringInstance.from_document(document(**UNVERIFIED)).with_own(other=1)
    assert not instance.verified
    made = verified_instance(instance, verification())
    assert made.verified
    assert made.java_release == 11
    assert made.compile_command == "mvn -B -Dx test"
    assert made.document["coverageInfo"] == {
        "LINE": {"missed": 1, "covered": 2},
        "INSTRUCTION": {"missed": 0, "covered": 9},
    }
    assert (made.own["other"], made.own["verification"]["outcome"]) == (1, "verified")
    assert made.own["verification"]["log"] == ""
    assert list(made.document)[-1] == "codetaste"
    assert made.document["description"] == instance.description


@pytest.mark.parametrize(("jdk", "written"), [(8, 1.8), (17, 17), (None, None)])
def test_java_8_is_written_as_1_8(jdk: int | None, written: float | None) -> None:
    instance = RefactoringInstance.from_document(document(**UNVERIFIED))
    assert verified_instance(instance, verification(jdk=jdk)).document["compileJDK"] == written


@pytest.mark.parametrize("before", [None, SideRun(1, 0, 0), SideRun(1, 0, 0, coverage=(None,))])
def test_without_coverage_or_commands_the_fields_are_null(before: SideRun | None) -> None:
    instance = RefactoringInstance.from_document(document(**UNVERIFIED))
    failed = verification(outcome=VerificationOutcome.NOT_COVERED, before=before, commands=())
    made = verified_instance(instance, failed)
    assert not made.verified
    assert made.document["testResult"] is False
    assert made.document["coverageInfo"] is None
    assert made.document["compileCommand"] is None
