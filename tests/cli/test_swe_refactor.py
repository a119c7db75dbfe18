"""``codetaste swe-refactor``: files of instances are listed, shown and checked; outcomes are explained."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from codetaste.cli.app import app
from codetaste.report.render.csv import render_csv
from codetaste.swe_refactor.build.outcomes import (
    BuildStep,
    CandidateOutcome,
    outcome_table,
    outcomes_to_json,
    read_outcomes,
    rows_table,
)
from support.swe_refactor.documents import COMMIT, document

OUTCOMES = (
    CandidateOutcome(
        "a/b",
        COMMIT,
        BuildStep.VERIFY,
        "verified",
        "",
        "Move Method",
        "Move Method m",
        "id",
        is_instance=True,
    ),
    CandidateOutcome(
        "a/b", COMMIT, BuildStep.PURITY, "impure", "a statement was added", "Inline Method", "x"
    ),
    CandidateOutcome("a/b", "f" * 40, BuildStep.MINE, "merge", "a merge"),
    CandidateOutcome("a/b", "e" * 40, BuildStep.MINE, "merge", "a merge"),
)


def run(*arguments: object) -> int:
    with pytest.raises(SystemExit) as ended:
        app(["swe-refactor", *map(str, arguments)])
    return int(ended.value.code or 0)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "instances.json"
    path.write_text(json.dumps([document()]))
    return path


def test_list_and_show(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("list", file) == 0
    out = capsys.readouterr().out
    assert "p.A#a" in out
    assert "1 instance" in out
    assert run("list", file, "--type", "Move Method", "--json") == 0
    assert json.loads(capsys.readouterr().out)["instances"] == []
    assert run("show", file, COMMIT[:8]) == 0
    assert "void a() {" in capsys.readouterr().out
    assert run("show", file, "nothing") == 2
    assert "no instance has this id" in capsys.readouterr().err
    assert run("list", file, "--type", "Move Methods") == 2
    assert "Move Method" in capsys.readouterr().err


def test_a_selection_is_written_to_a_new_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    documents = [
        document(uniqueId="1", projectName="junit4", description="Ä\t\ud800"),
        document(uniqueId="2", projectName="gson", type="Move Method", unknown=[1.0]),
        document(uniqueId="3", type="Move Method", testResult=False),
    ]
    file, new = tmp_path / "all.json", tmp_path / "new.json"
    file.write_text(json.dumps(documents, indent=4))

    def select(*arguments: str) -> list[str]:
        new.unlink(missing_ok=True)
        assert run("list", file, *arguments, "--to", new) == 0
        found = json.loads(new.read_text())
        assert new.read_text() == json.dumps([documents[int(e["uniqueId"]) - 1] for e in found], indent=4)
        return [each["uniqueId"] for each in found]

    assert select() == ["1", "2", "3"]
    assert new.read_bytes() == file.read_bytes()
    assert select("--type", "Move Method") == ["2", "3"]
    assert select("--type", "Move Method", "--verified") == ["2"]
    assert select("--project", "gs*", "--project", "junit4") == ["1", "2"]
    assert select("--project", "x") == []
    capsys.readouterr()
    assert run("list", file, "--to", new) == 2
    assert "exists; name a new file" in capsys.readouterr().err
    assert run("list", file, "--to", file / "new.json") == 1
    assert "cannot be written" in capsys.readouterr().err
    assert run("list", file) == 0
    assert "gson" in capsys.readouterr().out


@pytest.mark.parametrize("options", [("--only", "detect/*"), ("--rerun",), ("--rerun-failed",)])
@pytest.mark.parametrize("more", [(), ("--dry-run",)])
def test_a_construction_refuses_options_that_select_jobs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], options: tuple[str, ...], more: tuple[str, ...]
) -> None:
    config = tmp_path / "config.toml"
    config.write_text('[run]\nname = "r"\n[swe_refactor.build]\nrepositories = ["nowhere"]\n')
    assert run("build", config, *options, *more) == 2
    assert f"{options[0]}: not with [swe_refactor.build]" in capsys.readouterr().err
    assert not (tmp_path / "runs").exists()


def test_check(tmp_path: Path, file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("check", file) == 0
    assert "1 instance: 0 with problems" in capsys.readouterr().out
    bad = tmp_path / "bad.json"
    bad.write_text(json.dumps([document(methodNameBefore="p.B#a")]))
    assert run("check", bad) == 1
    assert "methodNameBefore: it is no method of classNameBefore" in capsys.readouterr().out
    assert run("check", tmp_path / "none.json") == 2


def test_explain_says_in_which_step_each_refactoring_ended(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "swe_refactor"
    folder.mkdir()
    (folder / "outcomes.json").write_text(outcomes_to_json(OUTCOMES))
    assert read_outcomes(folder / "outcomes.json") == OUTCOMES
    assert run("explain", tmp_path, COMMIT[:6]) == 0
    out = capsys.readouterr().out
    assert "step 4 verify  verified" in out
    assert "step 2 purity  impure: a statement was added" in out
    assert run("explain", tmp_path, "ff") == 1
    assert run("explain", tmp_path, "abcabc") == 2
    (folder / "outcomes.json").write_text("[{}]")
    assert run("explain", tmp_path, "ff") == 2
    assert "Traceback" not in capsys.readouterr().err


def test_outcomes_are_counted_by_step() -> None:
    rows = [row.cells[:3] for row in outcome_table(OUTCOMES).rows]
    assert rows == [("1 mine", "merge", 2), ("2 purity", "impure", 1), ("4 verify", "verified", 1)]
    assert "Move Method m" in render_csv([rows_table(OUTCOMES)])
