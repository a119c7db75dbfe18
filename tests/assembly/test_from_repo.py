"""Instances of the history of a clone, without a config and without a model."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from support.evaluation.trees import git, write_tree

FILES = {f"pack/part{number}.py": f"def part{number}():\n    return {number}\n" for number in range(12)}
MOVED = {name.replace("pack/", "pack/inner/"): text.replace("part", "piece") for name, text in FILES.items()}
ADDED = {**MOVED, **{f"more/new{number}.py": "x = 1\n" * 5 for number in range(12)}}


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    folder = tmp_path / "acme" / "anvil"
    folder.mkdir(parents=True)
    git(folder, "init", "-q", "-b", "main")
    history = (
        (FILES, "Begin"),
        (MOVED, "Refactor the package: reorganize its modules, rename functions"),
        (ADDED, "Add features"),
    )
    for files, message in history:
        for path in folder.iterdir():
            if path.name != ".git":
                git(folder, "rm", "-rqf", "--ignore-unmatch", path.name)
        write_tree(folder, files)
        git(folder, "add", "-A")
        git(folder, "commit", "-qm", message)
    return folder


def from_repo(clone: Path, *args: str) -> tuple[int, Any, str]:
    command = [sys.executable, "-W", "error", "-m", "codetaste", "benchmark", "from-repo", str(clone), *args]
    done = subprocess.run(command, cwd=clone.parents[1], capture_output=True, text=True, check=False)
    return done.returncode, json.loads(done.stdout) if "--json" in args else done.stdout, done.stderr


def test_refactorings_of_a_clone_become_instances(clone: Path) -> None:
    code, found, err = from_repo(clone, "--min-files", "10", "--json")
    assert code == 0, err
    golden = git(clone, "rev-parse", "main~1").decode().strip()
    (name,) = found["instances"]
    assert name == f"acme__anvil-{git(clone, 'rev-parse', 'main~2').decode()[:8]}"
    table = (clone.parents[1] / "benchmark/instances.csv").read_text()
    assert golden in table
    rows = {row["filter"]: row["removed"] for row in found["funnel"]["rows"]}
    assert (rows["files"], rows["ratio"]) == (0, 1)
    texts = list((clone.parents[1] / "benchmark").rglob("description.md"))
    assert [path.read_text().splitlines()[0] for path in texts] == [
        "Refactor the package: reorganize its modules, rename functions"
    ]


def test_named_commits_are_not_filtered(clone: Path) -> None:
    code, found, err = from_repo(clone, "--commit", git(clone, "rev-parse", "main").decode()[:9], "--json")
    assert (code, len(found["instances"])) == (0, 1), err


@pytest.mark.parametrize(
    ("args", "problem"),
    [
        (("--commit", "0123456"), "--commit 0123456: "),
        (("--describe-with", "something"), 'write "message", or PROVIDER:MODEL'),
        (("--describe-with", "nobody:model"), "provider"),
        (("--min-files", "100"), "0 instances"),
        (("--min-files", "-1"), "--min-files -1: "),
        (("--count", "-1"), "--count -1: "),
        (("--name", "a b/c"), "--name a b/c: write OWNER/REPO"),
    ],
)
def test_bad_input_is_one_line(clone: Path, args: tuple[str, ...], problem: str) -> None:
    code, out, err = from_repo(clone, *args)
    assert code in {1, 2}
    assert problem in err + out
    assert "Traceback" not in err
