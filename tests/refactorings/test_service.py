"""RefactoringMiner as a service, with the real one: commits, folders, contents; purity; limits; the cache."""

from __future__ import annotations

import os
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest

from codetaste.errors import JavaError, JavaOutcome, SourceError, ToolMissing
from codetaste.java import jdk
from codetaste.refactorings.config import RefactoringMinerConfig
from codetaste.refactorings.languages import languages_of
from codetaste.refactorings.model import Detection
from codetaste.refactorings.service import RefactoringService, refactoring_service, repository_folder
from support.refactorings.examples import BEFORE, EXAMPLES, IMPURE, PATH, PURE
from support.refactorings.java_tools import tools_in

pytestmark = [pytest.mark.anyio, pytest.mark.heavy]

VERSIONS = ("3.1.4", "3.0.10")


@asynccontextmanager
async def service(cache: Path, version: str = "3.1.4", **settings: Any) -> AsyncIterator[RefactoringService]:
    if not cache.exists():  # noqa: ASYNC240
        tools_in(cache, f"refactoring-miner-{version}")
    config = RefactoringMinerConfig.model_validate({"version": version, "workers": 1, **settings})
    async with refactoring_service(config, cache) as opened:
        yield opened


def found(detection: Detection) -> list[tuple[str, bool | None]]:
    return [(each.type, each.purity and each.purity.pure) for each in detection.refactorings]


def git(repository: Path, *args: str) -> str:
    settings = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false")
    command = ["git", "-C", str(repository), *settings, *args]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def commit(repository: Path, files: Mapping[str, str]) -> str:
    for path, text in files.items():
        (repository / path).parent.mkdir(parents=True, exist_ok=True)
        (repository / path).write_text(text)
    git(repository, "add", "-A")
    git(repository, "commit", "-q", "--allow-empty", "-m", "change")
    return git(repository, "rev-parse", "HEAD")


@pytest.fixture
def history(tmp_path: Path) -> tuple[Path, list[str]]:
    """A repository: a first commit, a pure extraction, and one that is taken back with a fix."""
    repository = tmp_path / "repository"
    repository.mkdir()
    git(repository, "init", "-q", "-b", "main")
    return repository, [commit(repository, each) for each in (BEFORE, PURE, BEFORE, IMPURE)]


@pytest.mark.parametrize("version", VERSIONS)
async def test_commits_folders_and_contents_have_the_same_refactorings(
    tmp_path: Path, history: tuple[Path, list[str]], version: str
) -> None:
    repository, (first, pure, inlined, impure) = history
    git(repository, "worktree", "add", "-q", str(tmp_path / "before"), first)
    git(repository, "worktree", "add", "-q", str(tmp_path / "after"), pure)
    async with service(tmp_path / "cache", version) as miner:
        git_dir = await repository_folder(repository)
        by_commit = await miner.detect_commit(git_dir, pure)
        assert (by_commit.commit, by_commit.version, by_commit.parents) == (pure, version, 1)
        assert found(by_commit) == [("Extract Method", True)]
        extraction = by_commit.refactorings[0]
        assert {place.path for place in (*extraction.left, *extraction.right)} == {PATH}
        added = [place for place in extraction.right if place.description == "extracted method declaration"]
        assert [(place.code_element, place.start_line) for place in added] == [
            ("private add(prices int[], count int) : int", 9)
        ]
        assert (await miner.detect_contents(BEFORE, PURE)).refactorings == by_commit.refactorings
        assert await repository_folder(tmp_path / "before") == git_dir
        folders = await miner.detect_directories(tmp_path / "before", tmp_path / "after")
        assert folders.refactorings == by_commit.refactorings
        assert found(await miner.detect_commit(git_dir, inlined)) == [("Inline Method", True)]
        assert ("Extract Method", False) in found(await miner.detect_commit(git_dir, impure))
        without = await miner.detect_commit(git_dir, pure, purity=False)
        assert found(without) == [("Extract Method", None)]
        root = await miner.detect_commit(git_dir, first)
        assert (root.parents, root.refactorings) == (0, ())


async def test_every_language_of_the_release_is_read(tmp_path: Path) -> None:
    assert set(languages_of("3.1.4")) == {"Java", *EXAMPLES}
    async with service(tmp_path / "cache") as miner:
        for example in EXAMPLES.values():
            answer = await miner.detect_contents(
                {example.path: example.before}, {example.path: example.after}
            )
            assert [each.type for each in answer.refactorings] == ["Extract Method"]
            assert {place.path for place in answer.refactorings[0].right} == {example.path}
        other = {"a.cpp": "int f() { return 1; }", "README": "x"}
        assert (await miner.detect_contents(other, other)).refactorings == ()


async def test_answers_are_cached_by_release_and_content(
    tmp_path: Path, history: tuple[Path, list[str]]
) -> None:
    repository, (_, pure, *_rest) = history
    async with service(tmp_path / "cache") as miner:
        first = [
            await miner.detect_commit(repository / ".git", pure),
            await miner.detect_contents(BEFORE, PURE),
        ]
    async with service(tmp_path / "cache") as miner:
        again = [
            await miner.detect_commit(tmp_path / "is not even there", pure),
            await miner.detect_contents(BEFORE, PURE),
        ]
        assert again == first
        assert miner.statistics().started == 0
        for path in (tmp_path / "cache" / "refactorings").rglob("*.json"):
            path.write_text("{")
        assert await miner.detect_contents(BEFORE, PURE) == first[1]
        assert miner.statistics().started == 1


async def test_bad_input_has_a_named_outcome_and_the_rest_goes_on(
    tmp_path: Path, history: tuple[Path, list[str]]
) -> None:
    repository, (_, pure, _, impure) = history
    shallow = tmp_path / "shallow"
    git(tmp_path, "clone", "-q", "--depth", "2", f"file://{repository}", str(shallow))
    oldest = git(shallow, "rev-parse", "HEAD~1")
    git(repository, "checkout", "-q", "-b", "side", pure)
    commit(repository, {"src/p/Other.java": "package p; class Other {}"})
    git(repository, "merge", "-q", "-m", "merge", "main")
    merge = git(repository, "rev-parse", "HEAD")
    async with service(tmp_path / "cache") as miner:
        for folder, name, problem in (
            (shallow / ".git", oldest, "shallow: the clone has no parent"),
            (shallow / ".git", pure, f"missing: the clone lacks {pure}"),
            (tmp_path / "nowhere", impure, "RepositoryNotFoundException"),
        ):
            with pytest.raises(JavaError, match=problem) as caught:
                await miner.detect_commit(folder, name)
            assert caught.value.outcome is JavaOutcome.FAILED
        merged = await miner.detect_commit(repository / ".git", merge)
        assert merged.parents == 2
        broken = {PATH: "package p; class Shop { int total( { } "}
        assert (await miner.detect_contents(BEFORE, broken)).version == "3.1.4"
        assert found(await miner.detect_contents(BEFORE, PURE)) == [("Extract Method", True)]
        assert miner.statistics().started == 1
        with pytest.raises(ValueError, match="not the full name"):
            await miner.detect_commit(repository / ".git", "main")
    with pytest.raises(SourceError, match="not a git repository"):
        await repository_folder(tmp_path)


async def test_a_request_over_its_limits_costs_only_itself(
    tmp_path: Path, history: tuple[Path, list[str]]
) -> None:
    repository, (_, pure, inlined, _impure) = history
    hanging = tmp_path / "hanging"
    git(tmp_path, "clone", "-q", "--bare", str(repository), str(hanging))
    loose = hanging / "objects" / inlined[:2] / inlined[2:]
    loose.unlink()
    os.mkfifo(loose)  # opening it waits for a writer
    too_large = {PATH: "/*" + "x" * 100_000_000 + "*/"}
    async with service(tmp_path / "cache", memory="128MiB") as miner:
        impatient, outcomes = replace(miner, time_limit_s=1.0), []

        async def fail(request: Callable[[], Awaitable[Detection]]) -> None:
            with pytest.raises(JavaError) as caught:
                await request()
            outcomes.append(caught.value.outcome)

        async with anyio.create_task_group() as group:
            group.start_soon(fail, lambda: impatient.detect_commit(hanging, inlined))
            group.start_soon(fail, lambda: miner.detect_contents(BEFORE, too_large))
            answer = await miner.detect_commit(repository / ".git", pure)
        assert found(answer) == [("Extract Method", True)]
        assert sorted(outcomes) == [JavaOutcome.MEMORY, JavaOutcome.TIMEOUT]
        assert found(await miner.detect_contents(BEFORE, PURE)) == [("Extract Method", True)]


async def test_texts_and_repositories_that_are_not_read_are_named(tmp_path: Path) -> None:
    repository = tmp_path / "repository"
    repository.mkdir()
    git(repository, "init", "-q", "--object-format=sha256")
    commit(repository, BEFORE)
    name = commit(repository, PURE)
    long = {PATH: BEFORE[PATH] + "/*" + "x" * 21_000_000 + "*/"}
    async with service(tmp_path / "cache", memory="1GiB") as miner:
        for problem, request in (
            ("sha256: it reads no repositories", lambda: miner.detect_commit(repository / ".git", name)),
            ("StreamConstraintsException: .*20000000", lambda: miner.detect_contents(BEFORE, long)),
        ):
            with pytest.raises(JavaError, match=problem) as caught:
                await request()
            assert caught.value.outcome is JavaOutcome.FAILED
        assert found(await miner.detect_contents(BEFORE, PURE)) == [("Extract Method", True)]
        assert miner.statistics().started == 1


ODD_FILES = {
    "module-info.java": "module p { exports p; }",
    "src/p/Sealed.java": "package p; sealed interface Sealed permits A, B {} "
    "record A(int n) implements Sealed { A { if (n < 0) throw new Error(); } } "
    "record B() implements Sealed {}",
    "src/p/Twice.java": "package p; class Twice { void f() { g(); } void f() { g(); } void g() {} }",
    "src/p/Broken.java": "package p; class Broken { int total( { } ",
    "src/p/Empty.java": "",
    "src/p/Made.java": "// Generated by a program\npackage p; @Generated class Made { "
    + "".join(f"int f{n}() {{ return {n}; }} " for n in range(2000))
    + "}",
}


async def test_odd_java_files_do_not_disturb_the_others(tmp_path: Path) -> None:
    repository = tmp_path / "repository"
    repository.mkdir()
    git(repository, "init", "-q", "-b", "main")
    commit(repository, BEFORE)
    (repository / "Link.java").symlink_to(PATH)
    git(repository, "add", "-A")
    git(repository, "update-index", "--add", "--cacheinfo", f"160000,{'1' * 40},module.java")
    changed = commit(repository, {**PURE, **ODD_FILES})
    git(repository, "update-index", "--add", "--cacheinfo", f"160000,{'1' * 40},module.java")
    git(repository, "commit", "-q", "-m", "a submodule whose name is that of a Java file")
    added = git(repository, "rev-parse", "HEAD")
    git(repository, "update-index", "--add", "--cacheinfo", f"160000,{'2' * 40},module.java")
    (repository / PATH).write_text(BEFORE[PATH])
    git(repository, "add", PATH)
    git(repository, "commit", "-q", "-m", "another release of it")
    moved = git(repository, "rev-parse", "HEAD")
    edited = {path: f"{text}\n// a change" for path, text in ODD_FILES.items()}
    async with service(tmp_path / "cache") as miner:
        assert ("Extract Method", True) in found(await miner.detect_commit(repository / ".git", changed))
        assert found(await miner.detect_commit(repository / ".git", added)) == []
        with pytest.raises(JavaError, match=f"missing: the clone lacks {'1' * 40}"):
            await miner.detect_commit(repository / ".git", moved)
        answer = await miner.detect_contents({**BEFORE, **ODD_FILES}, {**PURE, **edited})
        assert found(answer) == [("Extract Method", True)]
        nested = {PATH: BEFORE[PATH].replace("sum = 0", "sum = " + "(" * 50_000 + "0" + ")" * 50_000)}
        with suppress(JavaError):  # it overflows the stack, or takes a minute
            await replace(miner, time_limit_s=5.0).detect_contents(BEFORE, nested)
        assert found(await miner.detect_contents(BEFORE, PURE)) == [("Extract Method", True)]


async def test_a_machine_without_the_tools_gets_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ToolMissing, match=r"codetaste java install refactoring-miner-3\.1\.4"):
        async with refactoring_service(RefactoringMinerConfig(), tmp_path):
            pass
    tools_in(tmp_path / "cache", "refactoring-miner-3.1.4")
    monkeypatch.setattr(jdk, "_PLACES", ())
    monkeypatch.setattr(jdk, "_HOME_PLACES", ())
    monkeypatch.setenv("PATH", "")
    (tmp_path / "cache" / "jdks").unlink(missing_ok=True)
    with pytest.raises(ToolMissing, match="needs a JDK of release 23 or newer; on this machine: none"):
        async with refactoring_service(RefactoringMinerConfig(), tmp_path / "cache"):
            pass
