"""All tests of one side of a candidate in a sandbox without a network, and the coverage of its methods."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from anyio import to_thread

from codetaste.core.tar import DamagedTar, TarReader
from codetaste.core.text import printable
from codetaste.evaluation.test_runs.cases import CaseStatus, TestReport
from codetaste.evaluation.test_runs.reports.find import MAX_REPORT_FILES, MAX_TOTAL_BYTES, ReportCollector
from codetaste.evaluation.test_runs.reports.limits import MAX_REPORT_BYTES
from codetaste.java.build.build_system import BuildTool
from codetaste.java.build.commands import AgentOptions, Goal
from codetaste.sandbox.base import CommandLimits
from codetaste.swe_refactor.verify.coverage_run import agent_option, measure_coverage
from codetaste.swe_refactor.verify.outcome import (
    VerificationOutcome,
    outcome_of_ended_tests,
    outcome_of_failed_build,
)
from codetaste.swe_refactor.verify.verification import SideRun

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from codetaste.java.build.coverage import CoverageTarget
    from codetaste.java.build.pom import ArgLine
    from codetaste.swe_refactor.verify.project_sandbox import BuildRun, ProjectSandbox

_REPORTS_S = 300.0
_MAX_FAILURES = 200
_MAX_NOTES = 20
# Reports in the repository itself are older than the run.
_FIND = """
find . -xdev -type f -newermt "@$1" -size "-$2c" '(' -path '*/target/surefire-reports/TEST-*.xml' \
    -o -path '*/build/test-results/*.xml' ')' -print0 | head -z -n "$3" | tar --null -cf - -T -
"""
# Surefire keeps what a JVM of tests wrote beside its protocol, such as its last words, in files.
_READ_DUMPS = """
find . -xdev -type f -newermt "@$1" -path '*/target/surefire-reports/*.dump*' -print0 |
    head -z -n 20 | xargs -0 -r head -c 4096
"""


@dataclass(frozen=True, slots=True)
class CandidateSide:
    """One side of a candidate.

    Attributes:
        name: "before" or "after".
        tree: its files, on this host.
        build_key: the digest of its build files.
        arg_line: what its poms say about the JVM of tests.
        targets: the methods in it.
    """

    name: str
    tree: Path
    build_key: str
    arg_line: ArgLine
    targets: tuple[CoverageTarget, ...]


@dataclass(frozen=True, slots=True)
class TestedSide:
    """What the tests of a side gave.

    Attributes:
        run: the command of the build tool that ran them.
        result: what is stored; None if the build failed.
        statuses: of all tests, by name.
        problem: why the result cannot be used; None if it can.
    """

    run: BuildRun
    result: SideRun | None = None
    statuses: Mapping[str, CaseStatus] | None = None
    problem: VerificationOutcome | None = None

    @property
    def failures(self) -> frozenset[str]:
        """Names of the tests that failed."""
        return frozenset(name for name, status in (self.statuses or {}).items() if status in _FAILED)


_FAILED = {CaseStatus.FAILED, CaseStatus.ERROR}


async def run_side(project: ProjectSandbox, side: CandidateSide, jdk: int, limit_s: float) -> TestedSide:
    """Put a side into the sandbox and run all its tests with a record of what they cover.

    Raises:
        SandboxError: the sandbox ended.
    """
    literal = project.build.tool is BuildTool.MAVEN and not side.arg_line.overridable
    tested = await _run_tests(project, side, jdk, limit_s, by_variable=literal)
    recorded = tested.result is not None and bool(tested.result.coverage or not side.targets)
    if recorded or literal or tested.result is None or project.build.tool is not BuildTool.MAVEN:
        return tested
    # A parent that is not in the repository gives the tests' JVM its options, or there is no such JVM.
    again = await _run_tests(project, side, jdk, limit_s, by_variable=True)
    return again if again.result is not None else tested


async def _run_tests(
    project: ProjectSandbox, side: CandidateSide, jdk: int, limit_s: float, *, by_variable: bool
) -> TestedSide:
    await project.put_tree(side.tree)
    return await run_tests(project, side, jdk, limit_s, by_variable=by_variable)


async def run_tests(
    project: ProjectSandbox, side: CandidateSide, jdk: int, limit_s: float, *, by_variable: bool = False
) -> TestedSide:
    """Run all tests of a side whose files are in the sandbox; ``by_variable`` as in ``AgentOptions``.

    Raises:
        SandboxError: the sandbox ended.
    """
    since = time.time()
    run = await project.run(
        Goal.TEST,
        jdk,
        limit_s,
        AgentOptions(
            agent_option(project.context.agent, side.targets) if side.targets else "",
            side.arg_line.value,
            by_variable,
        ),
    )
    if outcome_of_failed_build(run.output) is VerificationOutcome.JVM_DIES:
        dumps = await project.script(_READ_DUMPS, str(int(since)))
        run = replace(run, output=run.output + dumps.decode(errors="replace"))
    if not run.succeeded:
        return TestedSide(run)
    report, notes = await _read_reports(project, since)
    coverage = await measure_coverage(project, jdk, side.targets) if side.targets else None
    counts = report.counts
    failures = sorted(case.name for case in report.cases if case.status in _FAILED)
    result = SideRun(
        counts.passed,
        counts.failed + counts.errors,
        counts.skipped,
        tuple(failures[:_MAX_FAILURES]),
        () if coverage is None else tuple(map(coverage.find, side.targets)),
        run.result.wall_s,
        notes,
    )
    problem = outcome_of_ended_tests(run.output, nothing_passed=bool(report.cases) and not counts.passed)
    if problem is not None and run.lacked_memory:
        problem = VerificationOutcome.OUT_OF_MEMORY
    return TestedSide(run, result, report.statuses, problem)


async def _read_reports(project: ProjectSandbox, since: float) -> tuple[TestReport, tuple[str, ...]]:
    collector = ReportCollector()
    reader = TarReader(collector, 2 * MAX_TOTAL_BYTES)
    damaged = False

    async def take(piece: bytes) -> None:
        nonlocal damaged
        if not damaged:
            try:
                await to_thread.run_sync(reader.feed, piece)
            except DamagedTar:
                damaged = True

    arguments = [str(int(since)), str(MAX_REPORT_BYTES), str(MAX_REPORT_FILES)]
    command = ["/bin/bash", "-c", _FIND, "codetaste", *arguments]
    await project.sandbox.run(command, limits=CommandLimits(_REPORTS_S), sink=take)
    report = await to_thread.run_sync(lambda: collector.report) or TestReport()
    faults = [f"{path}: {fault}" for path, fault in collector.faults.items()]
    return report, tuple(printable(note, 300) for note in [*faults, *report.notes][:_MAX_NOTES])
