"""The gates, with scripts that run in real sandboxes."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from codetaste.environment.levels import Level
from codetaste.evaluation.test_runs.gates import (
    MAX_LAYER_BYTES,
    NOT_PUBLISHED,
    Gate,
    GateReport,
    Side,
    feedback,
    judge_size,
    pass_gates,
)
from codetaste.evaluation.test_runs.suite import SuiteLimits
from codetaste.sandbox.base import Privileges, Sandbox, SandboxProvider
from support.environment.suites import RESULT, suite_sandbox
from support.sandbox.providers import open_bubblewrap

LIMITS = SuiteLimits(setup_s=60, tests_s=30)
BASH = "#!/bin/bash\n"


@asynccontextmanager
async def open_side(
    provider: SandboxProvider, folder: Path, scripts: dict[str, Any], side: Side, privileges: Privileges
) -> AsyncIterator[Sandbox]:
    files = {".gitignore": "ignored\n", "side": side.value}
    where = folder / f"{side}-{privileges}"
    where.mkdir()
    async with suite_sandbox(provider, where, files=files, privileges=privileges, **scripts) as sandbox:
        yield sandbox


@pytest.fixture
async def provider(tmp_path: Path, bubblewrap: Path, anyio_backend: str) -> Any:
    async with open_bubblewrap(tmp_path / "sandboxes") as opened:
        yield opened


async def run_gates(provider: SandboxProvider, folder: Path, **scripts: str) -> GateReport:
    opening = partial(open_side, provider, folder, scripts)
    report = await pass_gates(opening, LIMITS, privileges=[Privileges.NONE])
    assert GateReport.from_json(report.to_json()) == report
    return report


@pytest.mark.anyio
async def test_sound_environment_passes_with_least_privileges(
    provider: SandboxProvider, tmp_path: Path
) -> None:
    opening = partial(open_side, provider, tmp_path, {})
    report = await pass_gates(opening, LIMITS)
    assert (report.failure, report.level, report.privileges) == (None, Level.GATES_PASS, Privileges.NONE)
    assert {side: run.counts.passed for side, run in report.runs.items() if run.counts} == {
        Side.GOLDEN: 12,
        Side.BASE: 12,
    }


COUNTS = 'echo \'{"passed": %d, "failed": %d, "skipped": 0, "total": %d}\'\n'
ONLY_ON_R = BASH + "[ $(cat /testbed/side) = golden ] || exit 9\n"
FAILURES: dict[str, tuple[dict[str, str], Gate, Side, Level, str]] = {
    "setup": ({"setup_shell": BASH + "return 1\n"}, Gate.SETUP, Side.GOLDEN, Level.NONE, "exit code 1"),
    "no result": ({"run_tests": BASH}, Gate.RESULT, Side.GOLDEN, Level.INSTALLS, "printed nothing"),
    "two results": (
        {"run_tests": BASH + f"echo '{RESULT}'\necho '{RESULT}'\n"},
        Gate.RESULT,
        Side.GOLDEN,
        Level.TESTS_START,
        "is a result too",
    ),
    "few tests": (
        {"run_tests": BASH + COUNTS % (9, 0, 9)},
        Gate.TESTS,
        Side.GOLDEN,
        Level.TESTS_START,
        "9 tests; at least 10",
    ),
    "many failures": (
        {"run_tests": BASH + COUNTS % (29, 71, 100)},
        Gate.PASS_RATE,
        Side.GOLDEN,
        Level.TESTS_START,
        "29 of 100",
    ),
    "changed tree": (
        {"run_tests": BASH + f"echo new > /testbed/side\necho '{RESULT}'\n"},
        Gate.CLEAN_TREE,
        Side.GOLDEN,
        Level.TESTS_START,
        "M side",
    ),
    "left process": (
        {"run_tests": BASH + f"sleep 985 > /dev/null 2>&1 &\necho '{RESULT}'\n"},
        Gate.PROCESSES,
        Side.GOLDEN,
        Level.TESTS_START,
        "sleep 985",
    ),
    "other number": (
        {
            "run_tests": BASH
            + "echo x >> /testbed/ignored\nn=$((10 + $(wc -l < /testbed/ignored)))\n"
            + 'echo "{\\"passed\\": $n, \\"failed\\": 0, \\"skipped\\": 0, \\"total\\": $n}"\n'
        },
        Gate.REPEATABLE,
        Side.GOLDEN,
        Level.TESTS_START,
        "11 tests in the first run, 12 in the second",
    ),
    "second setup": (
        {"setup_shell": BASH + "[ ! -e /testbed/ignored ] || return 5\ntouch /testbed/ignored\n"},
        Gate.REPEATABLE,
        Side.GOLDEN,
        Level.TESTS_START,
        "in the second run: setup_shell.sh ended with exit code 5",
    ),
    "only on golden": ({"setup_shell": ONLY_ON_R}, Gate.SETUP, Side.BASE, Level.NONE, "exit code 9"),
}


@pytest.mark.anyio
@pytest.mark.parametrize("name", FAILURES)
async def test_failed_gate_is_named_with_side_and_log(
    provider: SandboxProvider, tmp_path: Path, name: str
) -> None:
    scripts, gate, side, level, message = FAILURES[name]
    report = await run_gates(provider, tmp_path, **scripts)
    assert report.failure is not None
    assert (report.failure.gate, report.failure.side, report.level) == (gate, side, level)
    assert message in report.failure.message
    assert not report.failure.infrastructure
    assert message in feedback(report.failure)


@pytest.mark.anyio
async def test_waived_gates_are_named_and_do_not_fail_an_environment(
    provider: SandboxProvider, tmp_path: Path
) -> None:
    leaves = f"touch /testbed/more\nsleep 985 > /dev/null 2>&1 &\necho '{RESULT}'\n"
    opening = partial(open_side, provider, tmp_path, {"run_tests": BASH + leaves})
    report = await pass_gates(opening, LIMITS, privileges=[Privileges.NONE], waived=NOT_PUBLISHED)
    assert (report.failure, report.level) == (None, Level.GATES_PASS)
    named = [(each.gate, each.side) for each in report.waived]
    assert named == [(gate, side) for side in Side for gate in (Gate.CLEAN_TREE, Gate.PROCESSES)]
    assert "?? more" in report.waived[0].message
    assert GateReport.from_json(report.to_json()) == report


def test_layer_beyond_its_limit_fails() -> None:
    assert judge_size(MAX_LAYER_BYTES, Side.BASE) is None
    failure = judge_size(MAX_LAYER_BYTES + 1024**2, Side.BASE)
    assert failure is not None
    assert failure.message == "5,121 MiB were written; at most 5,120 MiB may be"
