"""Jobs lead to the pages that show their results."""

from __future__ import annotations

import json
from pathlib import Path

from codetaste.site.live.access import Access
from codetaste.site.live.app import ViewApp
from codetaste.site.live.current_site import CurrentSite
from codetaste.site.live.result_pages import Subject, subject_of_job
from codetaste.site.live.serve import followed_runs
from support.site.journals import SESSION, ended, job, started, write_journal
from support.site.requests import get


def test_jobs_that_share_a_subject_lead_to_one_page() -> None:
    run = Path("r")
    trial = Subject(run, "infer/a/open/plan/i")
    for key in ("infer/a/open/plan/i/plan", "infer/a/open/plan/i/execute", "evaluate/a/open/plan/i"):
        assert subject_of_job(run, key) == trial
    answer = Subject(run, "answer/rag/m/i")
    assert {subject_of_job(run, key) for key in ("answer/rag/m/i", "score/rag/m/i")} == {answer}
    assert subject_of_job(run, "sources/i") == Subject(run, "sources/i")


def make_run(folder: Path) -> Path:
    """Write a run with one trial that has ended and one job that has not."""
    key = "infer/a/open/direct/o__r-01234567/execute"
    run = write_journal(folder / "r", [SESSION, job(key), started(key), ended(key), job("sources/x")])
    trial = run / "outputs" / "open" / "direct" / "o" / "r" / "01234567" / "a"
    trial.mkdir(parents=True)
    (trial / "prediction.diff").write_text("\n")
    return run


def test_page_of_a_run_links_the_trials_that_have_ended(tmp_path: Path) -> None:
    root = make_run(tmp_path)
    runs = followed_runs([root])
    app = ViewApp(Access("127.0.0.1"), CurrentSite([root], None, "r"), runs)
    page = get(app, "/live/r/index.html").text
    address = "trials/r/a/open-direct/o__r-01234567/1/index.html"
    assert page.count(f'href="../../{address}"') == 1
    assert get(app, f"/{address}").status_code == 200


def test_rows_of_jobs_whose_results_are_found_later_are_sent_again(tmp_path: Path) -> None:
    root = make_run(tmp_path)
    current = CurrentSite([root], None, "r")
    app = ViewApp(Access("127.0.0.1"), current, followed_runs([root]))
    # A page that was made before the results were read, and has all jobs.
    first = get(app, "/live/r/changes.json").json()
    version, _, reading = first["version"].rpartition(".")
    assert (first["whole"], reading) == (True, "1")
    again = get(app, f"/live/r/changes.json?since={version}.0").json()
    assert not again["whole"]
    [row] = again["job_rows"]
    assert "trials/r/a/open-direct" in row["html"]
    assert get(app, f"/live/r/changes.json?since={version}.1").json()["job_rows"] == []


def test_pages_of_several_runs_with_one_name_differ(tmp_path: Path) -> None:
    roots = [write_journal(tmp_path / name / "same", [SESSION, job(name)]) for name in ("one", "two")]
    app = ViewApp(Access("127.0.0.1"), CurrentSite(roots, None, "two"), followed_runs(roots))
    overview = get(app, "/live/index.html").text
    for name, key in (("same", "one"), ("same-2", "two")):
        assert f'href="{name}/index.html"' in overview
        assert f"key={key}" in get(app, f"/live/{name}/index.html").text


def test_run_without_results_and_one_that_is_damaged_are_shown(tmp_path: Path) -> None:
    good, bad = make_run(tmp_path), tmp_path / "bad"
    bad.mkdir()
    (bad / "journal.jsonl").write_text("not a journal\nat all\n")
    roots = [good, bad, tmp_path / "later"]
    app = ViewApp(Access("127.0.0.1"), CurrentSite(roots, None, "runs"), followed_runs(roots))
    assert "journal.jsonl" in get(app, "/live/bad/index.html").text
    assert "no run there" in get(app, "/live/later/index.html").text
    assert get(app, "/trials/r/a/open-direct/o__r-01234567/1/index.html").status_code == 200
    assert json.loads(get(app, "/live/bad/changes.json").content)["job_rows"] == []
