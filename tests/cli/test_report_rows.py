"""``codetaste report --table trials|rules|jobs``: rows on standard output and in files, and clear errors."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow.parquet as pq
import pytest

from codetaste.cli.commands.report import report
from codetaste.cli.site import OutputOptions
from support.site.journals import write_journal
from support.site.synthetic import Size, write_results


class Done(NamedTuple):
    """Exit code and text of the command."""

    code: int
    out: str
    err: str


Report = Callable[..., Done]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("rows")
    size = Size(instances=2, agents=2, settings=2, lines=0.01, rules=3, turns=1)
    return write_results(folder, size)[1]


@pytest.fixture
def rows(run: Path, capsys: pytest.CaptureFixture[str]) -> Report:
    """Call the command for the run."""

    def call(*tables: str, out: Path | None = None, **options: Any) -> Done:
        capsys.readouterr()
        code = report(run, table=tables, output=OutputOptions(out=out), **options)
        return Done(code, *capsys.readouterr())

    return call


def test_rows_are_printed_as_csv_and_json_lines(rows: Report) -> None:
    done = rows("trials", format_="csv")
    cells = [*csv.DictReader(io.StringIO(done.out))]
    lines = rows("trials", format_="jsonl").out.splitlines()
    assert (done.code, len(cells), len(lines)) == (0, 8, 8)
    assert [row["agent"] for row in cells] == [json.loads(line)["agent"] for line in lines]
    assert done.out == rows("trials", format_="csv").out


def test_several_tables_go_to_a_folder_and_one_to_a_file(rows: Report, tmp_path: Path) -> None:
    done = rows("trials", "rules", format_="parquet", out=tmp_path / "d")
    assert done.out.split() == [str(tmp_path / "d/trials.parquet"), str(tmp_path / "d/rules.parquet")]
    assert pq.read_table(tmp_path / "d/trials.parquet").num_rows == 8
    rows("rules", format_="parquet", out=tmp_path / "x.parquet")
    assert (tmp_path / "x.parquet").read_bytes() == (tmp_path / "d/rules.parquet").read_bytes()


@pytest.mark.parametrize(
    ("tables", "options", "message"),
    [
        (["trials"], {}, "add --format csv, jsonl or parquet"),
        (["trials"], {"format_": "parquet"}, "name a file or a folder with --out"),
        ([], {"format_": "jsonl"}, "--format jsonl is for --table trials, rules or jobs"),
        (["trials", "4"], {"format_": "csv"}, "rows are written alone"),
        (["trials"], {"format_": "csv", "by": ("language",)}, "rows are written alone"),
        (["jobs", "rules"], {"format_": "csv"}, "name a folder with --out"),
        (["jobs"], {"format_": "csv", "json_": True}, "rows as JSON are --format jsonl"),
    ],
)
def test_options_that_do_not_fit_are_one_clear_line(
    rows: Report, tables: list[str], options: dict[str, Any], message: str
) -> None:
    done = rows(*tables, **options)
    assert (done.code, message in done.err, done.err.count("\n")) == (2, True, 1)


def test_no_row_is_exit_code_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_journal(tmp_path, ())
    code = report(tmp_path, table=("jobs",), output=OutputOptions(out=None), format_="csv")
    done = Done(code, *capsys.readouterr())
    assert (done.code, done.out.count("\n")) == (1, 1)
    assert "there is no row of jobs" in done.err
