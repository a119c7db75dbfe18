"""Golden patches from the clones have the line counts of the published benchmark."""

from __future__ import annotations

import csv
import subprocess
from pathlib import Path

import pytest

from codetaste.source.checkout import checkout_trees
from codetaste.source.origin import GitOrigin
from codetaste.source.patch.apply import applied_patch
from codetaste.source.patch.parse import parse_patch
from support.source.repositories import ENVIRONMENT
from support.source.tree_contents import read_overlay, read_tree, snapshot

GQLGEN, KOA, AWS = "99designs/gqlgen", "koajs/koa", "aws/aws-cli"


def row_of(table: Path, **wanted: str) -> dict[str, str]:
    with table.open(newline="", encoding="utf-8") as file:
        return next(row for row in csv.DictReader(file) if wanted.items() <= row.items())


def commits_of(published_data: Path, repository: str) -> tuple[str, str]:
    owner, repo = repository.split("/")
    row = row_of(published_data / "instances.csv", owner=owner, repo=repo)
    return row["commit_hash"], row["golden_commit_hash"]


def golden_patch(clone: Path, commits: tuple[str, str]) -> bytes:
    """Return plain git diff's patch: with renames, else koa's would have three times as many lines."""
    command = ["git", "-C", str(clone), "diff", "--binary", *commits]
    return subprocess.run(command, capture_output=True, check=True, env=ENVIRONMENT).stdout


@pytest.mark.parametrize("repository", [GQLGEN, KOA, AWS])
def test_golden_patches_have_the_published_counts(
    published_data: Path, clones: Path, repository: str
) -> None:
    commits = commits_of(published_data, repository)
    instance = f"{repository}/{commits[0][:8]}"
    published = row_of(published_data / "golden_reference.csv", instance=instance)
    patch = parse_patch(golden_patch(clones / repository, commits))
    assert len(patch.files) == int(published["files"])
    for rule in ("naive", "official", "strict"):  # nothing of these three lies in an excluded folder
        assert patch.added_count == int(published[f"{rule}_added"])
        assert patch.removed_count == int(published[f"{rule}_removed"])
    assert (len(patch.added), len(patch.removed)) == (patch.added_count, patch.removed_count)


@pytest.mark.anyio
@pytest.mark.parametrize("repository", [KOA, GQLGEN, pytest.param(AWS, marks=pytest.mark.slow)])
async def test_golden_patches_make_the_golden_trees(
    published_data: Path, clones: Path, tmp_path: Path, repository: str
) -> None:
    commits = commits_of(published_data, repository)
    trees = await checkout_trees(GitOrigin(str(clones / repository), *commits), tmp_path / "cache")
    before = snapshot(trees.base)
    async with applied_patch(trees.base, golden_patch(clones / repository, commits), tmp_path) as result:
        assert read_overlay(result.tree) == read_tree(trees.golden)
    assert (result.other_base, result.notes) == (False, ())
    assert snapshot(trees.base) == before
