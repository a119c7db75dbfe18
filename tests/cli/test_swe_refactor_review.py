"""``codetaste swe-refactor review``: a random subset of instances is decided about in the terminal."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from support.cli.invoke import codetaste
from support.flows.terminal import TerminalOutput, TerminalSize, run_on_terminal
from support.swe_refactor.documents import COMMIT, document

REVIEW = ("swe-refactor", "review")


def write(path: Path, count: int = 3, **changes: Any) -> Path:
    """Write a file of instances; their whole files differ in one line, the first one has ``changes``."""
    whole = {"sourceCodeBeforeForWhole": "a\n\told();\n", "sourceCodeAfterForWhole": "a\n\tnew();\n"}
    documents = [document(uniqueId=f"{COMMIT}_{number}", **whole) for number in range(count)]
    documents[0] |= changes
    path.write_text(json.dumps(documents))
    return path


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return write(tmp_path / "instances.json")


def review(file: Path, *arguments: str, answers: str, by: str = "Ann") -> TerminalOutput:
    """Review on a terminal; each character of ``answers`` answers a question, a note is "!"."""
    command = [sys.executable, "-W", "error", "-m", "codetaste", *REVIEW, str(file), "--by", by, *arguments]
    typed = [{"!": "a note: \x1b[2J?"}.get(each, each) for each in answers]
    env = {**os.environ, "TERM": "xterm", "HOME": str(file.parent)}
    shown = run_on_terminal(command, file.parent, env, answers=typed, size=TerminalSize(110, 200))
    assert b"Traceback" not in shown.raw
    assert shown.code == 0, shown.last
    return shown


def summary(file: Path, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(codetaste(capsys, *REVIEW, file, "--summary", "--json"))
    return found


def verdicts(file: Path, capsys: pytest.CaptureFixture[str], by: str = "Ann") -> dict[str, str]:
    return {
        each["instance"]: each["verdict"] for each in summary(file, capsys)["reviews"] if each["by"] == by
    }


def test_answers_are_stored_and_the_next_session_continues(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = review(file, "--seed", "7", answers="xcq")
    assert shown.ever_shown("Extract Method (1 of 3)")
    assert shown.ever_shown("target       p.A#a")
    assert shown.ever_shown("coverage     LINE: 2 covered, 0 missed")
    assert b"\x1b[31m-   old();\x1b[0m" in shown.raw
    assert shown.ever_shown("'x' is none of c, w, u, n, b, q")
    first = summary(file, capsys)
    assert (first["seed"], len(first["subset"]), len(first["reviews"])) == (7, 3, 1)
    again = review(file, answers="n!wu")
    assert again.ever_shown("(2 of 3)")
    assert not again.ever_shown("(1 of 3)")
    one, two, three = first["subset"]
    assert verdicts(file, capsys) == {one: "correct", two: "wrong", three: "unsure"}
    found = summary(file, capsys)
    assert found["reviewers"] == [{"by": "Ann", "correct": 1, "wrong": 1, "unsure": 1, "left": 0}]
    assert found["reviews"][1]["note"].startswith("a note: ")
    assert "\x1b" not in codetaste(capsys, *REVIEW, file, "--summary")
    done = review(file, answers="")
    assert done.ever_shown("nothing to decide")


def test_back_changes_an_earlier_decision(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shown = review(file, answers="bcbwq")
    assert shown.ever_shown("this is the first one")
    assert shown.ever_shown("you decided: correct")
    assert list(verdicts(file, capsys).values()) == ["wrong"]


def test_a_changed_instance_needs_another_decision(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    review(file, answers="ccc")
    assert len(verdicts(file, capsys)) == 3
    write(file, filePathAfter="src/Other.java")
    assert len(verdicts(file, capsys)) == 2
    shown = review(file, answers="w")
    assert shown.ever_shown("has changed since you decided")
    assert shown.ever_shown("method before (src/main/java/p/A.java) and after (src/Other.java)")
    assert verdicts(file, capsys)[f"{COMMIT}_0"] == "wrong"


def test_two_reviewers_have_one_subset_and_an_agreement(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(file, count=20)
    review(file, "--sample", "4", answers="ccww")
    review(file, by="Bea", answers="cwww")
    found = summary(file, capsys)
    assert len(found["subset"]) == 4
    assert found["agreements"] == [{"reviewers": ["Ann", "Bea"], "both": 4, "equal": 3, "kappa": 0.5}]
    text = codetaste(capsys, *REVIEW, file, "--summary")
    assert "subset: 4 of 20 instances, seed" in text
    assert "Ann: 2 correct, 2 wrong, 0 unsure, 0 left; 50.0% correct" in text
    assert "Ann and Bea: the same about 3 of 4, Cohen's kappa 0.50" in text
    review(file, "--sample", "5", answers="u")
    larger = summary(file, capsys)
    assert larger["subset"][:4] == found["subset"]
    assert (larger["seed"], [each["left"] for each in larger["reviewers"]]) == (found["seed"], [0, 1])


def test_without_a_terminal_or_with_bad_input_one_line(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "there is none; --summary" in codetaste(capsys, *REVIEW, file, code=2)
    assert "not reviewed yet" in codetaste(capsys, *REVIEW, file, "--summary")
    assert summary(file, capsys)["seed"] is None
    assert not list(tmp_path.glob("*.jsonl"))
    assert "cannot be read" in codetaste(capsys, *REVIEW, tmp_path / "none.json", "--summary", code=2)
    record = tmp_path / "instances.reviews.jsonl"
    for line in ('{"seed": "x", "size": 1}', '{"seed": 1}', '{"instance": 1}', '{"verdict": "good"}'):
        record.write_text(f"{line}\n")
        assert f"{record}, line 1: a damaged line" in codetaste(capsys, *REVIEW, file, "--summary", code=1)
    record.write_text('{"torn')
    assert "not reviewed yet" in codetaste(capsys, *REVIEW, file, "--summary")
