"""``verify_candidate``: step 4 of the construction (SWE-Refactor §3.3).

Cheap facts come first: build files, and the classes that methods move to. What the build needs is fetched by
running its own goals, with a network to the registries alone, once for each state of the build files; there,
JDKs are tried until one compiles both sides. Then all tests of both sides run without a network.
"""

from __future__ import annotations

import re
import secrets
import time
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import anyio
from anyio import to_thread

from codetaste.core.files import remove_tree
from codetaste.core.text import plural, printable
from codetaste.errors import SandboxError
from codetaste.java.build.build_system import (
    Build,
    build_files_digest,
    find_build,
    project_folder,
    read_text,
)
from codetaste.java.build.jdk_evidence import JdkEvidence, find_jdk_evidence
from codetaste.java.build.pom import find_arg_line, read_poms
from codetaste.sandbox.egress import no_egress
from codetaste.swe_refactor.verify.outcome import VerificationOutcome
from codetaste.swe_refactor.verify.prepare import PreparationFailed, prepare_build
from codetaste.swe_refactor.verify.problem import describe_problem, outcome_of_end, outcome_of_run
from codetaste.swe_refactor.verify.project_sandbox import open_project_sandbox
from codetaste.swe_refactor.verify.side import CandidateSide, TestedSide, run_side
from codetaste.swe_refactor.verify.verification import LOG_CHARS, SideRun, Verification

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from pathlib import Path

    from codetaste.java.build.coverage import CoverageTarget
    from codetaste.source.repository import Repository
    from codetaste.swe_refactor.verify.local_repository import PreparedBuild
    from codetaste.swe_refactor.verify.request import MoveTarget, VerificationRequest
    from codetaste.swe_refactor.verify.settings import VerifyContext

_AGAIN_AT_MOST = 5
"""New failures that may be chance: the side after is run again if there are no more."""
_MAX_NEW_FAILURES = 200


@dataclass(frozen=True, slots=True)
class _Project:
    """What the files of both sides say."""

    build: Build
    before: CandidateSide
    after: CandidateSide
    evidence: tuple[JdkEvidence, ...]

    @property
    def tool(self) -> str:
        """The name of the build tool."""
        return str(self.build.tool)

    @property
    def keys(self) -> tuple[str, ...]:
        """What decides which files the build needs; the image is another part of it."""
        return self.tool, self.before.build_key, self.after.build_key


async def verify_candidate(
    context: VerifyContext, repository: Repository, candidate: VerificationRequest
) -> Verification:
    """Compile and test both sides of a candidate, and measure what the tests cover of its methods.

    Args:
        context: what the verifications of the project share.
        repository: its clone.
        candidate: what to verify.

    Returns:
        The result; a build that cannot be used is an outcome, never an error.

    Raises:
        SourceError: a commit cannot be read.
        SandboxError: no sandbox can be opened, or the engine failed.
        StorageFull: no space left on this host.
    """
    began = time.monotonic()
    await context.local.open()
    async with _exported(context, repository, candidate) as (before, after):
        found = await to_thread.run_sync(_read_project, candidate, before, after)
        if isinstance(found, Verification):
            return replace(found, total_s=time.monotonic() - began)
        result = await _verify(context, candidate, found)
    evidence = tuple(map(str, found.evidence))
    return replace(result, tool=found.tool, evidence=evidence, total_s=time.monotonic() - began)


@asynccontextmanager
async def _exported(
    context: VerifyContext, repository: Repository, candidate: VerificationRequest
) -> AsyncIterator[tuple[Path, Path]]:
    folder = context.scratch / f"trees-{secrets.token_hex(6)}"
    try:
        for name, commit in (("before", candidate.before), ("after", candidate.after)):
            await repository.export(commit, folder / name)
        yield folder / "before", folder / "after"
    finally:
        with anyio.CancelScope(shield=True):
            await to_thread.run_sync(remove_tree, folder)


def _read_project(candidate: VerificationRequest, before: Path, after: Path) -> _Project | Verification:
    """Read the files of both sides; blocking. Without a build, or a class to move to, the result is final."""
    missing = [target for target in candidate.move_targets if not _exists(before, target)]
    if missing:
        name = missing[0].class_name or missing[0].path
        return Verification(VerificationOutcome.MOVE_TARGET_MISSING, f"{name} is not there before the commit")
    folder = project_folder(before, candidate.before_methods[0].path) if candidate.before_methods else ""
    before, after = before / folder, after / folder
    builds = [find_build(tree) for tree in (before, after)]
    tools = [build.tool for build in builds if build.tool is not None]
    if len(tools) < len(builds):
        problem = next(build.problem for build in builds if build.tool is None)
        return Verification(VerificationOutcome.NO_BUILD_FILE, problem)
    if tools[0] is not tools[1]:
        return Verification(
            VerificationOutcome.NO_BUILD_FILE, f"it is built with {tools[0]} before, and {tools[1]} after"
        )
    sides = [
        CandidateSide(
            name, tree, build_files_digest(tree), find_arg_line(read_poms(tree)), _within(folder, targets)
        )
        for name, tree, targets in (
            ("before", before, candidate.before_methods),
            ("after", after, candidate.after_methods),
        )
    ]
    evidence = find_jdk_evidence(after, builds[1])
    return _Project(builds[1], sides[0], sides[1], evidence)


def _within(folder: str, targets: Sequence[CoverageTarget]) -> tuple[CoverageTarget, ...]:
    """Return ``targets`` with their paths as in the folder of the project, where they are in it."""
    prefix = f"{folder}/" if folder else ""
    return tuple(replace(target, path=target.path.removeprefix(prefix)) for target in targets)


def _exists(tree: Path, target: MoveTarget) -> bool:
    path = tree / target.path
    if not path.is_file():
        return False
    name = target.class_name.replace("$", ".").rpartition(".")[2]
    return not name or bool(
        re.search(rf"\b(?:class|interface|enum|record|@interface)\s+{re.escape(name)}\b", read_text(path))
    )


async def _verify(context: VerifyContext, candidate: VerificationRequest, project: _Project) -> Verification:
    find = partial(to_thread.run_sync, partial(context.local.find, context.image, *project.keys))
    known = await find()
    if known is not None:
        result = await _test(context, candidate, project, known)
        if result.outcome not in _OF_PREPARATION:
            return result
    async with context.local.writing():
        waited = known is None and await find() is not None
        if not waited:
            try:
                preparation = await prepare_build(
                    context, candidate.key, project.build, (project.before, project.after), project.evidence
                )
            except PreparationFailed as failed:
                return failed.result
            await to_thread.run_sync(
                partial(context.local.record, preparation.prepared, context.image, *project.keys)
            )
    if waited:  # for another job, which has prepared the same build
        return await _verify(context, candidate, project)
    result = await _test(context, candidate, project, preparation.prepared)
    return replace(result, fetch_s=preparation.fetch_s, refused_hosts=preparation.refused_hosts)


_OF_PREPARATION = {
    VerificationOutcome.NEEDS_DOWNLOAD,
    VerificationOutcome.COMPILE_FAILS_BEFORE,
    VerificationOutcome.COMPILE_FAILS_AFTER,
    VerificationOutcome.BUILD_FAILS,
    VerificationOutcome.MISSING_JDK,
    VerificationOutcome.WRAPPER_WITHOUT_DISTRIBUTION,
}
"""With these a build is prepared anew: another commit needed the same files, and this one may need more."""


async def _test(
    context: VerifyContext, candidate: VerificationRequest, project: _Project, prepared: PreparedBuild
) -> Verification:
    """Run the tests of both sides in one sandbox without a network."""
    jdk, tests_s = prepared.jdk, context.limits.tests_s
    sides: list[TestedSide] = []
    result = Verification(VerificationOutcome.VERIFIED, jdk=jdk)
    async with AsyncExitStack() as stack:
        opened = open_project_sandbox(context, candidate.key, project.build, no_egress(), prepared)
        sandbox = await stack.enter_async_context(opened)
        try:
            for side in (project.before, project.after):
                sides.append(await run_side(sandbox, side, jdk, tests_s))
                if problem := _problem_of_side(side, sides[-1]):
                    return _with_sides(replace(problem, jdk=jdk), sides)
            before, after = sides
            new = after.failures - before.failures
            if 0 < len(new) <= _AGAIN_AT_MOST:
                again = await run_side(sandbox, project.after, jdk, tests_s)
                if again.problem is None and again.result is not None:
                    new &= again.failures
        except SandboxError:
            outcome = outcome_of_end(sandbox.sandbox.end)
            if outcome is None:
                raise
            ended = replace(result, outcome=outcome, detail=str(sandbox.sandbox.end))
            return _with_sides(ended, sides)
    return _judge(_with_sides(result, sides), new)


def _problem_of_side(side: CandidateSide, tested: TestedSide) -> Verification | None:
    """Return the result if the tests of a side cannot be used; None if they can."""
    run = tested.run
    if tested.result is None:
        outcome = outcome_of_run(run, after=side.name == "after")
    elif tested.problem is not None:
        outcome = tested.problem
    elif not tested.statuses:
        return Verification(VerificationOutcome.NO_TESTS, f"the side {side.name} has no report of any test")
    else:
        return None
    return Verification(outcome, describe_problem(outcome, side.name, run), log=run.output[-LOG_CHARS:])


def _with_sides(result: Verification, sides: Sequence[TestedSide]) -> Verification:
    runs = [tested.result for tested in sides]
    compiles = [None if tested.result is None else True for tested in sides]
    return replace(
        result,
        before=runs[0] if runs else None,
        after=runs[1] if len(runs) > 1 else None,
        compiles_before=compiles[0] if compiles else None,
        compiles_after=compiles[1] if len(compiles) > 1 else None,
        commands=tuple(dict.fromkeys(tested.run.command for tested in sides)),
        tool_s=sum(tested.run.result.wall_s for tested in sides),
    )


def _judge(result: Verification, new: frozenset[str]) -> Verification:
    """Return the result with its outcome, from the tests and the coverage of both sides."""
    before, after = result.before, result.after
    if before is None or after is None:
        return result
    if new:
        names = tuple(sorted(new))
        detail = f"{plural(len(names), 'test')} failed after the commit alone: {printable(names[0], 150)}"
        return replace(
            result,
            outcome=VerificationOutcome.TESTS_FAIL,
            detail=detail,
            new_failures=names[:_MAX_NEW_FAILURES],
        )
    for name, side in (("before", before), ("after", after)):
        if problem := _coverage_problem(name, side, all_needed=name == "before"):
            outcome, detail = problem
            return replace(result, outcome=outcome, detail=detail)
    return result


def _coverage_problem(
    name: str, side: SideRun, *, all_needed: bool
) -> tuple[VerificationOutcome, str] | None:
    """Before the commit every method must be covered, after it one of those that it left."""
    found = [each for each in side.coverage if each is not None]
    covered = [each for each in found if each.is_covered]
    if not side.coverage:
        return (
            (VerificationOutcome.NOT_COVERED, f"no JVM recorded the coverage {name} the commit")
            if all_needed
            else None
        )
    if not found or (all_needed and len(found) < len(side.coverage)):
        return (
            VerificationOutcome.TARGET_NOT_FOUND,
            f"no compiled method has the lines of the target {name} the commit",
        )
    if covered and (not all_needed or len(covered) == len(found)):
        return None
    missed = next(each for each in found if not each.is_covered)
    return (
        VerificationOutcome.NOT_COVERED,
        f"no test runs {missed.class_name}.{missed.name} {name} the commit",
    )
