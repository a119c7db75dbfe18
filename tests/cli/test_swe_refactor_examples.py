"""``codetaste swe-refactor examples``: a corpus from a clone of RefactoringMiner's repository."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from codetaste.cli.app import app
from codetaste.swe_refactor.examples.corpus import read_corpus
from support.refactorings.java_tools import tools_in
from support.swe_refactor.documents import document
from support.swe_refactor.oracle_clone import write_clone, write_real_clone


def run(*arguments: object) -> int:
    with pytest.raises(SystemExit) as ended:
        app(["swe-refactor", "examples", *map(str, arguments)])
    return int(ended.value.code or 0)


def test_a_wrong_folder_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(tmp_path, "--to", tmp_path / "examples.jsonl") == 2
    out, err = capsys.readouterr()
    assert out == ""
    (line,) = err.replace("\n  ", " ").splitlines()
    assert line.endswith("/oracle: no oracle; name a checked-out clone of RefactoringMiner's repository")


def test_a_file_that_exists_stays(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "examples.jsonl"
    file.write_text("mine")
    assert run(write_clone(tmp_path / "clone"), "--to", file) == 2
    assert "it exists already" in capsys.readouterr().err
    assert file.read_text() == "mine"


def test_instances_that_cannot_be_read_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "examples.jsonl"
    assert run(write_clone(tmp_path / "clone"), "--to", file, "--instances", tmp_path / "nofile.json") == 2
    assert "nofile.json" in capsys.readouterr().err
    assert not file.exists()


def test_missing_jars_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert run(write_clone(tmp_path / "clone"), "--to", tmp_path / "examples.jsonl") == 2
    assert "codetaste java install" in capsys.readouterr().err


@pytest.mark.heavy
def test_a_corpus_is_written_and_a_second_run_uses_stored_answers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    tools_in(tmp_path / "codetaste", "refactoring-miner-3.1.4")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    clone, file = write_real_clone(tmp_path / "clone"), tmp_path / "examples.jsonl"
    instances = tmp_path / "instances.json"
    instances.write_text(json.dumps([document()]))
    assert run(clone, "--to", file, "--instances", instances, "--workers", 1) == 0
    out, err = capsys.readouterr()
    assert "1 of 1 commit, 1 refactoring of the six types" in err
    assert out.splitlines()[:2] == [f"{file}: 1 example of 1 commit", "      1  Extract Method"]
    (example,) = read_corpus(file, ()).examples
    assert example.is_pure
    again = tmp_path / "again.jsonl"
    assert run(clone, "--to", again, "--time-limit", 0.001, "--json") == 0
    result = json.loads(capsys.readouterr().out)
    assert (result["kept"], result["types"]["Extract Method"], result["problems"]) == (1, 1, [])
    assert again.read_text() == file.read_text()


@pytest.mark.heavy
def test_without_any_answer_nothing_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    tools_in(tmp_path / "codetaste", "refactoring-miner-3.1.4")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    file = tmp_path / "examples.jsonl"
    assert run(write_real_clone(tmp_path / "clone"), "--to", file, "--time-limit", 0.001) == 2
    err = capsys.readouterr().err
    assert "no answer: shop-" in err
    assert "no example is left" in err
    assert not file.exists()
