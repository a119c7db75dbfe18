"""Small trees, the patch between them by real git, and a function that scores it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import anyio

from codetaste.evaluation.changed_lines import Exclusions
from codetaste.evaluation.evaluate import Evaluation, evaluate
from codetaste.evaluation.rule_set import parse_rule_set
from codetaste.evaluation.test_runs.recorded import PassResult
from codetaste.rules.scan.model import Scanner

Files = Mapping[str, str | bytes | Path]
"""Contents by path; a ``Path`` is the target of a link."""

_GIT = {
    "PATH": os.environ["PATH"],
    "HOME": "/nonexistent",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    **{f"GIT_{who}_{what}": "a@example.org" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
}


def git(folder: Path, *words: str) -> bytes:
    done = subprocess.run(["git", *words], cwd=folder, check=True, capture_output=True, env=_GIT)
    return done.stdout


def write_tree(tree: Path, files: Files) -> Path:
    tree.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        path = tree / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, Path):
            path.symlink_to(content)
        else:
            path.write_bytes(content.encode() if isinstance(content, str) else content)
    return tree


def git_diff(folder: Path, base: Files, golden: Files, *options: str, quoted: bool = True) -> bytes:
    """The ``git diff`` of two commits."""
    work = folder / "work"
    shutil.rmtree(work, ignore_errors=True)
    write_tree(work, base)
    git(work, "init", "-q")
    for files in (base, golden):
        for path in [*work.iterdir()]:
            if path.name != ".git":
                shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
        write_tree(work, files)
        git(work, "add", "-A", "-f")
        git(work, "commit", "-q", "--allow-empty", "-m", "x")
    quoting = f"core.quotePath={'true' if quoted else 'false'}"
    return git(work, "-c", quoting, "diff", "--binary", "--full-index", *options, "HEAD~1", "HEAD")


def rule(name: str, pattern: str, **more: Any) -> dict[str, Any]:
    """A Python rule, unless ``more`` overrides it."""
    body = {"id": name, "message": "m", "severity": "INFO", "languages": ["python"], "metadata": {}}
    return {**body, "pattern": pattern, **more}


def regex_rule(name: str, pattern: str) -> dict[str, Any]:
    found = rule(name, "", languages=["regex"])
    del found["pattern"]
    return {**found, "pattern-regex": pattern}


def render_rule_file(rules: Sequence[Mapping[str, Any]] | None) -> bytes:
    """A rule file; JSON is YAML. None stands for a missing file."""
    return b"" if rules is None else json.dumps({"rules": list(rules)}).encode()


def score(
    scanner: Scanner,
    base: Path,
    patch: bytes,
    positive: Sequence[Mapping[str, Any]] | None,
    negative: Sequence[Mapping[str, Any]] | None,
    *,
    exclusions: Exclusions = Exclusions.PUBLISHED,
    pass_result: PassResult | None = None,
) -> Evaluation:
    """Score ``patch`` synchronously."""
    scratch = base.parent / "scratch"
    scratch.mkdir(exist_ok=True)

    async def main() -> Evaluation:
        return await evaluate(
            parse_rule_set(render_rule_file(positive), render_rule_file(negative)),
            base,
            patch,
            scanner,
            scratch=scratch,
            exclusions=exclusions,
            pass_result=pass_result,
            engine="opengrep 1.30.0",
        )

    evaluation = anyio.run(main)
    assert not any(scratch.iterdir())
    return evaluation
