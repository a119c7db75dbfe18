"""RefactoringMiner as a service: refactorings of a commit, of two folders, and of file contents.

Requests run in a pool of JVMs (``java/worker/pool.py``): one that hangs costs its time limit only. Answers
are cached; requests without an answer are not.
"""

from __future__ import annotations

import os
import re
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
from anyio import to_thread

from codetaste.core.files import read_regular_file, remove_stale_files
from codetaste.core.hashing import file_sha256, json_digest
from codetaste.core.text import one_line
from codetaste.errors import JavaError, JavaOutcome, SourceError, ToolMissing
from codetaste.java.artifacts.artifact_set import load_artifact_set
from codetaste.java.artifacts.store import class_path
from codetaste.java.jdk import find_jdk, read_jdk
from codetaste.java.worker.pool import java_workers
from codetaste.java.worker.program import JavaProgram
from codetaste.refactorings.cache import FOLDER, DetectionCache
from codetaste.refactorings.languages import language_of, sent_path
from codetaste.refactorings.model import Detection, refactoring_from_json
from codetaste.source.git import run_git
from codetaste.source.tree.store import tree_digest

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from codetaste.java.artifacts.artifact_set import ArtifactSet
    from codetaste.java.jdk import Jdk
    from codetaste.java.worker.pool import JavaWorkers, PoolStatistics
    from codetaste.refactorings.config import RefactoringMinerConfig
    from codetaste.refactorings.model import Refactoring

SHIM = Path(__file__).with_name("RefactoringMinerWorker.java")
MINIMUM_JAVA = {"3.1.4": 23, "3.0.10": 17}
"""The feature release of Java that each release of RefactoringMiner needs."""

_FORMAT = 1
"""Increment it when the same answer of the shim becomes another detection."""
_MAX_LINK_BYTES = 16 * 1024
_COMMIT = re.compile("[0-9a-f]{40}|[0-9a-f]{64}")
_SHA256_DIGITS = 64
_OPTIONS = (
    # Natives of tree-sitter and swc are loaded; later releases of Java refuse that without this option.
    "--enable-native-access=ALL-UNNAMED",
    # Only the fast compiler: on 250 commits of commons-io, and on the five largest of JUnit 4, the JVM needs
    # half and two thirds of the processor time, because most methods run too briefly to repay the other one.
    "-XX:TieredStopAtLevel=1",
)


@dataclass(frozen=True, slots=True)
class RefactoringService:
    """Answers requests, at most as many at once as there are JVMs; the others wait."""

    version: str
    time_limit_s: float
    _workers: JavaWorkers
    _cache: DetectionCache

    async def detect_commit(self, git_dir: Path, commit: str, *, purity: bool = True) -> Detection:
        """Return the refactorings between a commit and its first parent; none of the first commit.

        Args:
            git_dir: the repository's own folder, see ``repository_folder``; nothing is checked out.
            commit: the full name of the commit.
            purity: whether PurityChecker judges them.

        Raises:
            JavaError: no answer in time, no memory, or an error, such as of a shallow clone, or of a
                repository with SHA-256 names, which RefactoringMiner does not read.
            ValueError: ``commit`` is no full name.
        """
        if not _COMMIT.fullmatch(commit):
            raise ValueError(f"{commit!r} is not the full name of a commit")
        if len(commit) == _SHA256_DIGITS:
            raise JavaError(
                f"RefactoringMiner {self.version}: sha256: it reads no repositories whose commits have names "
                "of SHA-256",
                JavaOutcome.FAILED,
            )
        if found := await self._cache.read("commit", commit, purity):
            return found
        request = {"git_dir": str(git_dir), "commit": commit}
        detection = await self._ask(request, purity, commit=commit)
        await self._cache.write(detection, "commit", commit, purity)
        return detection

    async def detect_directories(self, before: Path, after: Path, *, purity: bool = True) -> Detection:
        """Return the refactorings between two folders.

        Raises:
            JavaError: no answer in time, no memory, or an error.
            SourceError: a folder cannot be read.
        """
        key = ["directories", *[await to_thread.run_sync(tree_digest, each) for each in (before, after)]]
        if found := await self._cache.read(*key, purity):
            return found
        absolute = await to_thread.run_sync(lambda: (before.absolute(), after.absolute()))
        request = {"before": str(absolute[0]), "after": str(absolute[1])}
        detection = await self._ask(request, purity)
        await self._cache.write(detection, *key, purity)
        return detection

    async def detect_contents(
        self, before: Mapping[str, str], after: Mapping[str, str], *, purity: bool = True
    ) -> Detection:
        """Return the refactorings between two sets of files: texts by path.

        Files in other languages than those of the release are left out. The files that did not change need
        not be there; methods that move to or from them are not found without them.

        Raises:
            JavaError: no answer in time, no memory, or an error.
        """
        names = {sent_path(path): path for path in (*before, *after)}
        sides = [
            {sent: side[path] for sent, path in sorted(names.items()) if path in side and self._reads(path)}
            for side in (before, after)
        ]
        if not all(sides):
            return Detection(None, (), self.version)
        key = ["contents", *[_texts_digest(side) for side in sides]]
        if found := await self._cache.read(*key, purity):
            return found
        detection = await self._ask({"before": sides[0], "after": sides[1]}, purity, names=names)
        await self._cache.write(detection, *key, purity)
        return detection

    async def _ask(
        self,
        request: dict[str, Any],
        purity: bool,
        *,
        commit: str | None = None,
        names: Mapping[str, str] | None = None,
    ) -> Detection:
        answer = await self._workers.ask({**request, "purity": purity}, self.time_limit_s)
        found = [refactoring_from_json(each) for each in answer["refactorings"]]
        if names is not None:
            found = [_renamed(each, names) for each in found]
        problem = answer["purity_error"] or ""
        return Detection(commit, tuple(found), self.version, answer.get("parents"), problem)

    def _reads(self, path: str) -> bool:
        return bool(language_of(path, self.version))

    def statistics(self) -> PoolStatistics:
        """Return what the JVMs did so far."""
        return self._workers.statistics()


@asynccontextmanager
async def refactoring_service(
    config: RefactoringMinerConfig, cache: Path
) -> AsyncIterator[RefactoringService]:
    """Open the service; its JVMs start when there are requests, and end with the block.

    Args:
        config: the release, and the limits of requests.
        cache: the cache folder, in which the jars are installed.

    Raises:
        ToolMissing: there is no JDK that is new enough, or the jars are not installed.
    """
    program = await refactoring_miner(config, cache)
    wanted = load_artifact_set(_set_name(config))
    identity = await to_thread.run_sync(_identity, wanted)
    workers = config.workers or len(os.sched_getaffinity(0))
    await to_thread.run_sync(remove_stale_files, cache / FOLDER)
    async with java_workers(program, workers, cache) as pool:
        answers = DetectionCache(cache / FOLDER, identity)
        yield RefactoringService(config.version, config.time_limit, pool, answers)


async def refactoring_miner(config: RefactoringMinerConfig, cache: Path) -> JavaProgram:
    """Return the program of the service.

    Raises:
        ToolMissing: there is no JDK that is new enough, or the jars are not installed.
    """
    jars = await to_thread.run_sync(class_path, load_artifact_set(_set_name(config)), cache)
    jdk = await refactoring_jdk(config, cache)
    return JavaProgram(f"RefactoringMiner {config.version}", jdk, SHIM, jars, config.memory, _OPTIONS)


async def refactoring_jdk(config: RefactoringMinerConfig, cache: Path) -> Jdk:
    """Return the JDK that runs RefactoringMiner: that of the config, or else one of this machine.

    Raises:
        ToolMissing: there is none that is new enough, or that of the config is none.
    """
    minimum, purpose = MINIMUM_JAVA[config.version], f"RefactoringMiner {config.version}"
    if config.jdk is None:
        return await find_jdk(minimum, purpose=purpose, cache=cache)
    jdk = await read_jdk(config.jdk.expanduser())
    if jdk is None or jdk.feature < minimum or not jdk.compiler:
        there = "no JDK that works" if jdk is None else f"release {jdk.feature}"
        if jdk is not None and not jdk.compiler:
            there += " without a compiler"
        raise ToolMissing(
            f"refactoring_miner.jdk: {config.jdk}: {there}; "
            f"{purpose} needs a JDK of release {minimum} or newer"
        )
    return jdk


async def repository_folder(clone: Path) -> Path:
    """Return the folder of the objects of a clone: ``.git``, a bare repository, that of a linked worktree.

    Raises:
        SourceError: there is no repository in the folder ``clone`` itself.
        ToolMissing: git is not installed.
    """
    own = clone / ".git"
    git_dir = own if await anyio.Path(own).exists() else clone
    if await anyio.Path(own).is_file():
        try:
            content = await to_thread.run_sync(read_regular_file, own, _MAX_LINK_BYTES)
        except OSError as error:
            raise SourceError(f"{own}: cannot be read: {error.strerror}") from None
        if b"\0" in content:
            raise SourceError(f"{clone}: not a git repository: .git names no folder")
        git_dir = clone / os.fsdecode(content.removeprefix(b"gitdir:").strip())
    done = await run_git("rev-parse", "--path-format=absolute", "--git-common-dir", git_dir=git_dir)
    if not done.ok:
        raise SourceError(f"{clone}: not a git repository: {one_line(done.stderr)}")
    return Path(os.fsdecode(done.output.removesuffix(b"\n")))


def _renamed(refactoring: Refactoring, names: Mapping[str, str]) -> Refactoring:
    """Return ``refactoring`` with the paths of the files as the caller knows them."""
    left, right = (
        tuple(replace(each, path=names.get(each.path, each.path)) for each in side)
        for side in (refactoring.left, refactoring.right)
    )
    return replace(refactoring, left=left, right=right)


def _set_name(config: RefactoringMinerConfig) -> str:
    return f"refactoring-miner-{config.version}"


def _identity(wanted: ArtifactSet) -> str:
    """Return the digest of all that decides answers: the jars and the shim."""
    jars = [[each.coordinates, each.sha256] for each in wanted.artifacts]
    return json_digest([_FORMAT, jars, file_sha256(SHIM)])


def _texts_digest(texts: Mapping[str, str]) -> str:
    digest = sha256()
    for path, text in texts.items():
        for part in (path, text):
            data = part.encode("utf-8", "surrogatepass")
            digest.update(len(data).to_bytes(8, "big") + data)
    return digest.hexdigest()
