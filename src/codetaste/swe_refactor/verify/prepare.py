"""Prepare the build of a project: fetch what both sides need, and find a JDK that compiles them.

The goals themselves are run, since no list of dependencies is complete; in place of the JVM of the tests is a
program that ends at once, so that no test runs while there is a network.
"""

from __future__ import annotations

import re
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from codetaste.errors import CodetasteError, SandboxError
from codetaste.java.build.commands import Goal
from codetaste.java.build.jdk_evidence import EvidenceKind, able_jdks, order_jdks
from codetaste.sandbox.egress import open_allowlist_egress
from codetaste.swe_refactor.verify.local_repository import PreparedBuild
from codetaste.swe_refactor.verify.outcome import VerificationOutcome
from codetaste.swe_refactor.verify.problem import describe_problem, outcome_of_end, outcome_of_run
from codetaste.swe_refactor.verify.project_sandbox import open_project_sandbox
from codetaste.swe_refactor.verify.verification import LOG_CHARS, Verification

if TYPE_CHECKING:
    from collections.abc import Sequence

    from codetaste.java.build.build_system import Build
    from codetaste.java.build.jdk_evidence import JdkEvidence
    from codetaste.sandbox.proxy.server import HostRequest
    from codetaste.swe_refactor.verify.project_sandbox import ProjectSandbox
    from codetaste.swe_refactor.verify.settings import VerifyContext
    from codetaste.swe_refactor.verify.side import CandidateSide

_OF_JDK = {
    VerificationOutcome.COMPILE_FAILS_BEFORE,
    VerificationOutcome.COMPILE_FAILS_AFTER,
    VerificationOutcome.BUILD_FAILS,
}
"""Failures that another JDK may not have."""
_COMPILES = {
    VerificationOutcome.COMPILE_FAILS_BEFORE: (False, None),
    VerificationOutcome.COMPILE_FAILS_AFTER: (True, False),
}
"""Whether the sides before and after compile."""
_OF_FETCH = {VerificationOutcome.NEEDS_DOWNLOAD, VerificationOutcome.HANGS}
"""Failures of fetching what the tests need; others come from the program in place of their JVM."""


@dataclass(frozen=True, slots=True)
class Preparation:
    """A prepared build, what it took in seconds, and hosts that it asked for and did not get."""

    prepared: PreparedBuild
    fetch_s: float
    refused_hosts: tuple[str, ...]


class PreparationFailed(CodetasteError):
    """A build cannot be prepared; ``result`` says why."""

    def __init__(self, result: Verification) -> None:
        super().__init__(result.detail)
        self.result = result


async def prepare_build(
    context: VerifyContext,
    job: str,
    build: Build,
    sides: tuple[CandidateSide, CandidateSide],
    evidence: Sequence[JdkEvidence],
) -> Preparation:
    """Fetch what both sides of a candidate need, and choose the JDK.

    Call it within ``context.local.writing``.

    Raises:
        PreparationFailed: no JDK compiles both sides, or something cannot be fetched.
        SandboxError: no sandbox can be opened, or the engine failed.
    """
    _check_wrapper(context, build)
    refused: dict[str, None] = {}

    def note(request: HostRequest) -> None:
        if request.refusal:
            refused[request.host] = None

    async with (
        open_allowlist_egress(context.hosts, note=note) as egress,
        open_project_sandbox(context, job, build, egress) as project,
    ):
        began = time.monotonic()
        try:
            jdk = await _choose_jdk(project, sides, evidence)
            await project.save_dependencies()
        except PreparationFailed as failed:
            result = replace(failed.result, refused_hosts=tuple(refused), fetch_s=time.monotonic() - began)
            if refused and result.outcome is VerificationOutcome.NEEDS_DOWNLOAD:
                result = replace(result, detail=f"{result.detail}; it asked for {', '.join(refused)}")
            raise PreparationFailed(result) from None
        except SandboxError:
            outcome = outcome_of_end(project.sandbox.end)
            if outcome is None:
                raise
            raise PreparationFailed(Verification(outcome, str(project.sandbox.end))) from None
        return Preparation(
            PreparedBuild(jdk, project.jdks, project.maven), time.monotonic() - began, tuple(refused)
        )


def _check_wrapper(context: VerifyContext, build: Build) -> None:
    """Raise PreparationFailed if Gradle must come from where nothing can be fetched."""
    host = urlsplit(build.wrapper_url).hostname or ""
    allowed = {re.split("[:=]", entry)[0] for entry in context.hosts}
    if build.needs_wrapper and host not in allowed:
        raise PreparationFailed(
            Verification(
                VerificationOutcome.WRAPPER_WITHOUT_DISTRIBUTION,
                f"it is built with Gradle {build.wrapper}, and its host {host or '(none)'} is not allowed",
            )
        )


async def _choose_jdk(
    project: ProjectSandbox, sides: tuple[CandidateSide, CandidateSide], evidence: Sequence[JdkEvidence]
) -> int:
    """Return the first JDK that compiles both sides; all that their tests need is fetched with it.

    Raises:
        PreparationFailed: there is none.
        SandboxError: the sandbox ended.
    """
    order = order_jdks(evidence, tuple(project.jdks))[: project.context.limits.jdks]
    first: Verification | None = None
    for jdk in order:
        failed = await _compile_and_fetch(project, sides, jdk)
        if failed is None:
            return jdk
        if failed.outcome not in _OF_JDK:
            raise PreparationFailed(failed)
        first = first or failed
    if first is None or not able_jdks(evidence, tuple(project.jdks)):
        levels = sorted({each.version for each in evidence if each.kind is EvidenceKind.LEVEL})
        wanted = f"for the language levels {', '.join(map(str, levels))}" if levels else "at all"
        there = ", ".join(map(str, project.jdks)) or "none"
        detail = f"there is no JDK {wanted}; there is {there}"
        raise PreparationFailed(
            Verification(VerificationOutcome.MISSING_JDK, detail, log=first.log if first else "")
        )
    tried = ", ".join(map(str, order))
    raise PreparationFailed(replace(first, detail=f"{first.detail}; tried with JDK {tried}"))


async def _compile_and_fetch(
    project: ProjectSandbox, sides: tuple[CandidateSide, CandidateSide], jdk: int
) -> Verification | None:
    """Compile both sides, and fetch what their tests need; return why a side cannot be used."""
    limits = project.context.limits
    within_s = limits.fetch_s + limits.compile_s
    for side in sides:
        await project.put_tree(side.tree)
        run = await project.run(Goal.COMPILE, jdk, within_s)
        outcome = None if run.succeeded else outcome_of_run(run, after=side is sides[1])
        if outcome is None and (side is sides[1] or sides[0].build_key != sides[1].build_key):
            # It may fail, because the program in place of the tests' JVM does.
            run = await project.run(Goal.FETCH_FOR_TESTS, jdk, within_s)
            failure = None if run.succeeded else outcome_of_run(run, after=side is sides[1])
            outcome = failure if failure in _OF_FETCH else None
        if outcome is not None:
            before, after = _COMPILES.get(outcome, (None, None))
            return Verification(
                outcome,
                describe_problem(outcome, side.name, run),
                compiles_before=before,
                compiles_after=after,
                log=run.output[-LOG_CHARS:],
            )
    return None
