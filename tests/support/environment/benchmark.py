"""Benchmarks of real projects: a git repository with both releases, and a folder in the published layout."""

from __future__ import annotations

import difflib
import json
import shutil
import subprocess
from pathlib import Path

import anyio

from codetaste.benchmark.create import NewInstance, create_instance
from codetaste.benchmark.instance import Instance
from codetaste.benchmark.layout import golden_path, rules_path
from codetaste.rules.registration import Direction
from support.environment.archives import Trees
from support.environment.projects import Project
from support.flows.tiny_benchmark import GIT_ENVIRONMENT, commit


def make_repository(project: Project, trees: Trees, clone: Path) -> tuple[str, str]:
    """Commit both releases in a new repository at ``clone``; return their hashes, the same every time."""
    return _commit_tree(project, trees.base, clone), _commit_tree(project, trees.golden, clone)


def _commit_tree(project: Project, tree: Path, clone: Path) -> str:
    clone.mkdir(parents=True, exist_ok=True)
    for entry in clone.iterdir():
        if entry.name != ".git":
            shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
    shutil.copytree(tree, clone, dirs_exist_ok=True)
    if not project.ignored:
        return commit(clone, {})
    # Archives of npm and Maven are made without this file.
    return commit(clone, {".gitignore": "".join(f"{line}\n" for line in project.ignored)})


def make_benchmark(root: Path, project: Project, trees: Trees, clone: Path) -> Instance:
    """Add ``project`` to the benchmark ``root``, with golden patch and two rules; return its instance.

    The repository is made at ``clone``, which the instance's ``origin`` names.
    """
    base, golden = make_repository(project, trees, clone)
    new = NewInstance(
        clone, base, golden, name=project.repo, language=project.language, category="structural"
    )
    instance = anyio.run(create_instance, root, new)
    _write(golden_path(root, instance), make_patch(clone, base, golden))
    for direction, pattern in zip((Direction.REDUCTIVE, Direction.ADDITIVE), project.patterns, strict=True):
        rule = {
            "id": f"{direction.value}-pattern",
            "message": "A place that the refactoring changes",
            "severity": "INFO",
            "languages": [project.language],
            "pattern-regex": pattern,
        }
        _write(
            rules_path(root, instance, direction), json.dumps({"rules": [rule]}, indent=1).encode() + b"\n"
        )
    return instance


def make_patch(clone: Path, before: str, after: str) -> bytes:
    """Return the difference of two commits as a patch."""
    command = ["git", "-C", str(clone), "diff", "--binary", "--full-index", before, after]
    return subprocess.run(command, check=True, capture_output=True, env=GIT_ENVIRONMENT).stdout


def make_breaking_patch(project: Project, trees: Trees) -> bytes:
    """Return a patch of R after which tests fail."""
    change = project.breakage
    before = (trees.base / change.path).read_text(encoding="utf-8")
    if before.count(change.old) != 1:
        raise ValueError(f"{project.name} {project.base}: {change.path} has changed")
    after = before.replace(change.old, change.new)
    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    patch = difflib.unified_diff(old, new, f"a/{change.path}", f"b/{change.path}")
    return f"diff --git a/{change.path} b/{change.path}\n{''.join(patch)}".encode()


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
