"""``BaseBuild``: the files before an instance's commit, built and tested once for all answers to it.

The built tree is kept as an archive. Each answer gets a copy of it in a sandbox of its own, so that no answer
meets what the code of another one has left.
"""

from __future__ import annotations

import json
import secrets
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio
from anyio import to_thread

from codetaste.core.files import locked, remove_tree, storage_error, write_atomically
from codetaste.core.hashing import json_digest
from codetaste.errors import CodetasteError, SandboxError
from codetaste.java.build.build_system import BuildTool, build_files_digest, find_build, project_folder
from codetaste.java.build.jdk_evidence import EvidenceKind, JdkEvidence, find_jdk_evidence
from codetaste.java.build.pom import find_arg_line, read_poms
from codetaste.sandbox.base import HOME
from codetaste.sandbox.egress import no_egress
from codetaste.source.tree.store import tree_digest
from codetaste.swe_refactor.verify.outcome import VerificationOutcome
from codetaste.swe_refactor.verify.prepare import PreparationFailed, prepare_build
from codetaste.swe_refactor.verify.problem import describe_problem, outcome_of_end, outcome_of_run
from codetaste.swe_refactor.verify.project_sandbox import open_project_sandbox
from codetaste.swe_refactor.verify.side import CandidateSide, run_side

if TYPE_CHECKING:
    from pathlib import Path

    from codetaste.java.build.build_system import Build
    from codetaste.source.repository import Repository
    from codetaste.swe_refactor.dataset.instance import RefactoringInstance
    from codetaste.swe_refactor.verify.local_repository import PreparedBuild
    from codetaste.swe_refactor.verify.project_sandbox import ProjectSandbox
    from codetaste.swe_refactor.verify.settings import VerifyContext

ARCHIVE = "built.tar"
"""The archive in the folder of a base: its one member is the archive of the built tree."""
ARCHIVE_MEMBER = "built/tree.tar"
_FORMAT = 1
_RECORD = "base.json"
_PACK = f"""
mkdir /output/built && tar -cf /output/{ARCHIVE_MEMBER} -C / --exclude={HOME[1:]}/.m2/repository \\
    --exclude={HOME[1:]}/.gradle testbed {HOME[1:]} && echo packed
"""


class BaseFails(CodetasteError):
    """The files before the commit cannot be built or tested here; the message says why."""


@dataclass(frozen=True, slots=True)
class BaseBuild:
    """What is known of the files before, and where their built tree is.

    Attributes:
        context: the sandboxes, limits and dependencies of the project.
        store: the folder with the archive, and with the results of answers.
        folder: of the project within the repository; "" for the top.
        build: the build tool.
        prepared: JDKs of the sandbox.
        jdk: feature release of the JDK that is used.
        side: the poms' options of the JVM of tests.
        failures: names of the tests that fail before.
    """

    context: VerifyContext
    store: Path
    folder: str
    build: Build
    prepared: PreparedBuild
    jdk: int
    side: CandidateSide
    failures: frozenset[str]


async def build_base(
    context: VerifyContext, repository: Repository, commit: str, instance: RefactoringInstance, store: Path
) -> BaseBuild:
    """Build and test the files before an instance's commit, or find that it was done.

    Dependencies and JDK are those of the instance's verification if it was in the same ``context``, else they
    are found anew. The JDK that the instance names is preferred.

    Args:
        context: what verifications of the project share.
        repository: its clone.
        commit: the commit before that of the instance, a full hash.
        instance: the instance.
        store: folder for results; may be shared by processes.

    Raises:
        BaseFails: they cannot be built, or tested.
        SourceError: the commit cannot be read.
        SandboxError: no sandbox can be opened, or the engine failed.
        StorageFull: no space left.
    """
    await context.local.open()
    scratch = context.scratch / f"base-{secrets.token_hex(6)}"
    try:
        await repository.export(commit, scratch)
        return await _build(context, instance, scratch, store)
    finally:
        with anyio.CancelScope(shield=True):
            await to_thread.run_sync(remove_tree, scratch)


async def _build(context: VerifyContext, instance: RefactoringInstance, tree: Path, store: Path) -> BaseBuild:
    path = instance.diff_locations[0].file_path
    folder = await to_thread.run_sync(project_folder, tree, path)
    build, side = await to_thread.run_sync(_read_side, tree / folder)
    if build.tool is None:
        raise BaseFails(build.problem)
    prepared = await _prepare(context, build, side, instance.java_release)
    jdk = prepared.jdk
    digest = await to_thread.run_sync(tree_digest, side.tree)
    key = json_digest([_FORMAT, digest, context.image, str(build.tool), jdk, dict(prepared.jdks)])
    place = store / key
    base = BaseBuild(context, place, folder, build, prepared, jdk, side, frozenset())
    async with locked(store / f"{key}.lock", SandboxError):
        data = await to_thread.run_sync(_read_record, place)
        if data is None:
            data = await _run(base)
    if data["problem"]:
        raise BaseFails(data["problem"])
    return replace(base, failures=frozenset(data["failures"]))


def _read_side(tree: Path) -> tuple[Build, CandidateSide]:
    build, arg_line = find_build(tree), find_arg_line(read_poms(tree))
    return build, CandidateSide("before", tree, build_files_digest(tree), arg_line, ())


async def _prepare(
    context: VerifyContext, build: Build, side: CandidateSide, named: int | None
) -> PreparedBuild:
    """Return the prepared build, with the JDK that the instance names if it can be.

    A profile of the project may need other plugins with another JDK, so each has a preparation of its own.
    """
    keys: tuple[str, ...] = context.image, str(build.tool), side.build_key, side.build_key
    known = await to_thread.run_sync(partial(context.local.find, *keys))
    if known is not None and (named in {None, known.jdk} or named not in known.jdks):
        return known
    if named is not None:
        keys = *keys, f"JDK {named}"
    find = partial(to_thread.run_sync, partial(context.local.find, *keys))
    if (known := await find()) is not None:
        return known
    if named is not None:
        evidence: tuple[JdkEvidence, ...] = (JdkEvidence(EvidenceKind.PINNED, named, "the instance"),)
    else:
        evidence = await to_thread.run_sync(find_jdk_evidence, side.tree, build)
    async with context.local.writing():
        if (known := await find()) is not None:  # another job has prepared it
            return known
        try:
            preparation = await prepare_build(context, "base", build, (side, side), evidence)
        except PreparationFailed as failed:
            raise BaseFails(f"{failed.result.outcome}: {failed.result.detail}") from None
        await to_thread.run_sync(partial(context.local.record, preparation.prepared, *keys))
    return preparation.prepared


def _read_record(store: Path) -> dict[str, Any] | None:
    try:
        data: dict[str, Any] = json.loads((store / _RECORD).read_text("utf-8"))
    except (OSError, ValueError):
        return None
    return data


async def _run(base: BaseBuild) -> dict[str, Any]:
    """Test the base, keep its tree and the result; return the result."""
    context, side = base.context, base.side
    await anyio.Path(base.store).mkdir(parents=True, exist_ok=True)
    async with open_project_sandbox(context, "base", base.build, no_egress(), base.prepared) as sandbox:
        try:
            tested = await run_side(sandbox, side, base.jdk, context.limits.tests_s)
            problem, outcome = "", tested.problem
            if tested.result is None:
                outcome = outcome_of_run(tested.run, after=False)
                problem = f"{outcome}: {describe_problem(outcome, 'before', tested.run)}"
            elif tested.problem is not None:
                problem = f"{tested.problem}: {describe_problem(tested.problem, 'before', tested.run)}"
            elif not tested.statuses:
                problem = f"{VerificationOutcome.NO_TESTS}: there is no report of any test"
            else:
                await _keep_tree(sandbox, base.store / ARCHIVE)
        except SandboxError:
            outcome = outcome_of_end(sandbox.sandbox.end)
            if outcome is None:
                raise
            problem = f"{outcome}: {sandbox.sandbox.end}"
    data = {"problem": problem, "failures": sorted(tested.failures) if not problem else []}
    if outcome not in {VerificationOutcome.HANGS, VerificationOutcome.OUT_OF_MEMORY}:  # limits may be raised
        await to_thread.run_sync(write_atomically, base.store / _RECORD, json.dumps(data))
    return data


async def _keep_tree(project: ProjectSandbox, archive: Path) -> None:
    if b"packed" not in await project.script(_PACK, limit_s=600):
        raise SandboxError("the built tree cannot be packed")
    partial_file = archive.with_suffix(".part")
    try:
        async with (
            project.sandbox.get("/output/built") as chunks,
            await anyio.open_file(partial_file, "wb") as file,
        ):
            async for chunk in chunks:
                await file.write(chunk)
        await anyio.Path(partial_file).rename(archive)
        for path, mode in ((archive, 0o644), (archive.parent, 0o755)):
            await to_thread.run_sync(path.chmod, mode)
    except OSError as error:
        raise storage_error(error, archive, SandboxError) from error


def is_gradle(base: BaseBuild) -> bool:
    """Whether it is built with Gradle, which finds by content what to compile."""
    return base.build.tool is BuildTool.GRADLE
