"""``codetaste review`` keeps decisions about descriptions beside the benchmark, with who and when."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

INSTANCE, OTHER = "a__b-11111111", "a__c-22222222"


def write_benchmark(root: Path) -> Path:
    """Write a benchmark of two instances; the second one has no open description."""
    rows = [("b", "1" * 40, "3" * 40), ("c", "2" * 40, "4" * 40)]
    header = "owner,repo,commit_hash,golden_commit_hash,combined_score,category,language\n"
    root.mkdir(parents=True)
    (root / "instances.csv").write_text(
        header + "".join(f"a,{repo},{base},{golden},,api,python\n" for repo, base, golden in rows)
    )
    for repo, base, _ in rows:
        folder = root / "assets/descriptions/a" / repo / base[:8]
        folder.mkdir(parents=True)
        (folder / "description.md").write_text(f"# Title\n\nRename in {repo}\n")
    (root / "assets/descriptions/a/b/11111111/open_description.md").write_text("Improve the names\n")
    return root


@pytest.fixture
def benchmark(tmp_path: Path) -> Path:
    return write_benchmark(tmp_path / "bench")


def review(
    benchmark: Path, *args: str, answers: str = "", code: int = 0, **env: str
) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [sys.executable, "-m", "codetaste", "review", str(benchmark), *args],
        input=answers,
        capture_output=True,
        text=True,
        check=False,
        cwd=benchmark,
        env={"PATH": "/usr/bin:/bin", "HOME": "/nonexistent", "USER": "ann", **env},
    )
    assert done.returncode == code, done.stderr
    return done


def listed(benchmark: Path) -> dict[tuple[str, str], dict[str, Any]]:
    found = json.loads(review(benchmark, "--list", "--json").stdout)["descriptions"]
    return {(each["instance"], each["track"]): each for each in found}


def editor(folder: Path, text: str) -> str:
    """Return an editor that writes ``text`` into the file that it is given."""
    path = folder / "editor.sh"
    path.write_text(f"#!/bin/sh\nprintf '%s' '{text}' >\"$1\"\n")
    path.chmod(0o755)
    return str(path)


def test_descriptions_are_accepted_edited_and_rejected_by_lines_of_standard_input(
    benchmark: Path, tmp_path: Path
) -> None:
    answers = "a\nmaybe\ne\nreject\ntoo vague\n"
    done = review(
        benchmark, "--by", "Bea", answers=answers, EDITOR=editor(tmp_path, "Tidy the names"), VISUAL=""
    )
    assert done.stdout == "3 decisions; 0 descriptions without one\n"
    for text in ("instructed description of a__b-11111111 (1 of 3)", "> Improve the names", "python; api"):
        assert text in done.stderr
    assert "'maybe' is none of a, e, r, s, q" in done.stderr
    found = listed(benchmark)
    decided = {key: (each["verdict"], each["by"], each["comment"]) for key, each in found.items()}
    assert decided == {
        (INSTANCE, "instructed"): ("accepted", "Bea", ""),
        (INSTANCE, "open"): ("edited", "Bea", ""),
        (OTHER, "instructed"): ("rejected", "Bea", "too vague"),
    }
    assert found[INSTANCE, "open"]["text"] == "Tidy the names"
    assert all(re.fullmatch(r"20\d\d-\d\d-\d\dT[\d:.]+\+00:00", each["at"]) for each in found.values())
    assert len((benchmark / "reviews.jsonl").read_text().splitlines()) == 3
    again = review(benchmark)
    assert "nothing to decide" in again.stderr
    assert "rejected by Bea at" in review(benchmark, "--list").stdout


def test_end_of_input_and_quit_keep_what_was_decided(benchmark: Path) -> None:
    review(benchmark, answers="accept\n")
    assert [each["verdict"] for each in listed(benchmark).values()] == ["accepted", None, None]
    done = review(benchmark, "--json", answers="s\nq\n")
    assert json.loads(done.stdout)["decided"] == 0
    assert listed(benchmark)[INSTANCE, "instructed"]["by"] == "ann"
    changed = review(benchmark, "--all", "--instances", "a__b*", answers="r\n\nq\n")
    assert "accepted by ann" in changed.stderr
    assert listed(benchmark)[INSTANCE, "instructed"]["verdict"] == "rejected"


def test_decision_does_not_hold_for_another_text(benchmark: Path) -> None:
    review(benchmark, answers="a\na\na\n")
    path = benchmark / "assets/descriptions/a/b/11111111/open_description.md"
    path.write_text("Improve the names  \n")
    assert listed(benchmark)[INSTANCE, "open"]["verdict"] == "accepted"
    path.write_text("Improve all names\n")
    assert listed(benchmark)[INSTANCE, "open"]["verdict"] is None


def test_edit_that_changes_nothing_asks_again(benchmark: Path, tmp_path: Path) -> None:
    done = review(benchmark, answers="e\ne\nq\n", EDITOR="true")
    assert done.stderr.count("nothing was changed") == 2
    empty = review(benchmark, answers="e\nq\n", EDITOR=editor(tmp_path, ""))
    assert "an empty description is none" in empty.stderr
    failing = review(benchmark, answers="e\nq\n", EDITOR="false")
    assert "the editor ended with 1" in failing.stderr
    assert not (benchmark / "reviews.jsonl").exists()


def test_bad_input_is_one_line(benchmark: Path) -> None:
    assert "no editor: set $EDITOR" in review(benchmark, answers="e\n", code=2).stderr
    lost = review(benchmark, answers="e\n", code=2, EDITOR="/nowhere/vi")
    assert "$EDITOR '/nowhere/vi' cannot be started" in lost.stderr
    assert "no instance of" in review(benchmark, "--instances", "x*", code=2).stderr
    assert "lists its instances there" in review(benchmark / "assets", "--list", code=2).stderr
    (benchmark / "reviews.jsonl").write_text('{"instance": 1}\n{"torn')
    damaged = review(benchmark, "--list", code=1)
    assert f"{benchmark}/reviews.jsonl, line 1: a damaged line" in damaged.stderr
