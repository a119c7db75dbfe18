"""The page of mining: the report's funnel, examples of what filters dropped, and candidates."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from codetaste.mining.filter_result import Stage
from codetaste.mining.funnel import FunnelRow, StepYield, funnel_to_json, yields_to_json
from codetaste.report.render.csv import render_csv
from codetaste.report.tables.funnel import funnel_reasons_table, funnel_table, steps_table
from support.site.results import make_site, site_texts

NASTY = "<script>alert(1)</script>\u202e"
ROWS = (
    FunnelRow(
        Stage.KEYWORDS, "stars", 10, 4, 1, (("fewer than N stars", 4),), ("o/r@abcdef0", "o/s@1234567")
    ),
    FunnelRow(Stage.PREFILTER, "duplicate", 6, 1, reasons=((NASTY, 1),), examples=(NASTY,)),
)
STEPS = [StepYield("keywords", 10, 4), StepYield("prefilter", 6, 1, 2)]
CANDIDATES = "owner,repo,commit_hash,golden_commit_hash,combined_score,category,language\n"


def make_run(folder: Path) -> Path:
    mining = folder / "run" / "mining"
    (mining / "releases").mkdir(parents=True)
    (mining / "steps.json").write_text(json.dumps({"steps": yields_to_json(STEPS)}))
    (mining / "releases" / "funnel.json").write_text(json.dumps(funnel_to_json(ROWS)))
    lines = [f"o,r{number},{number:040},{number:041},0.5,structural,{NASTY}" for number in range(600)]
    (mining / "releases" / "candidates.csv").write_text(CANDIDATES + "\n".join(lines))
    return folder / "run"


def test_page_has_the_tables_of_the_report(tmp_path: Path) -> None:
    made = site_texts(make_site([make_run(tmp_path)]))
    tables = [steps_table(STEPS), funnel_table(ROWS), funnel_reasons_table(ROWS)]
    assert made["mining/tables.csv"] == render_csv(tables)
    page = made["mining/index.html"]
    assert "<li>o/s@1234567</li>" in page
    assert "stars dropped 4 of 10" in page
    assert "<script>alert" not in page
    assert "\u202e" not in page


def test_candidates_are_listed_up_to_a_number(tmp_path: Path) -> None:
    page = site_texts(make_site([make_run(tmp_path)]))["mining/index.html"]
    assert f"{499:041}" in page
    assert f"{500:041}" not in page
    assert "Only the first 500 are listed" in page


def test_damaged_files_leave_a_page(tmp_path: Path) -> None:
    run = make_run(tmp_path)
    for name in ("steps.json", "releases/funnel.json"):
        (run / "mining" / name).write_text("{")
    assert "has written its funnel yet" in site_texts(make_site([run]))["mining/index.html"]


@pytest.mark.parametrize(
    ("name", "value"),
    [("filter", ["stars"]), ("removed", 0), ("removed", 1e308), ("reasons", {"r": []}), ("examples", [[]])],
)
def test_a_funnel_with_other_values_leaves_a_page(tmp_path: Path, name: str, value: object) -> None:
    run = make_run(tmp_path)
    path = run / "mining" / "releases" / "funnel.json"
    data = json.loads(path.read_bytes())
    data["rows"][0][name] = value
    path.write_text(json.dumps(data))
    assert "Mining" in site_texts(make_site([run]))["mining/index.html"]


def test_a_run_that_did_not_mine_has_no_page(tmp_path: Path) -> None:
    assert "mining/index.html" not in site_texts(make_site([tmp_path]))
