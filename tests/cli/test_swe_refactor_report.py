"""``codetaste swe-refactor report`` and ``sample``: what a reader sees, files, JSON, and bad input."""

from __future__ import annotations

import csv
import io
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from codetaste.swe_refactor.dataset.format import read_instances
from codetaste.swe_refactor.dataset.instance import REFACTORING_TYPES
from codetaste.swe_refactor.dataset.layout import FOLDER, TRIALS_FILE
from codetaste.swe_refactor.report.outcome import NoScore
from codetaste.swe_refactor.report.tables import TRIAL_TABLES
from codetaste.swe_refactor.report.trial_row import TrialRow
from codetaste.swe_refactor.report.trials_file import write_trials
from support.cli.invoke import codetaste
from support.swe_refactor.documents import document
from support.swe_refactor.paper_run import MODELS, SAMPLE, WORKFLOWS, write_paper_run
from support.swe_refactor.trial_rows import rows_of_counts, trial_row

PAGE = Path(__file__).resolve().parents[2] / "docs" / "programs.md"
Capture = pytest.CaptureFixture[str]


def write_run(folder: Path, rows: list[TrialRow]) -> Path:
    write_trials(folder / FOLDER / TRIALS_FILE, [replace(row, run=folder.name) for row in rows])
    return folder


def two_models(folder: Path) -> Path:
    """Two scripted models at 60 instances of 18 projects: one solves 48, the other 21 and lacks one trial."""
    sizes = {"Extract Method": 40, "Move Method": 20}
    good = rows_of_counts(sizes, {"Extract Method": 32, "Move Method": 16}, model="good", scripted=True)
    poor = rows_of_counts(sizes, {"Extract Method": 15, "Move Method": 6}, model="poor", scripted=True)
    poor[-1] = replace(poor[-1], outcome=NoScore.PROVIDER)
    return write_run(folder, [*poor, *good])


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return two_models(tmp_path / "r")


def test_the_better_of_two_scripted_models_ranks_better_with_an_interval(run: Path, capsys: Capture) -> None:
    out = codetaste(capsys, "swe-refactor", "report", run)
    ranking = out.partition("Ranking: ")[2]
    assert re.search(r"good +a +1 +48 +80\.00 \[68\.\d+, 88\.\d+\] +60 +b", ranking)
    assert re.search(r"poor +b +2 +21 +35\.59 \[24\.\d+, 48\.\d+\] +59\n", ranking)
    assert "1 trial is not counted, as no fault of the model (provider_failure 1)" in out
    assert "scripted, with costs that are not real: good, poor" in out
    [test] = json.loads(codetaste(capsys, "swe-refactor", "report", run, "--json"))["tests"]
    assert (test["first"], test["significant"]) == ({"strategy": "simple", "model": "good"}, True)
    assert test["p_corrected"] < 0.001
    assert 0 < test["detectable"] < test["difference"]


def test_a_note_of_several_tables_is_shown_once_but_is_in_each_file(
    run: Path, tmp_path: Path, capsys: Capture
) -> None:
    note = "1 trial is not counted"
    assert codetaste(capsys, "swe-refactor", "report", run).count(note) == 1
    codetaste(capsys, "swe-refactor", "report", run, "--to", tmp_path / "tables")
    assert {path.name for path in (tmp_path / "tables").glob("*.md") if note in path.read_text()} == {
        *(f"table-{name}.md" for name in "234"),
        *(f"{name}.md" for name in ("effort", "strategies", "by-type", "by-project", "ranking", "failures")),
    }


def test_every_percentage_of_the_paper_comes_out_of_the_command(tmp_path: Path, capsys: Capture) -> None:
    run = tmp_path / "paper"
    sample = write_paper_run(run)
    shown = ("--table", "2", "--table", "4", "--table", "5", "--sample", sample)
    text = codetaste(capsys, "swe-refactor", "report", run, *shown)
    two, four, five = re.split(r"\n(?=Table [45]: )", text)
    for model, (*_, percents) in MODELS.items():
        [line] = [each for each in two.partition("\nsimple\n")[2].splitlines() if model in each]
        assert [each for each in percents if f" {each} [" in line] == [*percents]
    for model, (_, percent) in WORKFLOWS.items():
        assert re.search(rf"multi-agent +{model} +\d+ +{percent} \[", four)
    for model, (_, percent) in SAMPLE.items():
        assert re.search(rf"agent +{model} +\d+ +{percent} \[", five)
    assert "sample of 200 instances" in five


def test_all_tables_are_written_in_four_formats(run: Path, tmp_path: Path, capsys: Capture) -> None:
    sample, instances = tmp_path / "ids.json", tmp_path / "instances.json"
    sample.write_text(json.dumps([f"Extract Method {at}" for at in range(10)]))
    instances.write_text(json.dumps([document(uniqueId=f"Extract Method {at}") for at in range(20)]))
    to = tmp_path / "new" / "tables"
    options = ("--sample", sample, "--instances", instances, "--to", to)
    printed = codetaste(capsys, "swe-refactor", "report", run, *options).splitlines()
    assert sorted(map(str, to.iterdir())) == sorted(printed)
    names = {path.name for path in to.iterdir()}
    assert names == {
        f"{'table-' if name.isdecimal() else ''}{name}.{suffix}"
        for name in (*TRIAL_TABLES, "6")
        for suffix in ("csv", "md", "tex", "json")
    }
    [five] = json.loads((to / "table-5.json").read_text())
    assert [row["cells"][2] for row in five["rows"]] == [10, 10]
    rows = list(csv.DictReader(io.StringIO((to / "table-4.csv").read_text())))
    assert {row["value"] for row in rows if row["column"] == "total_count"} == {"20", "15"}


@pytest.mark.parametrize("format_", ["text", "markdown", "latex", "csv", "json"])
def test_formats(run: Path, format_: str, capsys: Capture) -> None:
    out = codetaste(capsys, "swe-refactor", "report", run, "--table", "ranking", "--format", format_)
    assert "good" in out
    if format_ == "json":
        assert out == codetaste(capsys, "swe-refactor", "report", run, "--table", "ranking", "--json")


def test_a_file_of_instances_restricts_all_tables(run: Path, tmp_path: Path, capsys: Capture) -> None:
    file = tmp_path / "some.json"
    ids = [*(f"Extract Method {at}" for at in range(10)), "not tried"]
    file.write_text(json.dumps([document(uniqueId=each, projectName="junit4") for each in ids]))
    made = json.loads(codetaste(capsys, "swe-refactor", "report", run, "--instances", file, "--json"))
    assert (made["trials"], made["notes"]) == (20, ["1 instance of 11 instances has no trial"])
    assert made["tables"][-1]["rows"][0]["cells"][0] == "junit4"
    file.write_text(json.dumps(ids))
    again = json.loads(codetaste(capsys, "swe-refactor", "report", run, "--instances", file, "--json"))
    assert again["tables"] == made["tables"][:-1]
    file.write_text(json.dumps([document()]))
    error = codetaste(capsys, "swe-refactor", "report", run, "--instances", file, code=1)
    assert f"there is no trial at the instances of {file}" in error


def test_several_runs_are_merged_and_one_given_twice_counts_once(
    run: Path, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_run(tmp_path / "runs" / "other", [trial_row(strategy="rag", instance="Extract Method 0")])
    write_run(tmp_path / "runs" / "other", [trial_row(strategy="rag", instance="x")])
    monkeypatch.chdir(tmp_path)
    made = json.loads(codetaste(capsys, "swe-refactor", "report", "other", run, f"{run}/../r", "--json"))
    assert (made["trials"], made["not_counted"]) == (121, 1)


def test_all_keys_are_documented(run: Path, tmp_path: Path, capsys: Capture) -> None:
    known = set(re.findall(r"`([a-z_0-9]+)`", PAGE.read_text("utf-8")))
    file = write_instances(tmp_path, 30)
    todo: list[Any] = [
        json.loads(codetaste(capsys, "swe-refactor", "report", run, "--table", "all", "--json")),
        json.loads(codetaste(capsys, "swe-refactor", "sample", file, "--size", "6", "--json")),
    ]
    page = (PAGE.parent / "swe-refactor-tables.md").read_text("utf-8")
    for line in (run / FOLDER / TRIALS_FILE).read_text().splitlines():
        assert json.loads(line).keys() <= set(re.findall(r"`([a-z_]+)`", page))
    while todo:
        each = todo.pop()
        if isinstance(each, dict):
            assert each.keys() <= known | set(REFACTORING_TYPES)
        todo += each.values() if isinstance(each, dict) else each if isinstance(each, list) else []


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ([], 2, "name a run"),
        (["nowhere"], 2, "nowhere: no such folder"),
        (["r", "--table", "5"], 2, "--table 5 is about a file of instances: name it with --sample"),
        (["r", "--table", "6"], 2, "name it with --instances"),
        (["r", "--sample", "no.json"], 2, "--sample no.json: cannot be read: No such file"),
        (["r", "--sample", "r/bad.json"], 2, "--sample r/bad.json: not valid JSON"),
        (["r", "--sample", "r/number.json"], 2, "--sample r/number.json: must be a JSON list"),
        (["r", "--instances", "r/bad.json"], 2, "--instances r/bad.json: not valid JSON"),
        (["r", "--to", "r/bad.json"], 2, "--to: r/bad.json cannot be created"),
        (["empty"], 1, "there is no trial in empty"),
        (["damaged"], 2, "damaged/swe_refactor/trials.jsonl, line 1: not valid JSON"),
        (["r", "damaged", "nowhere"], 2, "damaged/swe_refactor/trials.jsonl, line 1"),
    ],
)
def test_bad_input_is_one_clear_line(
    run: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Capture,
    arguments: list[str],
    code: int,
    message: str,
) -> None:
    (run / "bad.json").write_text("{")
    (run / "number.json").write_text("1")
    write_run(tmp_path / "empty", [])
    (write_run(tmp_path / "damaged", []) / FOLDER / TRIALS_FILE).write_text("{\n")
    monkeypatch.chdir(tmp_path)
    error = codetaste(capsys, "swe-refactor", "report", *arguments, code=code)
    assert message in error
    assert len(error.splitlines()) == (2 if arguments[-1:] == ["nowhere"] and len(arguments) == 3 else 1)


def write_instances(folder: Path, each: int, kinds: tuple[str, ...] = REFACTORING_TYPES) -> Path:
    """Write instances, half of them short, half long."""
    method = "void a() {{\n{}}}\n".format
    documents = [
        document(uniqueId=f"{kind} {at}", type=kind, sourceCodeBeforeRefactoring=method("  b();\n" * lines))
        for kind in kinds
        for at, lines in enumerate([10, 11] * (each // 2))
    ]
    (folder / "all.json").write_text(json.dumps(documents, indent=4))
    return folder / "all.json"


def test_a_sample_is_written_with_how_it_was_drawn(tmp_path: Path, capsys: Capture) -> None:
    file, new = write_instances(tmp_path, 90), tmp_path / "sample.json"
    out = codetaste(capsys, "swe-refactor", "sample", file, "--seed", "7", "--to", new)
    assert re.search(r"Extract Method +\d+ +45 +\d+ +45 +80\n", out)
    assert re.search(r"Total +100 +270 +100 +270 +200\n", out)
    assert f"200 instances drawn with seed 7 in {new}" in out
    drawn = read_instances(new)
    assert len(drawn) == 200
    record = json.loads((tmp_path / "sample.sample.json").read_text())
    assert (record["seed"], record["size"], record["mix"]["Move Method"]) == (7, 200, 74)
    again = json.loads(codetaste(capsys, "swe-refactor", "sample", file, "--seed", "7", "--json"))
    assert sorted(again["instances"]) == sorted(each.unique_id for each in drawn)
    assert json.loads(file.read_text())[0] in json.loads(new.read_text()) or len(drawn) == 200
    other = json.loads(codetaste(capsys, "swe-refactor", "sample", file, "--json"))
    assert set(other["instances"]) != set(again["instances"])
    error = codetaste(capsys, "swe-refactor", "sample", file, "--to", new, code=2)
    assert "exists" in error


def test_strata_that_lack_instances_are_named(tmp_path: Path, capsys: Capture) -> None:
    file = write_instances(tmp_path, 20, REFACTORING_TYPES[:2])
    error = codetaste(capsys, "swe-refactor", "sample", file, "--to", tmp_path / "new.json", code=2)
    assert "Extract Method: 80 needed, 20 given" in error
    assert "Move Method: 74 needed, 0 given" in error
    assert not (tmp_path / "new.json").exists()
    made = json.loads(
        codetaste(capsys, "swe-refactor", "sample", file, "--size", "10", "--mix", "file", "--json")
    )
    assert made["mix"] == {"Extract Method": 20, "Inline Method": 20}
    assert len(made["instances"]) == 10
