"""The answer of a trial of SWE-Refactor is written within its folder, whatever the journal says of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from codetaste.case_study.material.answers import write_answer
from codetaste.case_study.plan import StudiedTrial
from codetaste.transcripts.timeline.journal_reader import JournalReader
from support.case_study.studied_methods import store
from support.site.journals import SESSION, ended, job, write_journal
from support.swe_refactor.trial_rows import trial_row

KEY = "answer/simple/m/i1"


def written(folder: Path, value: Any) -> Path:
    """Write an answer with this value in the journal of ``folder/run``; return its folder."""
    run = folder / "run"
    write_journal(run, [SESSION, job(KEY), ended(KEY, value=value)])
    journal = JournalReader(run)
    journal.poll()
    trial = StudiedTrial("simple/m", 1, KEY, "simple.m", "", row=trial_row())
    write_answer(trial, run, journal, folder / "study/trials/simple.m")
    return folder / "study/trials/simple.m"


def test_an_answer_becomes_files(tmp_path: Path) -> None:
    text, code = store(tmp_path / "run", "I move it"), store(tmp_path / "run", "class A {}\n")
    rounds = {"rounds": [{"round": 1, "findings": [{"tool": "Checkstyle", "text": "Unused import"}]}]}
    value = {"text": text, "files": {"p/A.java": code, "p/B.java": None}, "problem": None, "details": rounds}
    out = written(tmp_path, value)
    assert (out / "answer.txt").read_text() == "I move it"
    assert (out / "files/p/A.java").read_text() == "class A {}\n"
    assert "p/B.java" in (out / "answer.json").read_text()
    assert "Unused import" in (out / "answer.json").read_text()
    assert '"verified": true' in (out / "trial.json").read_text()


@pytest.mark.parametrize("value", [None, [], "x", {"files": [], "details": 3, "text": ["../x"]}])
def test_an_answer_that_is_none_leaves_the_trial(tmp_path: Path, value: Any) -> None:
    out = written(tmp_path, value)
    assert (out / "trial.json").is_file()
    assert not (out / "files").exists()


def test_no_path_leads_out_of_the_folder(tmp_path: Path) -> None:
    code = store(tmp_path / "run", "x")
    paths = ["../out", "/tmp/out", "a/../../out", "", ".", "a\0b", "n" * 300, "d/" * 1500 + "f", "\ud800"]
    files = {**dict.fromkeys([*paths, "b", "b/c", "good"], code), "bad": "../" * 22, "odd": 7}
    out = written(tmp_path, {"text": code, "files": files})
    made = {path.relative_to(out / "files").as_posix() for path in (out / "files").rglob("*")}
    assert made == {"b", "good", "bad", "odd", "\ufffd"}
    assert {path.name for path in tmp_path.iterdir()} == {"run", "study"}
