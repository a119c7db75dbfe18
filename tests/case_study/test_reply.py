"""Reports of agents are read strictly; what is wrong is said in a few lines, for the agent to mend."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codetaste.case_study.config import StudyKind
from codetaste.case_study.evidence import EvidenceRecord
from codetaste.case_study.plan import StudiedTrial, StudySubject, StudyTask
from codetaste.case_study.publish import check_report, render_study, study_to_json
from codetaste.case_study.reply import read_report
from codetaste.case_study.study import CaseStudy, FailureLabel
from codetaste.harness.config import AgentConfig
from codetaste.transcripts.commands import RecordedCommand

NAMES = ("a", "b")


def task(kind: StudyKind = StudyKind.COMPARISON) -> StudyTask:
    subject = StudySubject("o__r-00000000", "o/r/00000000/open/direct", "open", "direct", ("0", "1"))
    trials = [
        StudiedTrial(name, 1, f"infer/{name}", name, "")
        for name in (NAMES if kind is StudyKind.COMPARISON else NAMES[:1])
    ]
    agent = AgentConfig(id="judge", harness="codetaste", model="m")
    return StudyTask(kind, subject, tuple(trials), agent, "m", Path("run"))


def comparison(**more: Any) -> dict[str, Any]:
    claim = {"claim": "it moves", "evidence": [{"command": "ls", "excerpt": "a-long-line"}]}
    each = {"assessment": "text", "claims": [claim]}
    return {"summary": "s", "trials": dict.fromkeys(NAMES, each), **more}


def test_a_report_is_read() -> None:
    report = read_report(json.dumps(comparison()), task())
    assert report.problems == ()
    assert [each.agent for each in report.trials] == ["a", "b"]
    label = {"label": "shim", "reason": "r", "evidence": [], "more": 1}
    assert read_report(json.dumps(label), task(StudyKind.LABELS)).label is FailureLabel.SHIM


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        ("[", "report.json is not JSON"),
        ("[" * 100_000, "report.json is not JSON"),
        (json.dumps([]), "report.json"),
        (json.dumps(comparison(summary=" ")), "summary"),
        (json.dumps(comparison(trials={"a": comparison()["trials"]["a"]})), "trials: b is missing"),
        (
            json.dumps(
                comparison(trials={**comparison()["trials"], "\x1b]0;x": comparison()["trials"]["a"]})
            ),
            "trials: there is no trial",
        ),
        (json.dumps(comparison(trials={"a": {"assessment": "x", "claims": []}})), "trials.a.claims"),
    ],
    ids=["cut", "deep", "list", "blank", "missing", "unknown", "no claims"],
)
def test_each_problem_is_named(data: str, problem: str) -> None:
    problems = read_report(data, task()).problems
    assert any(each.startswith(problem) for each in problems), problems
    assert all(each.isprintable() for each in problems)
    assert len(problems) <= 10


@given(
    st.text() | st.recursive(st.none() | st.text(), lambda x: st.dictionaries(st.text(), x)).map(json.dumps)
)
def test_any_text_is_a_report_or_has_problems(text: str) -> None:
    for kind in StudyKind:
        report = read_report(text, task(kind))
        assert report.problems or report.summary


def test_what_is_filed_runs_nothing_in_a_viewer() -> None:
    evil = "x</p><script>alert(1)</script> ![i](http://192.0.2.1/i.png)\n# Title\x1b[2J\u202e\ud800"
    claim = {"claim": evil, "evidence": [{"command": f"{evil}\n```", "excerpt": evil}]}
    each = {"assessment": evil, "claims": [claim]}
    report = read_report(json.dumps(comparison(summary=evil, trials=dict.fromkeys(NAMES, each))), task())
    study = check_report(
        task(), report, EvidenceRecord([RecordedCommand("ls", "x")]), task().agent.budget_usd, "now"
    )
    assert isinstance(study, CaseStudy)
    text = render_study(study)
    assert study_to_json(study).encode()
    assert all(char.isprintable() or char == "\n" for char in text)
    plain = [line for line in text.splitlines() if not line.startswith("        ")]
    assert not [line for line in plain if "<" in line or "![" in line]
    assert not [line for line in plain if line.startswith("# T")]
    assert text.count("this command was not run") == 2
