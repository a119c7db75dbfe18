"""Run the three scripts of an environment in an open sandbox (CodeTaste §3.3, Figure 11).

The scripts are mounted at /scripts, the code is in /testbed. ``setup_system.sh`` runs as root where the
environment needs that, everything else as the ordinary user. Only what ``run_tests`` itself writes to its
standard output can be a result: the setup scripts write to standard error here.

Tests run as the user that the scripts run as, so they can write to the scripts' outputs and kill them. What a
killed script has written is therefore no result: neither ``run_tests`` nor the shell may end by a signal.
"""

from __future__ import annotations

import secrets
import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from codetaste.core.text import printable
from codetaste.environment.system_services import system_services
from codetaste.errors import SandboxError
from codetaste.evaluation.test_runs.collect_reports import collect_reports
from codetaste.evaluation.test_runs.problems import RunProblem
from codetaste.evaluation.test_runs.result_line import (
    MAX_HEAD_BYTES,
    MAX_TAIL_BYTES,
    RunOutput,
    parse_run_output,
)
from codetaste.evaluation.test_runs.test_run import TestRun
from codetaste.harness.testbed.status import changed_files
from codetaste.sandbox.base import CommandLimits, EndReason, MemoryEnd, Privileges

if TYPE_CHECKING:
    from collections.abc import Iterable

    from codetaste.evaluation.metrics import TestCounts
    from codetaste.sandbox.base import CommandResult, Sandbox

MAX_TESTS_S = 15 * 60.0
"""Time limit of a test run, seconds (CodeTaste, Figure 11)."""
MAX_SETUP_S = 30 * 60.0
"""Time limit of the setup scripts, seconds; the paper has none."""
_LOG_BYTES = 2 * 1024**2
_MAX_MARK_BYTES = 256
_LOG_CHARS = 16_000
_GRACE_S = 30.0
_MAX_LISTED = 50
_FULL_BYTES, _OWN_SHARE = 1024**2, 0.9
"""A disk with less left is full; a run that has written this share of it has filled it."""
_BY_SIGNAL = 128
"""Added to the number of the signal that ended a program, in a shell's exit code."""
_SIGNALS = frozenset(range(1, 65))
_HINTS = {"127": ": the image has no git"}
_OWN = b"__codetaste_"
"""What the command lines of the script's own processes have."""

# Its standard output has a mark before and after that of run_tests. "timeout" ends with 124, or 137 after a
# KILL; a suite may do so too, so that the time decides. ``source`` is in a list, so that a ``set -e`` in the
# script has the effect that it has by the contract. The mark comes by standard input, as every process reads
# the arguments of the others, and traps of the script could end the shell as if all were well.
_USER_SCRIPT = """
__codetaste_limit=$1 __codetaste_clean=$2 __codetaste_system=$3
__codetaste_hidden=("${@:4}")
shift $#
IFS= read -r __codetaste_mark
exec </dev/null
__codetaste_processes() {
    for __codetaste_one in /proc/[0-9]*; do
        [ -O "$__codetaste_one" ] || continue
        printf '%s %s\\n' "${__codetaste_one#/proc/}" \
            "$(tr '\\0\\n' '  ' 2>/dev/null <"$__codetaste_one/cmdline" | head -c 200)"
    done
    return 0
}
cd /testbed || exit 125
if [ -n "$__codetaste_clean" ]; then
    git clean -xdffq >&2 || { echo "$__codetaste_mark clean $?"; exit 125; }
fi
if [ -n "$__codetaste_system" ]; then
    /scripts/setup_system.sh >&2 || { echo "$__codetaste_mark system $?"; exit 125; }
fi
source /scripts/setup_shell.sh >&2 && {
    __codetaste_before=$(__codetaste_processes 2>/dev/null)
    trap - EXIT HUP INT QUIT TERM
    echo "$__codetaste_mark tests"
    env "${__codetaste_hidden[@]/#/-u}" timeout -k 10 "$__codetaste_limit" /scripts/run_tests &&
        __codetaste_code=0 || __codetaste_code=$?
    printf '\\n%s end %s\\n' "$__codetaste_mark" "$__codetaste_code"
    __codetaste_after=$(__codetaste_processes 2>/dev/null)
    printf '%s\\n%s before\\n%s\\n' "$__codetaste_after" "$__codetaste_mark" "$__codetaste_before"
    exit 0
}
"""


@dataclass(frozen=True, slots=True)
class SuiteLimits:
    """Time limits of the scripts, seconds."""

    setup_s: float = MAX_SETUP_S
    tests_s: float = MAX_TESTS_S


@dataclass(slots=True)
class _Output:
    """Standard output of the user's script as it arrives: its beginning, its end, and when the marks came."""

    mark: bytes
    head: bytearray = field(default_factory=bytearray)
    tail: bytearray = field(default_factory=bytearray)
    omitted: int = 0
    tests_began_s: float | None = None
    tests_began_at: float = 0.0
    """In seconds of the epoch, as times of files are."""
    ended_s: float | None = None
    _line: bytes = b""

    async def take(self, piece: bytes) -> None:
        """Store a piece, and note when the marks come."""
        room = MAX_HEAD_BYTES - len(self.head)
        self.head += piece[:room]
        self.tail += piece[room:]
        if len(self.tail) > 2 * MAX_TAIL_BYTES:
            self.omitted += len(self.tail) - MAX_TAIL_BYTES
            del self.tail[:-MAX_TAIL_BYTES]
        *lines, self._line = (self._line + piece).split(b"\n")
        self._line = self._line[-_MAX_MARK_BYTES:]
        for line in lines:
            if self.tests_began_s is None and line == self.mark + b" tests":
                self.tests_began_s, self.tests_began_at = time.monotonic(), time.time()
            elif line.startswith(self.mark + b" end "):
                self.ended_s = time.monotonic()

    def parts(self) -> tuple[bytes, RunOutput, bytes]:
        """Return what came before the tests, what they wrote, and what came after, b"" if nothing."""
        before, _, head = bytes(self.head).partition(self.mark + b" tests\n")
        if not self.tail:
            tests, _, after = head.rpartition(b"\n" + self.mark + b" end ")
            return before, RunOutput(tests if after else head), after
        tests, _, after = bytes(self.tail).rpartition(b"\n" + self.mark + b" end ")
        return before, RunOutput(head, tests if after else bytes(self.tail), self.omitted), after


async def run_suite(
    sandbox: Sandbox,
    privileges: Privileges,
    limits: SuiteLimits | None = None,
    *,
    clean: bool = False,
    hidden: Iterable[str] = (),
) -> TestRun:
    """Run the scripts once and return what they gave; every behaviour of theirs is a result.

    Args:
        sandbox: an open sandbox with the code in /testbed and the scripts at /scripts.
        privileges: those of the sandbox; with NONE ``setup_system.sh`` runs as the user.
        limits: time limits.
        clean: remove all files that git does not have first, as the contract does.
        hidden: variables that the setup scripts have and ``run_tests`` has not.
    """
    limits = limits or SuiteLimits()
    began_s = time.monotonic()
    try:
        async with system_services(sandbox, privileges, limits.setup_s) as problem:
            if problem:
                failed = RunProblem.SETUP_SYSTEM_FAILED
                run = TestRun(problem=failed, message=problem, setup_s=time.monotonic() - began_s)
            else:
                options = ("1" if clean else "", "1" * (privileges is Privileges.NONE), *hidden)
                run = await _run_user_script(sandbox, limits, began_s, options)
            return await _blame_full_disk(sandbox, run)
    except SandboxError as error:
        return _ended_run(sandbox, error)


async def _blame_full_disk(sandbox: Sandbox, run: TestRun) -> TestRun:
    """Return ``run``, or that the machine's disk is full: what fails then says nothing about the code.

    A run that has filled nearly all of the disk itself is to blame for it.
    """
    if run.problem is None and run.counts is not None and not run.counts.failed:
        return run
    found = await sandbox.run(["stat", "-f", "-c", "%a %b %S", "/testbed"], workdir="/")
    try:
        free, blocks, size = map(int, found.stdout.split())
    except ValueError:
        return run
    if free * size >= _FULL_BYTES or await sandbox.written_bytes() > _OWN_SHARE * blocks * size:
        return run
    text = f"the disk of the machine is full ({run.message or 'tests failed'}); free some space"
    return replace(run, counts=None, problem=RunProblem.HOST_DISK_FULL, message=text)


async def _run_user_script(
    sandbox: Sandbox, limits: SuiteLimits, began_s: float, options: tuple[str, ...]
) -> TestRun:
    mark = f"codetaste-{secrets.token_hex(16)}"
    output = _Output(mark.encode())
    arguments = [f"{limits.tests_s:.0f}", *options]
    done = await sandbox.run(
        ["/bin/bash", "-c", _USER_SCRIPT, "codetaste", *arguments],
        limits=CommandLimits(limits.setup_s + limits.tests_s + _GRACE_S, _LOG_BYTES),
        sink=output.take,
        stdin=f"{mark}\n".encode(),
    )
    now_s = time.monotonic()
    from_s = output.tests_began_s or now_s
    run = _judge_output(done, output, limits)
    run = replace(run, setup_s=from_s - began_s, tests_s=(output.ended_s or now_s) - from_s)
    if output.tests_began_s is None:
        return run
    reports = await collect_reports(sandbox, output.tests_began_at, run.counts)
    return replace(
        run,
        cases=reports.cases,
        report_contradictions=reports.contradictions,
        report_notes=reports.notes,
        changed_files=await changed_files(sandbox),
    )


def _judge_output(done: CommandResult, output: _Output, limits: SuiteLimits) -> TestRun:
    before, tests, after = output.parts()
    log = _log(done.stderr, tests.tail or tests.head)
    if done.memory is not None:
        problem, text = _PROBLEMS_OF_MEMORY[done.memory]
        return TestRun(problem=problem, message=text, log=log)
    if output.tests_began_s is None:
        problem, text = _setup_problem(done, before, output.mark, limits)
        return TestRun(problem=problem, message=text, log=log)
    return replace(_judge_tests(done, tests, after, output, limits), log=log)


def _judge_tests(
    done: CommandResult, tests: RunOutput, after: bytes, output: _Output, limits: SuiteLimits
) -> TestRun:
    too_late = TestRun(
        problem=RunProblem.TIMEOUT, message=f"run_tests was ended after {limits.tests_s:.0f} s"
    )
    if not after or done.exit_code != 0:
        ended = TestRun(problem=RunProblem.NO_RESULT, message="run_tests ended its shell")
        return too_late if done.timed_out else ended
    code_text, _, lists = after.partition(b"\n")
    code = int(code_text) if code_text.isdigit() else None
    took_s = (output.ended_s or 0.0) - (output.tests_began_s or 0.0)
    if code in {124, 137} and took_s >= limits.tests_s - 1:
        return too_late
    result = parse_run_output(tests)
    run = TestRun(exit_code=code, left_processes=_left_processes(lists, output.mark))
    if _was_killed(code, result.counts):
        text = f"run_tests was killed by signal {(code or 0) - _BY_SIGNAL}"
        return replace(run, problem=RunProblem.NO_RESULT, message=text)
    return replace(
        run,
        counts=result.counts,
        problem=result.problem,
        message=result.message,
        contradictions=result.contradictions,
    )


def _was_killed(code: int | None, counts: TestCounts | None) -> bool:
    """Whether a signal ended ``run_tests``; the exit code of some runners is the number of failed tests."""
    if code is None or code - _BY_SIGNAL not in _SIGNALS:
        return False
    return counts is None or counts.failed != code


def _setup_problem(
    done: CommandResult, before: bytes, mark: bytes, limits: SuiteLimits
) -> tuple[RunProblem, str]:
    if done.timed_out:
        text = f"the setup scripts did not end within {limits.setup_s:.0f} s"
        return RunProblem.SETUP_SHELL_FAILED, text
    if (found := before.rpartition(mark + b" system ")[2]) != before:
        code = found.split(b"\n")[0].decode(errors="replace")
        return RunProblem.SETUP_SYSTEM_FAILED, f"setup_system.sh ended with exit code {code}"
    if (found := before.rpartition(mark + b" clean ")[2]) != before:
        code = found.split(b"\n")[0].decode(errors="replace")
        text = f"git clean -xdff ended with exit code {code}{_HINTS.get(code, '')}"
        return RunProblem.SETUP_SHELL_FAILED, text
    text = f"setup_shell.sh ended with exit code {done.exit_code}"
    if done.exit_code == 0:
        text = "setup_shell.sh ended the shell that it was sourced in"
    return RunProblem.SETUP_SHELL_FAILED, text


def _left_processes(lists: bytes, mark: bytes) -> tuple[str, ...]:
    """Return the processes that exist after the tests and did not before, but for the script's own."""
    after, _, before = lists.partition(mark + b" before\n")
    known = {line.split(b" ")[0] for line in before.split(b"\n")}
    left = [
        printable(line.decode(errors="replace").partition(" ")[2].strip())
        for line in after.split(b"\n")
        if line.strip() and line.split(b" ")[0] not in known and _OWN not in line
    ]
    return tuple(each for each in left if each.strip())[:_MAX_LISTED]


_PROBLEMS_OF_MEMORY = {
    MemoryEnd.LIMIT: (RunProblem.OUT_OF_MEMORY, "the memory limit was reached"),
    MemoryEnd.HOST: (RunProblem.HOST_OUT_OF_MEMORY, "the machine has too little memory"),
}
_PROBLEMS_OF_ENDS = {
    EndReason.OUT_OF_MEMORY: RunProblem.OUT_OF_MEMORY,
    EndReason.DISK_FULL: RunProblem.DISK_FULL,
    EndReason.TOO_MANY_PROCESSES: RunProblem.TOO_MANY_PROCESSES,
    EndReason.SUPERVISOR_KILLED: RunProblem.SUPERVISOR_KILLED,
}


def _ended_run(sandbox: Sandbox, error: SandboxError) -> TestRun:
    """Return the result of a run whose sandbox ended; only some ends are the tests' own."""
    end = sandbox.end
    problem = _PROBLEMS_OF_ENDS.get(end.reason, RunProblem.SANDBOX_LOST) if end else RunProblem.SANDBOX_LOST
    return TestRun(problem=problem, message=str(end or error))


def _log(stderr: bytes, stdout: bytes) -> str:
    parts = [stderr.decode(errors="replace").rstrip(), stdout.decode(errors="replace").rstrip()]
    text = "\n".join(filter(None, parts))
    return text if len(text) <= _LOG_CHARS else f"…{text[-_LOG_CHARS:]}"
