"""``codetaste review`` keeps decisions about descriptions beside the benchmark, with who and when."""

from __future__ import annotations

import io
import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from codetaste.cli.app import app

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


class Outcome(NamedTuple):
    stdout: str
    stderr: str


Review = Callable[..., Outcome]


@pytest.fixture
def review(benchmark: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Review:
    """Runs ``codetaste review BENCHMARK ARGS`` in this process, with ``answers`` as standard input."""
    monkeypatch.chdir(benchmark)
    monkeypatch.setenv("HOME", "/nonexistent")
    monkeypatch.setenv("USER", "ann")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")

    def run(
        *args: str, answers: str = "", code: int = 0, folder: Path = benchmark, editor: str = ""
    ) -> Outcome:
        monkeypatch.setattr(sys, "stdin", io.StringIO(answers))
        monkeypatch.delenv("VISUAL", raising=False)
        monkeypatch.setenv("EDITOR", editor)
        try:
            exit_code = app(["review", str(folder), *args], exit_on_error=False)
        except SystemExit as error:
            exit_code = error.code
        out, err = capfd.readouterr()
        assert (exit_code or 0) == code, err
        return Outcome(out, err)

    return run


def listed(review: Review) -> dict[tuple[str, str], dict[str, Any]]:
    found = json.loads(review("--list", "--json").stdout)["descriptions"]
    return {(each["instance"], each["track"]): each for each in found}


def editor(folder: Path, text: str) -> str:
    """Return an editor that writes ``text`` into the file that it is given."""
    path = folder / "editor.sh"
    path.write_text(f"#!/bin/sh\nprintf '%s' '{text}' >\"$1\"\n")
    path.chmod(0o755)
    return str(path)


def test_descriptions_are_accepted_edited_and_rejected_by_lines_of_standard_input(
    review: Review, benchmark: Path, tmp_path: Path
) -> None:
    answers = "a\nmaybe\ne\nreject\ntoo vague\n"
    done = review("--by", "Bea", answers=answers, editor=editor(tmp_path, "Tidy the names"))
    assert done.stdout == "3 decisions; 0 descriptions without one\n"
    for text in ("instructed description of a__b-11111111 (1 of 3)", "> Improve the names", "python; api"):
        assert text in done.stderr
    assert "'maybe' is none of a, e, r, s, q" in done.stderr
    found = listed(review)
    decided = {key: (each["verdict"], each["by"], each["comment"]) for key, each in found.items()}
    assert decided == {
        (INSTANCE, "instructed"): ("accepted", "Bea", ""),
        (INSTANCE, "open"): ("edited", "Bea", ""),
        (OTHER, "instructed"): ("rejected", "Bea", "too vague"),
    }
    assert found[INSTANCE, "open"]["text"] == "Tidy the names"
    assert all(re.fullmatch(r"20\d\d-\d\d-\d\dT[\d:.]+\+00:00", each["at"]) for each in found.values())
    assert len((benchmark / "reviews.jsonl").read_text().splitlines()) == 3
    again = review()
    assert "nothing to decide" in again.stderr
    assert "rejected by Bea at" in review("--list").stdout


def test_end_of_input_and_quit_keep_what_was_decided(review: Review, benchmark: Path) -> None:
    review(answers="accept\n")
    assert [each["verdict"] for each in listed(review).values()] == ["accepted", None, None]
    done = review("--json", answers="s\nq\n")
    assert json.loads(done.stdout)["decided"] == 0
    assert listed(review)[INSTANCE, "instructed"]["by"] == "ann"
    changed = review("--all", "--instances", "a__b*", answers="r\n\nq\n")
    assert "accepted by ann" in changed.stderr
    assert listed(review)[INSTANCE, "instructed"]["verdict"] == "rejected"


def test_decision_does_not_hold_for_another_text(review: Review, benchmark: Path) -> None:
    review(answers="a\na\na\n")
    path = benchmark / "assets/descriptions/a/b/11111111/open_description.md"
    path.write_text("Improve the names  \n")
    assert listed(review)[INSTANCE, "open"]["verdict"] == "accepted"
    path.write_text("Improve all names\n")
    assert listed(review)[INSTANCE, "open"]["verdict"] is None


def test_edit_that_changes_nothing_asks_again(review: Review, benchmark: Path, tmp_path: Path) -> None:
    done = review(answers="e\ne\nq\n", editor="true")
    assert done.stderr.count("nothing was changed") == 2
    empty = review(answers="e\nq\n", editor=editor(tmp_path, ""))
    assert "an empty description is none" in empty.stderr
    failing = review(answers="e\nq\n", editor="false")
    assert "the editor ended with 1" in failing.stderr
    assert not (benchmark / "reviews.jsonl").exists()


def test_decision_of_another_reviewer_is_not_overwritten(
    review: Review, benchmark: Path, tmp_path: Path
) -> None:
    """The editor of one reviewer is open while another one edits the same description."""
    path = benchmark / "assets/descriptions/a/b/11111111/open_description.md"
    other = editor(tmp_path, "Tidy names of carts")
    slow = tmp_path / "slow.sh"
    command = f"{sys.executable} -m codetaste review {benchmark} --by Bob"
    slow.write_text(
        f"#!/bin/sh\nprintf 's\\ne\\nq\\n' | EDITOR={other} {command} >&2\nprintf 'Mine' >\"$1\"\n"
    )
    slow.chmod(0o755)
    done = review("--by", "Ann", answers="s\ne\nq\n", editor=str(slow))
    assert "was changed or decided about meanwhile: nothing was written; your text is in" in done.stderr
    saved = re.search(r"your text is in (\S+)", done.stderr)
    assert saved is not None
    assert Path(saved[1]).read_text() == "Mine\n"
    Path(saved[1]).unlink()
    assert path.read_text() == "Tidy names of carts\n"
    assert "> Tidy names of carts" in done.stderr.rpartition("changed meanwhile")[2]
    found = listed(review)[INSTANCE, "open"]
    assert (found["verdict"], found["by"]) == ("edited", "Bob")


def test_bad_input_is_one_line(review: Review, benchmark: Path) -> None:
    assert "no editor: set $EDITOR" in review(answers="e\n", code=2).stderr
    lost = review(answers="e\n", code=2, editor="/nowhere/vi")
    assert "$EDITOR '/nowhere/vi' cannot be started" in lost.stderr
    assert "no instance of" in review("--instances", "x*", code=2).stderr
    assert "lists its instances there" in review("--list", code=2, folder=benchmark / "assets").stderr
    (benchmark / "reviews.jsonl").write_text('{"instance": 1}\n{"torn')
    damaged = review("--list", code=1)
    assert f"{benchmark}/reviews.jsonl, line 1: a damaged line" in damaged.stderr
