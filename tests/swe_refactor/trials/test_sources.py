"""Each instance is found in the clone that has its commit, with the files before it."""

from __future__ import annotations

from pathlib import Path

import pytest

from codetaste.errors import ConfigError, SourceError
from codetaste.swe_refactor.dataset.instance import RefactoringInstance
from codetaste.swe_refactor.trials.sources import find_sources
from support.source.repositories import make_repository
from support.swe_refactor.documents import document

pytestmark = pytest.mark.anyio


def instance(commit: str, name: str = "") -> RefactoringInstance:
    return RefactoringInstance.from_document(document(commitId=commit, uniqueId=f"{commit}{name}"))


async def test_instances_of_several_projects(tmp_path: Path) -> None:
    one, two = make_repository(tmp_path / "owner/one"), make_repository(tmp_path / "owner/two")
    first = one.commit({b"A.java": b"1"})
    second = one.commit({b"A.java": b"2"})
    two.commit({b"B.java": b"1"})
    third = two.commit({b"B.java": b"2"})
    found = await find_sources(
        [instance(second), instance(third), instance(second, "_again")], [one.path, two.path]
    )
    assert {name: each.project for name, each in found.items()} == {
        second: "owner/one",
        third: "owner/two",
        f"{second}_again": "owner/one",
    }
    assert found[second].base_commit == first
    assert found[second].tree.read("A.java") == b"1"
    assert found[third].tree.read("B.java") == b"1"
    assert found[second].tree is found[f"{second}_again"].tree


async def test_commits_that_no_clone_has_are_named_together(tmp_path: Path) -> None:
    clone = make_repository(tmp_path / "owner/one")
    root = clone.commit({b"A.java": b"1"})
    unknown = [str(number) * 40 for number in range(1, 8)]
    with pytest.raises(ConfigError) as error:
        await find_sources([instance(root), *map(instance, unknown)], [clone.path])
    (problem,) = error.value.problems
    assert root[:12] in problem
    assert unknown[0][:12] in problem
    assert "and 3 more" in problem
    with pytest.raises(SourceError, match="no such folder"):
        await find_sources([instance(root)], [tmp_path / "nowhere"])
