"""What a trial's page has from the run's folder: turns, waits, single tests, labels and case studies."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from pathlib import Path

import pytest

from codetaste.case_study.read import read_labels
from codetaste.results.load import load
from codetaste.results.read import read_results
from codetaste.site.build import open_site
from codetaste.site.trial.page import trial_files
from support.site.hostile import MARKUP, PLACE, harmful_parts, write_hostile_run
from support.site.journals import SESSION, ended, job, reserved, settled, started, write_journal

INSTANCE = "own__repo-0123abcd"
NAME = f"agent/instructed/direct/{INSTANCE}"


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run with a journal: one step with a turn, and the test runs of the patch and of R."""
    run = write_hostile_run(tmp_path)
    step = f"infer/{NAME}/execute"
    lines = [
        SESSION,
        job(step),
        started(step),
        reserved(step, "c1", "0.5"),
        settled("c1", "0.25"),
        ended(step),
    ]
    tests = {f"tests/{NAME}": {"same": "passed", "<b>broke</b>": "failed", "new": "passed"}}
    tests[f"tests/base/{INSTANCE}/1"] = {"same": "passed", "<b>broke</b>": "passed"}
    for key, cases in tests.items():
        text = json.dumps(cases).encode()
        digest = hashlib.sha256(text).hexdigest()
        blob = run / "blobs" / digest[:2] / digest
        blob.parent.mkdir(parents=True, exist_ok=True)
        blob.write_bytes(text)
        lines += [job(key), started(key), ended(key, value={"cases": digest})]
    return write_journal(run, lines)


def page_of(run: Path) -> str:
    site = open_site(read_results([run]), "made")
    found = {file.address: file.make() for whole in trial_files(site) for file in whole.with_parts()}
    pages = (content.decode() for address, content in found.items() if address.endswith("index.html"))
    return next(page for page in pages if "rule-table" in page)


def test_turns_have_their_cost(run: Path) -> None:
    page = page_of(run)
    assert '<section id="time"' in page
    assert "<dt>Billed</dt><dd>$0.25</dd>" in page
    assert page.count('<rect class="model"') == 1
    assert harmful_parts(page) == []


def test_tests_that_failed_or_changed_are_listed_beside_those_of_r(run: Path) -> None:
    page = page_of(run)
    table = page[page.index('id="case-table"') :].partition("</table>")[0]
    rows = re.findall(r"<tr><th[^>]*>(.*?)</th><td[^>]*>(.*?)</td><td>(.*?)</td>", table)
    assert rows == [("&lt;b&gt;broke&lt;/b&gt;", "failed", "passed"), ("new", "passed", "–")]
    assert "2 passed, 1 failed." in page.replace("\n", " ")


def test_labels_and_case_studies_are_text_with_their_evidence(run: Path) -> None:
    origin = {"instance": INSTANCE, "track": "instructed", "mode": "direct", "by": "judge"}
    evidence = [{"command": f"cat {MARKUP}", "excerpt": MARKUP, "problem": "it did not print this"}]
    (agent,) = {each.agent for each in read_results([run]).trials.agents if each.scores.tests}
    label = {"schema_version": 1, "origin": origin, "agent": agent, "attempt": 1, "label": "shim"}
    study = {"schema_version": 1, "origin": origin, "summary": "all"}
    claims = [{"text": "it stops", "evidence": evidence}]
    assessment = {"agent": agent, "attempt": 1, "text": f"poor {MARKUP}", "claims": claims}
    for name, data in (
        ("labels", {**label, "reason": "because", "evidence": evidence}),
        ("reports", {**study, "trials": [assessment]}),
    ):
        path = run / "case_studies" / name / PLACE / "x.json"
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps(data))
    problems: list[str] = []
    assert read_labels(run, problems), problems
    (row,) = (each for each in load(run).trials if each.failure_labels)
    assert (row.agent, row.failure_labels) == (agent, ("shim instead of the change",))
    page = page_of(run)
    part = page[page.index('<section id="studies"') :]
    assert "shim instead of the change, not verified" in part
    assert "it did not print this" in part
    assert "it stops" in part
    assert harmful_parts(page) == []


def test_the_outcome_of_a_page_is_that_of_its_row(run: Path) -> None:
    reason = next(run.rglob("inference_metadata.json"))
    reason.write_text(json.dumps({**json.loads(reason.read_text()), "finish_reason": "error"}))
    site = open_site(read_results([run]), "site")
    rows = {(row.agent, row.track, row.instance): row.outcome for row in load(run).trials}
    for trial in site.trials:
        outcome = rows[trial.agent, trial.track, trial.instance]
        assert site.facet(trial) == outcome


def test_a_label_belongs_to_the_trial_of_its_run(run: Path, tmp_path: Path) -> None:
    again = shutil.copytree(run, tmp_path / "again")
    (agent,) = {each.agent for each in read_results([run]).trials.agents if each.scores.tests}
    origin = {"instance": INSTANCE, "track": "instructed", "mode": "direct", "by": "judge"}
    label = {"schema_version": 1, "origin": origin, "agent": agent, "attempt": 1, "label": "shim"}
    path = again / "case_studies" / "labels" / PLACE / "x.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({**label, "reason": "because", "evidence": []}))
    rows = load(run, again).trials
    assert {row.run for row in rows if row.failure_labels} == {"again"}


def test_a_damaged_journal_or_blob_leaves_the_page(run: Path) -> None:
    for path in (*(run / "blobs").rglob("*"), run / "journal.jsonl"):
        if path.is_file():
            content = path.read_bytes()
            path.write_bytes(content[: len(content) // 2])
            assert "Rule by rule" in page_of(run)
