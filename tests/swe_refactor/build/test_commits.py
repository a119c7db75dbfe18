"""The commits of a history, and the reasons of those that are not mined."""

from __future__ import annotations

from pathlib import Path

import pytest

from codetaste.errors import ConfigError
from codetaste.mining.clones.clone import open_clone
from codetaste.swe_refactor.build.commits import SKIPPED, count_commits, list_commits
from support.source.repositories import GitRepository, make_repository

pytestmark = pytest.mark.anyio


def make_history(path: Path) -> tuple[GitRepository, list[str]]:
    """Make a first commit, one of Java, one of another language, and a merge of an odd name."""
    repository = make_repository(path)
    first = repository.commit({b"A.java": b"class A {}\n"})
    java = repository.commit({b"A.java": b"class A { }\n"})
    other = repository.commit({b"a.py": b"a = 1\n"})
    repository.git("checkout", "--quiet", "-b", "side", java)
    side = repository.commit({"ä\n.java".encode(): b"class B {}\n"})
    repository.git("checkout", "--quiet", "-")
    repository.git("merge", "--quiet", "--no-edit", "side")
    return repository, [repository.git("rev-parse", "HEAD"), side, other, java, first]


async def test_merges_first_commits_and_commits_without_java_are_skipped(tmp_path: Path) -> None:
    _, (merge, side, other, java, first) = make_history(tmp_path / "owner/repo")
    found = await list_commits(await open_clone(tmp_path / "owner/repo"), "HEAD", None)
    assert {each.name: each.skipped for each in found} == {
        merge: "merge",
        side: "",
        other: "no_java",
        java: "",
        first: "first_commit",
    }
    assert {each.skipped for each in found} - {""} <= set(SKIPPED)


async def test_a_range_and_a_number_bound_the_history(tmp_path: Path) -> None:
    _, (merge, _, other, java, _) = make_history(tmp_path / "owner/repo")
    clone = await open_clone(tmp_path / "owner/repo")
    assert [each.name for each in await list_commits(clone, "HEAD", 1)] == [merge]
    assert [each.name for each in await list_commits(clone, f"{java}..{other}", None)] == [other]


async def test_the_end_of_a_shallow_clone_is_named(tmp_path: Path) -> None:
    repository, names = make_history(tmp_path / "owner/repo")
    shallow = tmp_path / "other/repo"
    url = f"file://{repository.path}"
    repository.git("clone", "--quiet", "--bare", "--depth=1", url, str(shallow))
    found = await list_commits(await open_clone(shallow), "HEAD", None)
    assert [(each.name, each.skipped) for each in found] == [(names[0], "shallow")]
    assert await count_commits(await open_clone(shallow)) is None
    assert await count_commits(await open_clone(tmp_path / "owner/repo")) == 5


@pytest.mark.parametrize("revision", ["nowhere", "--all", "a..b"])
async def test_an_unknown_revision_is_one_line(tmp_path: Path, revision: str) -> None:
    make_history(tmp_path / "owner/repo")
    with pytest.raises(ConfigError, match=r"swe_refactor\.build\.commits: .*repo: fatal: "):
        await list_commits(await open_clone(tmp_path / "owner/repo"), revision, None)


async def test_a_clone_without_commits_is_one_line(tmp_path: Path) -> None:
    make_repository(tmp_path / "owner/repo")
    with pytest.raises(
        ConfigError, match=r"swe_refactor\.build\.repositories: .*repo: its HEAD has no commit"
    ):
        await list_commits(await open_clone(tmp_path / "owner/repo"), "HEAD", None)
