"""The page of the construction of SWE-Refactor."""

from __future__ import annotations

from pathlib import Path

from codetaste.report.render.csv import render_csv
from codetaste.swe_refactor.build.outcomes import CandidateOutcome, outcomes_to_json, rows_table
from support.site.results import make_site, site_texts

NASTY = "<script>alert(1)</script>\u202e"
PAGE = "swe-refactor/construction/index.html"
OUTCOMES = (
    CandidateOutcome(
        "o/r", "a" * 40, "4 verify", "verified", "", "Extract Method", NASTY, "id", is_instance=True
    ),
    CandidateOutcome("o/r", "b" * 40, "1 mine", "no_refactoring", NASTY),
)


def make_run(folder: Path, text: str) -> Path:
    (folder / "swe_refactor").mkdir(parents=True)
    (folder / "swe_refactor" / "outcomes.json").write_text(text)
    return folder


def test_page_counts_outcomes_and_lists_candidates(tmp_path: Path) -> None:
    made = site_texts(make_site([make_run(tmp_path, outcomes_to_json(OUTCOMES))]))
    assert made[PAGE.replace("index.html", "rows.csv")] == render_csv([rows_table(OUTCOMES)])
    assert "b" * 40 in made[PAGE]
    assert "<script>alert" not in made[PAGE]
    assert "\u202e" not in made[PAGE]


def test_damaged_file_is_a_problem_of_the_page(tmp_path: Path) -> None:
    good, bad = make_run(tmp_path / "g", outcomes_to_json(OUTCOMES)), make_run(tmp_path / "b", "[{]")
    page = site_texts(make_site([good, bad]))[PAGE]
    assert "no file of outcomes" in page
    assert "a" * 40 in page
