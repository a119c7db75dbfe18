"""``compile_and_test``: the files of an answer compiled and tested as the instance says (SWE-Refactor §3.2).

Each answer starts from a copy of the built base. If no edit can be seen from other files, only the edited
ones are compiled; else all are. Results are kept by content: equal files are tested once, but
for those that a limit ended.
"""

from __future__ import annotations

import io
import json
import secrets
import tarfile
from dataclasses import replace
from typing import TYPE_CHECKING

from anyio import to_thread

from codetaste.core.files import locked, write_atomically
from codetaste.core.hashing import json_digest
from codetaste.core.text import plural, printable
from codetaste.errors import SandboxError
from codetaste.evaluation.test_runs.cheating.changes import is_test_path
from codetaste.harness.testbed.build import member_header
from codetaste.java.build.build_system import is_build_file
from codetaste.sandbox.base import HOME, Mount
from codetaste.sandbox.egress import no_egress
from codetaste.swe_refactor.score.base_build import ARCHIVE, ARCHIVE_MEMBER, is_gradle
from codetaste.swe_refactor.score.changes.extra_changes import only_adapts
from codetaste.swe_refactor.score.interface import keeps_interface
from codetaste.swe_refactor.score.tested_answer import TestedAnswer, TestOutcome
from codetaste.swe_refactor.verify.outcome import VerificationOutcome
from codetaste.swe_refactor.verify.problem import describe_problem, outcome_of_end, outcome_of_run
from codetaste.swe_refactor.verify.project_sandbox import open_project_sandbox
from codetaste.swe_refactor.verify.side import run_tests

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from codetaste.swe_refactor.dataset.instance import RefactoringInstance
    from codetaste.swe_refactor.score.base_build import BaseBuild
    from codetaste.swe_refactor.verify.project_sandbox import ProjectSandbox
    from codetaste.swe_refactor.verify.side import TestedSide

_FORMAT = 1
_MOUNT = "/opt/codetaste/base"
_AGAIN_AT_MOST = 5
"""New failures that may be chance: the tests are run again if there are no more."""
_MAX_FAILURES = 200
_LOG_CHARS = 8000
_PROFILE = (
    "<profiles><profile><id>codetaste</id><properties>"
    "<maven.compiler.useIncrementalCompilation>false</maven.compiler.useIncrementalCompilation>"
    "</properties></profile></profiles><activeProfiles><activeProfile>codetaste</activeProfile></activeProfiles>"
)
"""Maven's compiler compiles only files newer than their classes; by default it compiles all if one is."""
_MAVEN_JVM = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Options of the JVM that Maven runs in: half of its processor time. That of the tests is as the pom says."""
_RESTORE = f"""
set -e
find /testbed -mindepth 1 -delete
tar -xOf {_MOUNT}/{ARCHIVE} {ARCHIVE_MEMBER} | tar -x --no-overwrite-dir --no-same-owner -C / -f -
tar -xmf /output/edited.tar -C /testbed
mode=$1
shift
for path; do rm -f -- "/testbed/$path"; done
if [ "$mode" = all ]; then
    find /testbed -type d '(' -path '*/target/classes' -o -path '*/target/test-classes' \\
        -o -path '*/target/maven-status' ')' -prune -exec rm -rf {{}} +
elif [ "$mode" = changed ]; then
    sed -i 's|</settings>|{_PROFILE}</settings>|' {HOME}/.m2/settings.xml
fi
rm -f /output/edited.tar
printf '%s\\n' 'MAVEN_OPTS="{_MAVEN_JVM} $MAVEN_OPTS"' >{HOME}/.mavenrc
echo restored
"""
_OUTCOMES = {
    VerificationOutcome.COMPILE_FAILS_BEFORE: TestOutcome.COMPILE_FAILS,
    VerificationOutcome.COMPILE_FAILS_AFTER: TestOutcome.COMPILE_FAILS,
    VerificationOutcome.TESTS_FAIL: TestOutcome.TESTS_FAIL,
    VerificationOutcome.HANGS: TestOutcome.HANGS,
    VerificationOutcome.OUT_OF_MEMORY: TestOutcome.OUT_OF_MEMORY,
}
"""All others are BUILD_ENDS."""
_OF_LIMITS = {TestOutcome.HANGS, TestOutcome.OUT_OF_MEMORY}
"""Not kept by content: a higher limit may give another result."""


async def compile_and_test(
    base_build: BaseBuild,
    instance: RefactoringInstance,
    base: Mapping[str, bytes],
    edited: Mapping[str, bytes | None],
) -> TestedAnswer:
    """Compile and test an answer, or find the result of equal files.

    Args:
        base_build: the files before, built.
        instance: the instance; tests that its refactoring is in may change.
        base: files before, by path; at least those of ``edited`` that exist.
        edited: the whole new content of the changed files, by path; None for a deleted one.

    Raises:
        SandboxError: no sandbox can be opened, or the engine failed.
        StorageFull: no space left.
    """
    changed = {path: data for path, data in sorted(edited.items()) if base.get(path) != data}
    refused = await to_thread.run_sync(_refuse, instance, base, changed)
    if refused is not None:
        return refused
    contents = [[path, None if data is None else data.hex()] for path, data in changed.items()]
    file = base_build.store / "answers" / f"{json_digest([_FORMAT, contents])}.json"
    async with locked(file.with_suffix(".lock"), SandboxError):
        known = await to_thread.run_sync(_read, file)
        if known is not None:
            return known
        incremental = not is_gradle(base_build) and await to_thread.run_sync(_keep_interfaces, base, changed)
        result = await _test(base_build, changed, incremental=incremental)
        if result.outcome not in _OF_LIMITS:
            await to_thread.run_sync(write_atomically, file, json.dumps(result.to_json()))
    return result


def _refuse(
    instance: RefactoringInstance, base: Mapping[str, bytes], changed: Mapping[str, bytes | None]
) -> TestedAnswer | None:
    """Return the result of an answer that changes what decides about it."""
    own = {instance.file_path_before, instance.file_path_after}
    own |= {each.file_path for each in instance.diff_locations}
    for path, data in changed.items():
        if is_build_file(path):
            return TestedAnswer(TestOutcome.EDITS_BUILD, f"it changes {printable(path, 200)}")
        if path not in own and is_test_path(path) and not only_adapts(instance, base.get(path), data):
            return TestedAnswer(TestOutcome.EDITS_TESTS, f"it changes {printable(path, 200)}")
    return None


def _read(file: Path) -> TestedAnswer | None:
    try:
        return TestedAnswer.from_json(json.loads(file.read_text("utf-8")))
    except (OSError, ValueError, LookupError, TypeError):
        return None


def _keep_interfaces(base: Mapping[str, bytes], changed: Mapping[str, bytes | None]) -> bool:
    return all(
        path.endswith(".java") and data is not None and path in base and keeps_interface(base[path], data)
        for path, data in changed.items()
    )


async def _test(
    base_build: BaseBuild, changed: Mapping[str, bytes | None], *, incremental: bool
) -> TestedAnswer:
    context = base_build.context
    mounted = replace(context, mounts=(*context.mounts, Mount(base_build.store.absolute(), _MOUNT)))
    job = f"answer-{secrets.token_hex(4)}"
    opened = open_project_sandbox(mounted, job, base_build.build, no_egress(), base_build.prepared)
    async with opened as sandbox:
        try:
            tested = await _run(sandbox, base_build, changed, incremental=incremental)
            new = tested.failures - base_build.failures
            if 0 < len(new) <= _AGAIN_AT_MOST:
                again = await _run(sandbox, base_build, changed, incremental=incremental)
                if again.problem is None and again.result is not None:
                    new &= again.failures
        except SandboxError:
            outcome = outcome_of_end(sandbox.sandbox.end)
            if outcome is None:
                raise
            return TestedAnswer(_OUTCOMES.get(outcome, TestOutcome.BUILD_ENDS), str(sandbox.sandbox.end))
    found = _result(tested, new)
    return replace(
        found,
        jdk=base_build.jdk,
        command=tested.run.command,
        incremental=incremental,
        tool_s=tested.run.result.wall_s,
    )


async def _run(
    project: ProjectSandbox, base: BaseBuild, changed: Mapping[str, bytes | None], *, incremental: bool
) -> TestedSide:
    """Put the built base with the changed files into the sandbox, and run the tests."""
    prefix = f"{base.folder}/" if base.folder else ""
    inside = {path.removeprefix(prefix): data for path, data in changed.items() if path.startswith(prefix)}
    await project.sandbox.put(_archive({path: data for path, data in inside.items() if data is not None}))
    mode = "as it is" if is_gradle(base) else "changed" if incremental else "all"
    deleted = [path for path, data in inside.items() if data is None]
    done = await project.script(_RESTORE, mode, *deleted, limit_s=600)
    if b"restored" not in done:
        raise SandboxError("the built tree cannot be put into a sandbox")
    return await run_tests(project, base.side, base.jdk, base.context.limits.tests_s)


def _archive(files: Mapping[str, bytes]) -> bytes:
    """Return an archive with one member, the archive of the edited files: paths are resolved inside alone."""
    inner = io.BytesIO()
    for path, data in files.items():
        _add(inner, path, data)
    outer = io.BytesIO()
    inner.write(b"\0" * 2 * tarfile.BLOCKSIZE)
    _add(outer, "output/edited.tar", inner.getvalue())
    outer.write(b"\0" * 2 * tarfile.BLOCKSIZE)
    return outer.getvalue()


def _add(into: io.BytesIO, path: str, data: bytes) -> None:
    into.write(member_header(path.encode("utf-8", "surrogateescape"), tarfile.REGTYPE, size=len(data)))
    into.write(data + b"\0" * (-len(data) % tarfile.BLOCKSIZE))


def _result(tested: TestedSide, new: frozenset[str]) -> TestedAnswer:
    run, result = tested.run, tested.result
    problem = outcome_of_run(run, after=True) if result is None else tested.problem
    if problem is not None:
        outcome = _OUTCOMES.get(problem, TestOutcome.BUILD_ENDS)
        compiles = False if outcome is TestOutcome.COMPILE_FAILS else None if result is None else True
        found = TestedAnswer(outcome, describe_problem(problem, "after", run), compiles)
        return replace(found, log=run.output[-_LOG_CHARS:])
    if result is None or not tested.statuses:
        return TestedAnswer(TestOutcome.TESTS_FAIL, "there is no report of any test", compiles=True)
    counts = TestedAnswer(
        TestOutcome.PASSED,
        compiles=True,
        passed=result.passed,
        failed=result.failed,
        skipped=result.skipped,
    )
    if not new:
        return counts
    names = tuple(sorted(new))
    detail = f"{plural(len(names), 'test')} failed after the answer alone: {printable(names[0], 150)}"
    return replace(counts, outcome=TestOutcome.TESTS_FAIL, detail=detail, new_failures=names[:_MAX_FAILURES])
