"""The gates that an execution environment must pass before it is used (CodeTaste §3.3).

They stand outside the agent that made the environment: its scripts run in fresh sandboxes, on R∘X* and on R,
and twice on R∘X*. What is wrong is named by gate, with the end of the log, for the agent and for people.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any, TypeAlias

from codetaste.environment.levels import Level
from codetaste.errors import SandboxError
from codetaste.evaluation.metrics import MIN_PASS_RATE, MIN_TESTS
from codetaste.evaluation.test_runs.problems import RunProblem
from codetaste.evaluation.test_runs.suite import run_suite
from codetaste.evaluation.test_runs.test_run import TestRun
from codetaste.sandbox.base import Privileges, Sandbox

if TYPE_CHECKING:
    from typing import Self

    from codetaste.evaluation.test_runs.suite import SuiteLimits

MAX_LAYER_BYTES = 5 * 1024**3
"""Limit of what an environment adds to its base image, and a test run to it, bytes."""
_MIB = 1024**2
_SETUP_PROBLEMS = {RunProblem.SETUP_SYSTEM_FAILED, RunProblem.SETUP_SHELL_FAILED}


class Side(StrEnum):
    """Which code an environment is tried with."""

    GOLDEN = "golden"
    """R∘X*."""
    BASE = "base"
    """R."""


class Gate(StrEnum):
    """What an environment must do; the first that it fails is named."""

    SETUP = "setup"
    """The setup scripts end with exit code 0."""
    RESULT = "result"
    """``run_tests`` ends in time with a line of counts as the last of its output, and with no other."""
    TESTS = "tests"
    """There are at least ten tests (CodeTaste §3.3)."""
    PASS_RATE = "pass_rate"  # noqa: S105 - a rate
    """At least 3/10 of them pass (CodeTaste §3.3)."""
    CLEAN_TREE = "clean_tree"
    """``git status`` shows no change after a run."""
    PROCESSES = "processes"
    """The tests leave no process behind."""
    REPEATABLE = "repeatable"
    """A second run of all scripts in the same sandbox has the same counts."""
    SIZE = "size"
    """What is written stays below five GiB."""


NOT_PUBLISHED = frozenset({Gate.CLEAN_TREE, Gate.PROCESSES})
"""Gates that the published harness leaves to the agent's word, so that published scripts may fail them."""


@dataclass(frozen=True, slots=True)
class GateFailure:
    """The gate that an environment fails, on which code, and why.

    ``infrastructure`` tells that the environment may be sound: it could not be tried.
    """

    gate: Gate
    side: Side
    message: str
    log: str = ""
    infrastructure: bool = False

    @classmethod
    def from_json(cls, data: Any) -> Self:  # noqa: ANN401 - JSON
        """Read the failure from its fields."""
        return cls(**{**data, "gate": Gate(data["gate"]), "side": Side(data["side"])})

    def __str__(self) -> str:
        return f"{self.gate} on {'R∘X*' if self.side is Side.GOLDEN else 'R'}: {self.message}"


@dataclass(frozen=True, slots=True)
class GateReport:
    """The result of the gates.

    Attributes:
        level: how far the environment came.
        privileges: the least with which it came there.
        failure: None if it passes all gates.
        waived: gates that it fails and need not pass.
        runs: the test runs by side; the second run on R∘X* is not among them.
        written_bytes: what the setup image adds to its base image and the runs to it, at most.
    """

    level: Level
    privileges: Privileges
    failure: GateFailure | None = None
    waived: tuple[GateFailure, ...] = ()
    runs: dict[Side, TestRun] = field(default_factory=dict)
    written_bytes: int = 0

    def to_json(self) -> dict[str, Any]:
        """Return the report as JSON data."""
        failure = self.failure
        return {
            "level": self.level.value,
            "privileges": self.privileges,
            "failure": failure and asdict(failure),
            "waived": [asdict(each) for each in self.waived],
            "runs": {side.value: run.to_json() for side, run in self.runs.items()},
            "written_bytes": self.written_bytes,
        }

    @classmethod
    def from_json(cls, data: Any) -> Self:  # noqa: ANN401 - JSON
        """Read what ``to_json`` returned."""
        failure = data["failure"]
        return cls(
            Level(data["level"]),
            Privileges(data["privileges"]),
            failure and GateFailure.from_json(failure),
            tuple(map(GateFailure.from_json, data.get("waived", ()))),
            {Side(side): TestRun.from_json(run) for side, run in data["runs"].items()},
            data["written_bytes"],
        )


OpenSandbox: TypeAlias = Callable[[Side, Privileges], AbstractAsyncContextManager[Sandbox]]
"""Opens a fresh sandbox of the environment with the code of one side in it."""


async def pass_gates(
    open_sandbox: OpenSandbox,
    limits: SuiteLimits | None = None,
    *,
    privileges: Sequence[Privileges] = tuple(Privileges),
    installed_bytes: int = 0,
    waived: Collection[Gate] = (),
) -> GateReport:
    """Run the scripts on both sides and return how far the environment comes.

    The least privileges with which the scripts work on R∘X* are kept: an environment whose scripts need no
    root gets none.

    Args:
        open_sandbox: opens a fresh sandbox.
        limits: time limits of the scripts.
        privileges: those that are tried, in this order.
        installed_bytes: what the setup image adds to its base image.
        waived: gates that need not pass.
    """
    if failure := judge_size(installed_bytes, Side.GOLDEN):
        return GateReport(Level.NONE, privileges[0], failure, written_bytes=installed_bytes)
    report = GateReport(Level.NONE, privileges[0])
    for each in privileges:
        start = GateReport(Level.NONE, each, written_bytes=installed_bytes)
        report = await _try_side(open_sandbox, start, Side.GOLDEN, limits, installed_bytes, waived)
        if report.failure is None or report.failure.infrastructure:
            break
    if report.failure is None:
        report = await _try_side(open_sandbox, report, Side.BASE, limits, installed_bytes, waived)
    return report


async def _try_side(
    open_sandbox: OpenSandbox,
    report: GateReport,
    side: Side,
    limits: SuiteLimits | None,
    installed_bytes: int,
    waived: Collection[Gate],
) -> GateReport:
    """Return ``report`` with the result of one side."""
    twice = side is Side.GOLDEN
    written, second = 0, None
    try:
        async with open_sandbox(side, report.privileges) as sandbox:
            first = await run_suite(sandbox, report.privileges, limits, clean=True)
            if judge_run(first, side, waived) is None:
                if twice:
                    second = await run_suite(sandbox, report.privileges, limits)
                written = installed_bytes + await sandbox.written_bytes()
    except SandboxError as error:
        lost = GateFailure(Gate.SETUP, side, str(error), infrastructure=True)
        return replace(report, failure=lost)
    failure = judge_run(first, side, waived)
    if failure is None and second is not None:
        failure = judge_repetition(first, second, side, waived)
    failure = failure or judge_size(written, side)
    level = level_of(first, failure)
    if side is Side.BASE:
        level = min(level, report.level)
    return replace(
        report,
        level=level,
        failure=failure,
        waived=(*report.waived, *(each for each in _failures(first, side) if each.gate in waived)),
        runs={**report.runs, side: first},
        written_bytes=max(written, report.written_bytes),
    )


def judge_run(run: TestRun, side: Side, waived: Collection[Gate] = ()) -> GateFailure | None:
    """Return the gate that a single run fails; None if it passes those that one run can show."""
    return next((each for each in _failures(run, side) if each.gate not in waived), None)


def _failures(run: TestRun, side: Side) -> Iterator[GateFailure]:
    infrastructure = run.problem is not None and run.problem.infrastructure
    for gate, message in _faults(run):
        yield GateFailure(gate, side, message, run.log, infrastructure)


def _faults(run: TestRun) -> Iterator[tuple[Gate, str]]:
    """Yield the gates that a run fails, and why; the first one counts."""
    if run.problem is not None:
        code = f" (exit code {run.exit_code})" if run.exit_code else ""
        yield Gate.SETUP if run.problem in _SETUP_PROBLEMS else Gate.RESULT, f"{run.message}{code}"
    counts = run.counts
    if counts is None:
        yield Gate.RESULT, "run_tests reported no counts"
        return
    if run.contradictions:
        yield Gate.RESULT, "; ".join(run.contradictions)
    if counts.total < MIN_TESTS:
        yield Gate.TESTS, f"{counts.total} tests; at least {MIN_TESTS} are needed"
    if counts.pass_rate < MIN_PASS_RATE:
        text = f"{counts.passed} of {counts.total} tests pass; a share of {MIN_PASS_RATE:g} is needed"
        yield Gate.PASS_RATE, text
    if run.changed_files:
        yield Gate.CLEAN_TREE, f"git status shows changes: {', '.join(run.changed_files[:5])}"
    if run.left_processes:
        yield Gate.PROCESSES, f"processes are left: {', '.join(run.left_processes[:5])}"


def judge_repetition(
    first: TestRun, second: TestRun, side: Side, waived: Collection[Gate] = ()
) -> GateFailure | None:
    """Return why a second run is not like the first; None if it is.

    Which tests pass may vary, as flaky tests are found by the baseline; their number may not.
    """
    failure = judge_run(second, side, waived)
    if failure is not None:
        return GateFailure(
            Gate.REPEATABLE,
            side,
            f"in the second run: {failure.message}",
            failure.log,
            failure.infrastructure,
        )
    if first.counts is None or second.counts is None or first.counts.total == second.counts.total:
        return None
    text = f"{first.counts.total} tests in the first run, {second.counts.total} in the second"
    return GateFailure(Gate.REPEATABLE, side, text, second.log)


def judge_size(written_bytes: int, side: Side) -> GateFailure | None:
    """Return a failure if more was written than an environment may write."""
    if written_bytes <= MAX_LAYER_BYTES:
        return None
    text = f"{written_bytes // _MIB:,} MiB were written; at most {MAX_LAYER_BYTES // _MIB:,} MiB may be"
    return GateFailure(Gate.SIZE, side, text)


def level_of(run: TestRun, failure: GateFailure | None) -> Level:
    """Return how far a run came."""
    if failure is None:
        return Level.GATES_PASS
    if failure.gate is Gate.SETUP:
        return Level.NONE
    return Level.INSTALLS if run.counts is None else Level.TESTS_START


def feedback(failure: GateFailure) -> str:
    """Return what a setup agent gets to read about a failed gate."""
    log = f"\n\nThe end of the log:\n\n{failure.log}" if failure.log else ""
    return f"Gate {failure}.{log}"
