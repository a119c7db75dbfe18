"""``codetaste report --figure``: files, what is missing, and bad options."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.cli.invoke import codetaste
from support.site.synthetic import Size, write_results


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    size = Size(instances=2, agents=2, settings=1, lines=0.01, rules=2, turns=1)
    return write_results(tmp_path_factory.mktemp("figures"), size)[1]


def test_figures_are_written_beside_their_numbers(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = [
        "--figure",
        "endings",
        "--figure-format",
        "svg",
        "--figure-format",
        "png",
        "-o",
        tmp_path / "f",
    ]
    printed = codetaste(capsys, "report", run, *options).splitlines()
    assert [Path(line).name for line in printed] == ["endings.svg", "endings.png", "endings.csv"]
    assert all(Path(line).stat().st_size for line in printed)


def test_what_cannot_be_drawn_is_named_with_its_reason(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["--figure", "funnel", "--figure", "endings", "-o", tmp_path, "--json"]
    result = json.loads(codetaste(capsys, "report", run, *options))
    assert result["missing_figures"] == [{"name": "funnel", "reason": "it needs a run that mines"}]
    assert len(result["files"]) == 2
    error = codetaste(capsys, "report", run, "--figure", "funnel", "-o", tmp_path, code=1)
    assert error == "codetaste: no figure funnel: it needs a run that mines\n"


def test_figures_need_a_folder(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    error = codetaste(capsys, "report", run, "--figure", "endings", code=2)
    assert error == "codetaste: figures are files: name their folder with --out DIR\n"


@pytest.mark.parametrize("other", [("--table", "4"), ("--by", "agent"), ("--format", "csv"), ("--redact",)])
def test_figures_are_drawn_alone(
    run: Path, tmp_path: Path, other: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["--figure", "endings", "-o", tmp_path / "f", *other]
    assert "figures are drawn alone" in codetaste(capsys, "report", run, *options, code=2)
    assert not (tmp_path / "f").exists()


@pytest.mark.parametrize(("width", "environment"), [("page", "table*"), ("column", "table")])
def test_latex_tables_have_the_width(
    run: Path, width: str, environment: str, capsys: pytest.CaptureFixture[str]
) -> None:
    text = codetaste(capsys, "report", run, "--table", "4", "--format", "latex", "--width", width)
    assert f"\\begin{{{environment}}}" in text
