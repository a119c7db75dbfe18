"""Language and category of the published candidates of which there are clones, against the published ones."""

from __future__ import annotations

import csv
import subprocess
from pathlib import Path

import pytest

from codetaste.mining.scoring.category import category_of_message
from codetaste.source.languages import main_language

PUBLISHED = {"typescript": "javascript", "vue": "javascript", "cpp": "c", "kotlin": "java"}
"""The published names of languages that have names of their own here; all but six are "other" there."""
SIX = {"c", "go", "java", "javascript", "python", "rust"}


def git(clone: Path, *arguments: str) -> str | None:
    program = ["git", "-C", str(clone), "-c", "core.quotePath=false", *arguments]
    done = subprocess.run(program, capture_output=True, check=False)
    return done.stdout.decode("utf-8", "replace") if done.returncode == 0 else None


def published_name(language: str | None) -> str:
    name = PUBLISHED.get(language or "", language or "")
    return name if name in SIX else "other"


@pytest.mark.slow
def test_language_and_category_of_published_candidates(published_data: Path, clones: Path) -> None:
    rows = list(csv.DictReader((published_data / "discovered_pairs_sample.csv").read_text().splitlines()))
    wrong: list[str] = []
    measured = same_category = 0
    for row in rows:
        clone = clones / row["owner"] / row["repo"]
        commits = row["commit_hash"], row["golden_commit_hash"]
        changed = git(clone, "diff", "-M", "--name-only", *commits) if clone.is_dir() else None
        message = git(clone, "log", "-1", "--format=%B", commits[1]) if changed is not None else None
        if changed is None or message is None:
            continue
        measured += 1
        if published_name(language := main_language(changed.splitlines())) != row["language"]:
            wrong.append(f"{row['owner']}/{row['repo']}: {row['language']}, not {language}")
        same_category += category_of_message(message) == row["category"]
    print(f"{measured} candidates, language {measured - len(wrong)}, words {same_category}", *wrong)  # noqa: T201
    assert len(wrong) <= measured * 0.05
    assert same_category >= measured * 0.4
