"""Pages of SWE-Refactor: the report's numbers, and trials with task, answer and how it was judged."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import Any

from codetaste.report.render.csv import render_csv
from codetaste.report.table import format_cell
from codetaste.swe_refactor.report.merge import merge_rows
from codetaste.swe_refactor.report.tables import TRIAL_TABLES, report_tables
from codetaste.swe_refactor.report.trials_file import write_trials
from support.site.journals import SESSION, ended, job, started, write_journal
from support.site.results import make_site, site_texts
from support.swe_refactor.documents import document
from support.swe_refactor.trial_rows import trial_row

NASTY = "<script>alert(1)</script>\u202e\x1b[31m"
BEFORE, AFTER = "package p;\nclass A {\n}\n", "package p;\nclass A {\n  int added;\n}\n"
PAGE = "swe-refactor/trials/run/simple/m/i1/1/index.html"


def store(run: Path, text: str) -> str:
    digest = hashlib.sha256(text.encode()).hexdigest()
    path = run / "blobs" / digest[:2] / digest
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return digest


def make_run(
    folder: Path, *, text: str = "the reply", path: str = "src/main/java/p/A.java", **changes: Any
) -> Any:
    """Write a run with one trial, and return the site's parts."""
    run = folder / "run"
    answer = {"files": {path: store(run, AFTER)}, "text": store(run, text), "problem": None, "details": {}}
    key = "answer/simple/m/i1"
    write_journal(run, [SESSION, job(key), started(key), ended(key, value={**answer, **changes})])
    # As the journal writes: without spaces.
    lines = (run / "journal.jsonl").read_text().splitlines()
    compact = [json.dumps(json.loads(line), separators=(",", ":")) for line in lines]
    (run / "journal.jsonl").write_text("\n".join(compact) + "\n")
    write_trials(run / "swe_refactor" / "trials.jsonl", [trial_row(run="run")])
    instances = [document(uniqueId="i1", sourceCodeBeforeForWhole=BEFORE, sourceCodeAfterForWhole=AFTER)]
    (run / "swe_refactor" / "instances.json").write_text(json.dumps(instances))
    return run


def pages(run: Path, *rows: Any) -> dict[str, str]:
    return site_texts(make_site([run], answers=merge_rows(rows or [trial_row(run="run")])))


def test_comparison_has_the_tables_of_the_report_and_all_trials(tmp_path: Path) -> None:
    rows = [trial_row(model=model, instance=f"i{at}", run="run") for model in "mn" for at in range(3)]
    made = pages(make_run(tmp_path), *rows)
    tables = report_tables(rows, [name for name in TRIAL_TABLES if name != "5"])
    assert made["swe-refactor/tables.csv"] == render_csv(tables)
    assert len(made["swe-refactor/trials.csv"].splitlines()) == 1 + len(rows)
    for address in made:
        if address.startswith("swe-refactor/trials/") and address.endswith("index.html"):
            assert f'href="{address.removeprefix("swe-refactor/")}"' in made["swe-refactor/index.html"]


def test_the_search_has_the_trials(tmp_path: Path) -> None:
    made = pages(make_run(tmp_path))
    assert f'["trial","simple, m, i1","{PAGE}"]' in made["search/documents.js"]
    assert '"simple"' in made["search/words-si.js"]
    assert 'href="../search/index.html"' in made["swe-refactor/index.html"]
    assert "instances/index.html" not in made["search/index.html"]


def test_page_of_a_trial_has_task_answer_and_both_codes(tmp_path: Path) -> None:
    page = pages(make_run(tmp_path))[PAGE]
    assert "the reply" in page
    assert "private void b()" in page  # of the developers
    assert '<td class="text">+   int added;</td>' in page
    assert "What the developers changed in this file" in page


def test_the_row_of_the_time_figure_is_named_by_the_step(tmp_path: Path) -> None:
    page = pages(make_run(tmp_path))[PAGE]
    assert ">answer</text>" in page
    assert ">i1</text>" not in page


def test_prompt_is_shown_where_it_is_on_record(tmp_path: Path) -> None:
    digest = store(tmp_path / "run", "Refactor <b>this</b> method.")
    assert (
        "Refactor &lt;b&gt;this&lt;/b&gt; method."
        in pages(make_run(tmp_path, details={"prompt": digest}))[PAGE]
    )


def test_answer_in_another_file_is_shown_as_a_whole(tmp_path: Path) -> None:
    page = pages(make_run(tmp_path, path="p/Other.java"))[PAGE]
    assert "p/Other.java" in page
    assert "(whole new text)" in page


def test_trial_is_shown_without_journal_blobs_or_instances(tmp_path: Path) -> None:
    for lost in ("journal.jsonl", "blobs", "swe_refactor/instances.json"):
        run = make_run(tmp_path / lost.replace("/", "-"))
        (run / lost).rename(tmp_path / f"lost-{lost.replace('/', '-')}")
        page = pages(run)[PAGE]
        assert "Compile &amp; test" in page
    assert "was not found, so that the task is not shown" in page


def test_rounds_of_a_review_are_shown(tmp_path: Path) -> None:
    found = {"tool": "build", "good": False, "text": "It does not compile."}
    review = {"accepted": False, "comments": ["rename it", {"odd": 1}]}
    rounds = [
        {"round": 1, "problem": None, "findings": [found], "review": review},
        "damaged",
        {"findings": 3},
    ]
    page = pages(make_run(tmp_path, details={"rounds": rounds}))[PAGE]
    assert "Round 1: changes requested" in page
    assert "It does not compile." in page
    assert "rename it" in page


def test_untrusted_texts_are_text(tmp_path: Path) -> None:
    details = {"rounds": [{"round": NASTY, "findings": [{"tool": NASTY, "text": NASTY}]}]}
    run = make_run(tmp_path, text=NASTY, path=NASTY, details=details)
    row = trial_row(run="run", detail=NASTY, project=NASTY, type=NASTY, model_label=NASTY)
    for address, text in pages(run, row).items():
        if address.endswith(".html"):
            assert "<script>alert" not in text
            assert "\u202e" not in text
            assert "\x1b" not in text


def test_a_digest_that_is_a_path_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("do not show")
    page = pages(make_run(tmp_path, text="x", files={"a": "../../secret"}))[PAGE]
    assert "do not show" not in page
    assert "no answer on file" in page


def test_a_site_of_swe_refactor_alone_begins_with_its_strategies(tmp_path: Path) -> None:
    rows = [
        trial_row(model=model, instance=f"i{at}", run="run", verified=at % 2 == 0 or model == "m")
        for model in "mn"
        for at in range(8)
    ]
    made = pages(make_run(tmp_path), *rows)
    page = made["index.html"]
    for table in report_tables(rows, ["ranking", "strategies"]):
        assert f'id="table-{table.name}"' in page
        for row in table.rows:
            for cell, column in zip(row.cells, table.columns, strict=True):
                assert "".join(format_cell(cell, column)) in re.sub("<[^>]*>", "", page)
    assert 'href="swe-refactor/index.html"' in page


def test_a_case_study_is_on_the_pages_of_its_trials(tmp_path: Path) -> None:
    run = make_run(tmp_path)
    evidence = [{"command": f"cat {NASTY}", "excerpt": NASTY, "problem": ""}]
    claims = [{"text": f"it moves {NASTY}", "evidence": evidence}]
    study = {
        "schema_version": 1,
        "origin": {"instance": "i1", "track": "swe-refactor", "mode": "", "by": "judge"},
        "summary": "a line is added",
        "trials": [{"agent": "simple/m", "attempt": 1, "text": "the same change", "claims": claims}],
    }
    path = run / "case_studies/reports/swe-refactor/i1/judge.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(study))
    page = pages(run)[PAGE]
    part = page[page.index('<section id="studies"') :]
    assert "the same change" in part
    assert "a line is added" in part
    assert "<script>alert" not in page
