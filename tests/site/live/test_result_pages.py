"""Jobs lead to the pages that show their results."""

from __future__ import annotations

import math
from pathlib import Path

from codetaste import __version__
from codetaste.site.live.access import Access
from codetaste.site.live.app import ViewApp
from codetaste.site.live.current_site import CurrentSite
from codetaste.site.live.result_pages import Subject, subject_of_job
from codetaste.site.live.serve import followed_runs
from support.site.journals import SESSION, ended, job, started, write_journal
from support.site.requests import connected


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
    current = CurrentSite([root], None, "r")
    address = "trials/r/a/open-direct/o__r-01234567/1/index.html"
    with connected(ViewApp(Access("127.0.0.1"), current, runs)) as client:
        assert client.get(f"/{address}").status_code == 200
        page = client.get("/live/r/index.html").text
    assert page.count(f'href="../../{address}"') == 1


def test_rows_of_jobs_whose_results_are_found_later_are_sent_again(tmp_path: Path) -> None:
    root = make_run(tmp_path)
    current = CurrentSite([root], None, "r")
    with connected(ViewApp(Access("127.0.0.1"), current, followed_runs([root]))) as client:
        # A page that was made before the results were read, and has all jobs.
        first = client.get("/live/r/changes.json").json()
        version = first["version"].rpartition(".")[0]
        assert first["whole"]
        client.portal.call(current.refresh, 1, math.inf)
        again = client.get(f"/live/r/changes.json?since={version}.0").json()
        assert not again["whole"]
        [row] = again["job_rows"]
        assert "trials/r/a/open-direct" in row["html"]
        assert client.get(f"/live/r/changes.json?since={version}.1").json()["job_rows"] == []


def test_a_job_that_has_ended_shows_how_long_it_took(tmp_path: Path) -> None:
    lines = [{**line, "t": at} for at, line in ((10.0, job("a")), (20.0, started("a")), (95.0, ended("a")))]
    root = write_journal(tmp_path / "run", [SESSION, *lines, job("b"), started("b")])
    app = ViewApp(Access("127.0.0.1"), CurrentSite([root], None, "run"), followed_runs([root]))
    with connected(app) as client:
        rows = client.get("/live/run/changes.json").json()["job_rows"]
        assert ["took 1m15s" in row["html"] for row in rows].count(True) == 1
        assert "<dt>Took</dt><dd>1m15s</dd>" in client.get("/live/run/job.html?key=a").text
        assert "<dt>Since</dt>" in client.get("/live/run/job.html?key=b").text


def test_pages_of_several_runs_with_one_name_differ(tmp_path: Path) -> None:
    roots = [write_journal(tmp_path / name / "same", [SESSION, job(name)]) for name in ("one", "two")]
    app = ViewApp(Access("127.0.0.1"), CurrentSite(roots, None, "two"), followed_runs(roots))
    with connected(app) as client:
        overview = client.get("/live/index.html").text
        for name, key in (("same", "one"), ("same-2", "two")):
            assert f'href="{name}/index.html"' in overview
            assert f"key={key}" in client.get(f"/live/{name}/index.html").text


def test_run_without_results_and_one_that_is_damaged_are_shown(tmp_path: Path) -> None:
    good, bad = make_run(tmp_path), tmp_path / "bad"
    bad.mkdir()
    (bad / "journal.jsonl").write_text("not a journal\nat all\n")
    roots = [good, bad, tmp_path / "later"]
    app = ViewApp(Access("127.0.0.1"), CurrentSite(roots, None, "runs"), followed_runs(roots))
    with connected(app) as client:
        assert "journal.jsonl" in client.get("/live/bad/index.html").text
        later = client.get("/live/later/index.html").text
        assert "no run there" in later
        assert "Problem:" not in later
        assert f"Made by codetaste {__version__}" in later
        assert client.get("/trials/r/a/open-direct/o__r-01234567/1/index.html").status_code == 200
        assert client.get("/live/bad/changes.json").json()["job_rows"] == []
