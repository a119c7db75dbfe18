"""The scripts of an environment run in real sandboxes: every behaviour of theirs is a result."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from codetaste.evaluation.metrics import TestCounts
from codetaste.evaluation.test_runs.cases import CaseStatus
from codetaste.evaluation.test_runs.problems import RunProblem
from codetaste.evaluation.test_runs.suite import SuiteLimits, run_suite
from codetaste.evaluation.test_runs.test_run import TestRun
from codetaste.sandbox.base import CommandResult, Privileges, Sandbox, SandboxProvider
from support.environment.suites import RESULT, suite_sandbox
from support.sandbox.providers import open_bubblewrap

pytestmark = pytest.mark.anyio
LIMITS = SuiteLimits(setup_s=60, tests_s=30)
BASH = "#!/bin/bash\n"


@pytest.fixture
async def provider(tmp_path: Path, bubblewrap: Path, anyio_backend: str) -> Any:
    async with open_bubblewrap(tmp_path / "sandboxes") as opened:
        yield opened


async def run(
    provider: SandboxProvider, folder: Path, limits: SuiteLimits = LIMITS, **scripts: Any
) -> TestRun:
    async with suite_sandbox(provider, folder, **scripts) as sandbox:
        found = await run_suite(sandbox, Privileges.NONE, limits, clean=True)
    assert TestRun.from_json(found.to_json()) == found
    return found


async def test_regular_run_has_counts_times_and_exit_code(provider: SandboxProvider, tmp_path: Path) -> None:
    found = await run(
        provider,
        tmp_path,
        setup_shell=BASH + "export GREETING=hello\necho installing",
        run_tests=BASH + f"echo $GREETING\npwd\nid -u\necho '{RESULT}'\nexit 3\n",
    )
    assert found.counts == TestCounts(12, 1, 2, 15)
    assert (found.problem, found.exit_code, found.contradictions) == (None, 3, ())
    assert (found.changed_files, found.left_processes) == ((), ())
    assert found.log.splitlines()[:4] == ["installing", "hello", "/testbed", "1000"]
    assert found.setup_s > 0
    assert found.tests_s > 0


async def test_failed_clean_is_not_taken_for_a_setup_script(
    provider: SandboxProvider, tmp_path: Path
) -> None:
    async with suite_sandbox(provider, tmp_path) as sandbox:
        await sandbox.run(["rm", "-rf", "/testbed/.git"])
        found = await run_suite(sandbox, Privileges.NONE, LIMITS, clean=True)
    assert found.problem is RunProblem.SETUP_SHELL_FAILED
    assert found.message == "git clean -xdff ended with exit code 128"


class FullDisk:
    """A sandbox on a disk of 4 GB with ``free`` blocks, of which it has written ``written`` bytes."""

    def __init__(self, sandbox: Sandbox, free: int, written: int) -> None:
        self._sandbox, self._free, self._written = sandbox, free, written

    def __getattr__(self, name: str) -> Any:
        return getattr(self._sandbox, name)

    async def run(self, command: Sequence[str], **more: Any) -> CommandResult:
        done = await self._sandbox.run(command, **more)
        return replace(done, stdout=f"{self._free} 1000000 4096\n".encode()) if command[0] == "stat" else done

    async def written_bytes(self) -> int:
        return self._written


@pytest.mark.parametrize(
    ("free", "written", "failed", "problem"),
    [
        (0, 10**9, 1, RunProblem.HOST_DISK_FULL),
        (10_000, 10**9, 1, None),
        (0, 4 * 10**9, 1, None),
        (0, 10**9, 0, None),
    ],
)
async def test_full_disk_of_the_machine_is_no_failed_test(
    provider: SandboxProvider,
    tmp_path: Path,
    free: int,
    written: int,
    failed: int,
    problem: RunProblem | None,
) -> None:
    result = RESULT.replace('"failed": 1', f'"failed": {failed}')
    async with suite_sandbox(provider, tmp_path, run_tests=f"{BASH}echo '{result}'\n") as sandbox:
        full: Any = FullDisk(sandbox, free, written)
        found = await run_suite(full, Privileges.NONE, LIMITS)
    assert found.problem is problem
    assert (found.counts is None) is (problem is not None)


async def test_hidden_variables_are_those_of_the_setup_alone(
    provider: SandboxProvider, tmp_path: Path
) -> None:
    say = 'echo "${PROXY-none} ${OTHER-none}"\n'
    scripts = {
        "setup_shell": f"{BASH}export PROXY=p OTHER=o\n{say}",
        "run_tests": f"{BASH}{say}echo '{RESULT}'\n",
    }
    async with suite_sandbox(provider, tmp_path, **scripts) as sandbox:
        found = await run_suite(sandbox, Privileges.NONE, LIMITS, hidden=["PROXY", "ABSENT"])
    assert found.counts == TestCounts(12, 1, 2, 15)
    assert found.log.splitlines()[:2] == ["p o", "none o"]


CASES: dict[str, tuple[dict[str, str], RunProblem, str]] = {
    "system fails": (
        {"setup_system": BASH + "exit 7\n"},
        RunProblem.SETUP_SYSTEM_FAILED,
        "setup_system.sh ended with exit code 7",
    ),
    "shell fails": (
        {"setup_shell": BASH + "echo no >&2\nreturn 4\n"},
        RunProblem.SETUP_SHELL_FAILED,
        "setup_shell.sh ended with exit code 4",
    ),
    "shell exits": (
        {"setup_shell": BASH + "exit 0\n"},
        RunProblem.SETUP_SHELL_FAILED,
        "setup_shell.sh ended the shell that it was sourced in",
    ),
    "nothing printed": ({"run_tests": BASH}, RunProblem.NO_RESULT, "run_tests printed nothing"),
    "negative": (
        {"run_tests": BASH + 'echo \'{"passed": -1, "failed": 0, "skipped": 0, "total": 20}\'\n'},
        RunProblem.BAD_COUNTS,
        "must be integers",
    ),
    "absurd": (
        {"run_tests": BASH + 'echo \'{"passed": 99999999999, "failed": 0, "skipped": 0, "total": 2}\'\n'},
        RunProblem.BAD_COUNTS,
        "must be integers",
    ),
    "text after": (
        {"run_tests": BASH + f"echo '{RESULT}'\necho done\n"},
        RunProblem.NO_RESULT,
        "1 line follows",
    ),
    "killed": ({"run_tests": BASH + "kill -9 $PPID\n"}, RunProblem.NO_RESULT, ""),
}


@pytest.mark.parametrize("name", CASES)
async def test_bad_scripts_are_named_problems(provider: SandboxProvider, tmp_path: Path, name: str) -> None:
    scripts, problem, message = CASES[name]
    found = await run(provider, tmp_path, **scripts)
    assert (found.problem, found.counts) == (problem, None)
    assert message in found.message
    assert not problem.infrastructure


async def test_tests_beyond_their_time_are_ended(provider: SandboxProvider, tmp_path: Path) -> None:
    limits = SuiteLimits(setup_s=60, tests_s=2)
    script = BASH + f"echo '{RESULT}'\ntrap '' TERM\nsleep 600 & wait\n"
    found = await run(provider, tmp_path, limits, run_tests=script)
    assert (found.problem, found.message) == (RunProblem.TIMEOUT, "run_tests was ended after 2 s")


async def test_json_of_a_test_is_no_result(provider: SandboxProvider, tmp_path: Path) -> None:
    faked = '{"passed": 99, "failed": 0, "skipped": 0, "total": 99}'
    found = await run(provider, tmp_path, run_tests=BASH + f"echo '{faked}'\necho '{RESULT}'\n")
    assert found.counts == TestCounts(12, 1, 2, 15)
    assert "is a result too" in found.contradictions[0]


async def test_result_of_a_setup_script_does_not_count(provider: SandboxProvider, tmp_path: Path) -> None:
    found = await run(
        provider, tmp_path, setup_shell=BASH + f"echo '{RESULT}'\n", run_tests=BASH + "echo none\n"
    )
    assert found.problem is RunProblem.NO_RESULT


async def test_left_processes_and_changed_files_are_named(provider: SandboxProvider, tmp_path: Path) -> None:
    script = BASH + f"setsid sleep 987 >/dev/null 2>&1 &\necho 2 > code.txt\ntouch ignored\necho '{RESULT}'\n"
    found = await run(provider, tmp_path, run_tests=script)
    assert found.counts is not None
    assert found.left_processes == ("sleep 987",)
    assert found.changed_files == (" M code.txt",)


async def test_services_of_the_setup_are_not_left_processes(
    provider: SandboxProvider, tmp_path: Path
) -> None:
    found = await run(provider, tmp_path, setup_system=BASH + "sleep 986 >/dev/null 2>&1 &\n")
    assert (found.problem, found.left_processes) == (None, ())


async def test_report_of_the_run_is_read(provider: SandboxProvider, tmp_path: Path) -> None:
    cases = "".join(f"<testcase classname='m' name='t{number}'/>" for number in range(11))
    report = f"<testsuite>{cases}<testcase classname='m' name='bad'><failure/></testcase></testsuite>"
    old = {"old/junit.xml": report.replace("bad", "old"), ".gitignore": "junit.xml\n!old/junit.xml\n"}
    result = '{"passed": 11, "failed": 1, "skipped": 0, "total": 12}'
    script = BASH + f"cat > junit.xml <<\"END\"\n{report}\nEND\necho '{result}'\n"
    found = await run(provider, tmp_path, run_tests=script, files=old)
    assert len(found.cases) == 12
    assert found.cases["m::bad"] is CaseStatus.FAILED
    assert found.report_contradictions == {}


async def test_count_that_differs_from_the_report_is_named(provider: SandboxProvider, tmp_path: Path) -> None:
    report = "<testsuite><testcase classname='m' name='t'/></testsuite>"
    script = BASH + f"echo \"{report}\" > /tmp/junit.xml\necho '{RESULT}'\n"
    found = await run(provider, tmp_path, run_tests=script)
    assert set(found.report_contradictions) == {"passed", "failed", "skipped", "total"}


async def test_report_that_cannot_be_read_is_named(provider: SandboxProvider, tmp_path: Path) -> None:
    evil = "<!DOCTYPE a [<!ENTITY b 'c'>]><testsuite/>"
    script = BASH + f"mkdir -p /tmp/a; echo \"{evil}\" > /tmp/a/junit.xml\necho '{RESULT}'\n"
    found = await run(provider, tmp_path, run_tests=script)
    (note,) = found.report_notes
    assert note.startswith("tmp/a/junit.xml: ")
    assert (found.problem, len(found.cases)) == (None, 0)


async def test_clean_removes_what_git_does_not_have(provider: SandboxProvider, tmp_path: Path) -> None:
    script = BASH + f"ls\ntouch ignored\necho '{RESULT}'\n"
    async with suite_sandbox(provider, tmp_path, run_tests=script) as sandbox:
        first = await run_suite(sandbox, Privileges.NONE, LIMITS)
        again = await run_suite(sandbox, Privileges.NONE, LIMITS)
        cleaned = await run_suite(sandbox, Privileges.NONE, LIMITS, clean=True)
    assert "ignored" not in first.log
    assert "ignored" in again.log
    assert "ignored" not in cleaned.log
