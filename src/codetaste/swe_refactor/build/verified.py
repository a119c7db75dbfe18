"""Between an instance and its verification: what is asked, and the published fields that the answer gives."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from codetaste.errors import SourceError
from codetaste.java.build.coverage import CoverageTarget
from codetaste.source.git import run_git
from codetaste.swe_refactor.enrich.places import find_places
from codetaste.swe_refactor.verify.request import MoveTarget, VerificationRequest

if TYPE_CHECKING:
    from codetaste.refactorings.model import CodeRange, Refactoring
    from codetaste.source.repository import Repository
    from codetaste.swe_refactor.dataset.instance import RefactoringInstance
    from codetaste.swe_refactor.verify.verification import Verification

_NAME = re.compile(r"([\w$]+)\(")
_JAVA_8 = 8
_OFFLINE = {"-o", "--offline"}
"""Options of commands that find all that they need in the sandbox."""


async def verification_request(
    key: str, instance: RefactoringInstance, refactoring: Refactoring, repository: Repository
) -> VerificationRequest:
    """Return what is verified of an instance.

    The tests must cover the target before the commit, and after it one of the methods that it left. The file
    that a method is moved to must be there before.

    Raises:
        SourceError: the commit has no parent here.
    """
    parent = await run_git(
        "rev-parse", "--verify", "--quiet", f"{instance.commit_id}^1", git_dir=repository.git_dir
    )
    if not parent.ok:
        raise SourceError(f"{repository.label}: {instance.commit_id[:12]} has no parent here")
    places = find_places(refactoring)
    target = CoverageTarget(
        places.target.path,
        instance.class_name_before,
        instance.method_name,
        places.target.start_line,
        places.target.end_line,
    )
    after = [places.after, *([places.extracted] if places.extracted else [])]
    moved = []
    if refactoring.type.startswith("Move") and places.inlined is None:
        moved = [MoveTarget(places.after.path)]
    elif refactoring.type == "Extract And Move Method" and places.extracted is not None:
        moved = [MoveTarget(places.extracted.path)]
    return VerificationRequest(
        key,
        parent.output.decode().strip(),
        instance.commit_id,
        (target,),
        tuple(_target(each) for each in after),
        tuple(moved),
    )


def _target(place: CodeRange) -> CoverageTarget:
    found = _NAME.search(place.code_element or "")
    return CoverageTarget(place.path, "", found[1] if found else "", place.start_line, place.end_line)


def verified_instance(instance: RefactoringInstance, verification: Verification) -> RefactoringInstance:
    """Return the instance with the published fields of its verification; the rest is below our own key."""
    jdk = verification.jdk
    changes: dict[str, Any] = {
        "testResult": verification.is_verified,
        "coverageInfo": _counters(verification),
        "compileResultBefore": verification.compiles_before,
        "compileResultCurrent": verification.compiles_after,
        "compileJDK": 1.8 if jdk == _JAVA_8 else jdk,
        "compileCommand": _compile_command(verification),
    }
    details = {**verification.to_json(), "log": ""}
    return instance.updated(changes).with_own(verification=details)


def _compile_command(verification: Verification) -> str | None:
    """Return the command that compiles and tests, as a reader would run it: with a network."""
    if not verification.commands:
        return None
    return " ".join(part for part in verification.commands[0].split(" ") if part not in _OFFLINE)


def _counters(verification: Verification) -> dict[str, dict[str, int]] | None:
    """Return JaCoCo's counters of the target before the commit."""
    side = verification.before
    if side is None or not side.coverage or side.coverage[0] is None:
        return None
    counters = side.coverage[0].counters
    return {name: {"missed": each.missed, "covered": each.covered} for name, each in counters.items()}
