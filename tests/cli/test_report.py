"""The command ``report`` on published outputs: tables, JSON, formats and bad input."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path
from typing import Any

import pytest

from codetaste.cli.commands.report import BenchmarkOptions, report
from codetaste.cli.site import OutputOptions
from codetaste.swe_refactor.report.trials_file import write_trials
from support.evaluation.published_outputs import PATH, Outputs
from support.swe_refactor.trial_rows import trial_row

PAGE = Path(__file__).resolve().parents[2] / "docs" / "programs.md"
OTHER = "Made/Other/89abcdef"
GOOD = {"rules": (4, 4, 0, 6)}
FAILS = {"tests": {"passed": 3, "failed": 9, "skipped": 0, "total": 12, "error": None}}


def outputs(root: Path) -> Outputs:
    """Two agents on two instances: one follows all rules, the other 7 of 10, and fails its tests once."""
    made = Outputs(root / "outputs")
    for path in (PATH, OTHER):
        made.add_baselines((20, 1), (21, 0), path=path)
        made.add_null(path)
        made.add_trial("good", path=path, **GOOD)
        made.add_trial("poor", path=path, **(FAILS if path == OTHER else {}))
    return made


@pytest.fixture
def made(tmp_path: Path) -> Outputs:
    return outputs(tmp_path)


class ReportOutput:
    """The exit code of the command and its text on both streams."""

    def __init__(self, capsys: pytest.CaptureFixture[str], *runs: Path, **options: Any) -> None:
        capsys.readouterr()
        self.code = report(*runs, **options)
        self.out, self.err = capsys.readouterr()


def test_published_outputs_give_paper_table(made: Outputs, capsys: pytest.CaptureFixture[str]) -> None:
    printed = ReportOutput(capsys, made.root, table=("4",))
    assert printed.code == 0, printed.err
    rows = [line for line in printed.out.splitlines() if "Open Direct" in line]
    assert re.search(r"100\.0 \[34\.2, 100\.0\] +100\.0 \[34\.2, 100\.0\]", rows[0])
    assert re.search(r"50\.0 \[.*\] +35\.0 \[.*\] .* 70\.0 \[", rows[1])
    assert "strict and published agree" in printed.out
    assert "Base Commit" in printed.out


def test_comparison_ranks_better_agent_first(made: Outputs, capsys: pytest.CaptureFixture[str]) -> None:
    document = json.loads(ReportOutput(capsys, made.root, json_=True).out)
    (comparison, _) = document["comparisons"]
    assert comparison["systems"] == ["good", "poor"]
    assert comparison["ranked_by"] == "alignment"
    assert {table["name"] for table in document["tables"]} == {"comparison", "4", "5", "effort", "counts"}


def test_all_report_keys_are_documented(made: Outputs, capsys: pytest.CaptureFixture[str]) -> None:
    (made.root / "open/direct" / PATH / "poor/evaluation/evaluation_result.json").write_text("{")
    document = json.loads(
        ReportOutput(
            capsys, made.root, json_=True, table=("all",), source=BenchmarkOptions(benchmark="quickstart")
        ).out
    )
    assert document["problems"]
    known = set(re.findall(r"`([a-z_]+)`", PAGE.read_text("utf-8")))
    todo: list[Any] = [document]
    while todo:
        each = todo.pop()
        if isinstance(each, dict):
            assert each.keys() <= known
        todo += each.values() if isinstance(each, dict) else each if isinstance(each, list) else []


@pytest.mark.parametrize("format_", ["text", "markdown", "latex", "csv"])
def test_every_format_contains_every_table(
    format_: Any, made: Outputs, capsys: pytest.CaptureFixture[str]
) -> None:
    printed = ReportOutput(
        capsys, made.root, format_=format_, by=("language",), table=("4", "effort", "comparison")
    )
    assert printed.code == 0
    for name in ("good", "poor", "Base Commit"):
        assert name in printed.out
    if format_ == "csv":
        rows = list(csv.reader(io.StringIO(printed.out, newline=""), strict=True))
        assert len({len(row) for row in rows}) == 1
        assert {row[1] for row in rows[1:]} == {"strict", "published"}
        assert {row[0] for row in rows} >= {"4", "comparison", "by-language", "effort"}


def test_output_folder_gets_file_for_each_table(
    made: Outputs, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    out = tmp_path / "tables"
    printed = ReportOutput(
        capsys, made.root, output=OutputOptions(out=out), format_="latex", table=("4", "effort")
    )
    assert sorted(path.name for path in out.iterdir()) == ["effort.tex", "table-4.tex"]
    assert printed.out.split() == [str(out / "table-4.tex"), str(out / "effort.tex")]


def test_several_runs_are_merged_and_duplicate_folder_counts_once(
    made: Outputs, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    once = json.loads(ReportOutput(capsys, made.root, json_=True).out)
    again = json.loads(ReportOutput(capsys, made.root, made.root / "../outputs", json_=True).out)
    assert again["trials"] == once["trials"] == 6
    other = outputs(tmp_path / "elsewhere")
    both = json.loads(ReportOutput(capsys, made.root, other.root, json_=True).out)
    assert both["trials"] == 12
    assert len(both["comparisons"][0]["systems"]) == 4
    assert any("listed separately for each run" in note for note in both["notes"])


def test_broken_trial_is_listed_and_rest_is_reported(
    made: Outputs, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = made.root / "open/direct" / PATH / "poor"
    result = folder / "evaluation/evaluation_result.json"
    result.write_text(result.read_text()[:100])
    printed = ReportOutput(capsys, made.root)
    assert printed.code == 0
    assert "evaluation_result.json" in printed.out.partition("Problems")[2]
    assert re.search(r"good\n +Open Direct +2 ", printed.out)
    document = json.loads(ReportOutput(capsys, made.root, json_=True).out)
    assert any("evaluation_result.json" in problem["location"] for problem in document["problems"])


def test_report_missing_folder_is_bad_input_and_empty_is_reported(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    printed = ReportOutput(capsys, tmp_path / "nowhere")
    assert (printed.code, printed.out) == (2, "")
    assert "nowhere" in printed.err
    assert ReportOutput(capsys).code == 2
    assert ReportOutput(capsys, tmp_path, table=("1",)).code == 2
    (tmp_path / "run").mkdir()
    (tmp_path / "run/journal.jsonl").write_text('{"event": "journal", "format": 2}\n')
    discovery = ReportOutput(capsys, tmp_path / "run")
    assert (discovery.code, "there is no trial in" in discovery.err) == (1, True)
    (tmp_path / "run/describe").mkdir()
    described = ReportOutput(capsys, tmp_path / "run")
    assert (described.code, described.out) == (1, "")
    assert "run, which mines or describes instances" in described.err
    made = Outputs(tmp_path / "outputs")
    made.add_null()
    only_null = ReportOutput(capsys, made.root)
    assert only_null.code == 1
    assert "there is no trial" in only_null.err
    assert json.loads(ReportOutput(capsys, made.root, json_=True).out)["comparisons"] == []


def test_a_missing_run_is_named_with_the_one_that_may_be_meant(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs/compare").mkdir(parents=True)
    (tmp_path / "compare.toml").touch()
    for run in ("comparee", "runs/comparee"):
        assert "no such folder; did you mean runs/compare?" in ReportOutput(capsys, Path(run)).err
    assert "compare.toml: is no folder; this looks like a config: name the run" in (
        ReportOutput(capsys, Path("compare.toml")).err
    )


def test_a_site_is_no_page_and_nothing_is_written_into_a_run(
    made: Outputs, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    page = ReportOutput(capsys, made.root, output=OutputOptions(out=tmp_path / "x.html"))
    assert (page.code, (tmp_path / "x.html").exists()) == (2, False)
    assert "is the name of a page: name a folder for the site" in page.err
    before = sorted(made.root.iterdir())
    for format_, tables in (("jsonl", ("trials",)), ("markdown", ())):
        output = OutputOptions(out=made.root / "tables")
        inside = ReportOutput(capsys, made.root, output=output, format_=format_, table=tables)
        assert inside.code == 2
        assert "is inside the run" in inside.err
    assert sorted(made.root.iterdir()) == before


def test_trials_of_swe_refactor_beside_those_of_codetaste_are_named(
    made: Outputs, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "methods"
    write_trials(run / "swe_refactor/trials.jsonl", [trial_row(run="methods")])
    printed = ReportOutput(capsys, made.root, run)
    assert printed.code == 0, printed.err
    assert "not in these tables: 1 trial of SWE-Refactor" in printed.err
