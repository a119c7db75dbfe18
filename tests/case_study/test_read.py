"""Case studies and labels are read from any folder, and nothing in it breaks the reader."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from codetaste.case_study.read import read_case_studies, read_labels
from codetaste.case_study.study import FailureLabel

if TYPE_CHECKING:
    from pathlib import Path

_ORIGIN = {"instance": "o__r-01234567", "track": "open", "mode": "plan", "by": "judge", "cost_usd": "0.25"}
_STUDY = {
    "schema_version": 1,
    "origin": _ORIGIN,
    "summary": "The refactoring moves modules.",
    "trials": [
        {
            "agent": "hasty",
            "attempt": 1,
            "text": "It moves nothing.",
            "claims": [
                {"text": "one line", "evidence": [{"command": "wc -l x", "excerpt": "1 x", "problem": ""}]}
            ],
        }
    ],
}
_LABEL = {
    "schema_version": 1,
    "origin": _ORIGIN,
    "agent": "hasty",
    "attempt": 2,
    "label": "shim",
    "reason": "a wrapper",
    "evidence": [],
}


def _write(path: Path, data: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(data if isinstance(data, str) else json.dumps(data))
    return path


def test_what_is_filed_is_read(tmp_path: Path) -> None:
    path = _write(tmp_path / "case_studies/reports/o/r/01234567/open/plan/judge.json", _STUDY)
    _write(tmp_path / "case_studies/labels/o/r/01234567/open/plan/hasty/attempt-2/judge.json", _LABEL)
    (study,), (label,) = read_case_studies(tmp_path), read_labels(tmp_path)
    assert study.path == path.with_suffix(".md")
    assert study.origin.cost_usd == Decimal("0.25")
    assert study.trials[0].claims[0].verified
    assert (label.agent, label.attempt, label.label) == ("hasty", 2, FailureLabel.SHIM)
    assert not label.verified


def test_a_run_without_studies_has_none(tmp_path: Path) -> None:
    problems: list[str] = []
    assert read_case_studies(tmp_path / "missing", problems) == read_labels(tmp_path, problems) == ()
    assert problems == []


def test_what_cannot_be_read_is_named_and_left_out(tmp_path: Path) -> None:
    folder = tmp_path / "case_studies/reports"
    _write(folder / "a.json", "{")
    _write(folder / "b.json", {**_STUDY, "schema_version": 2})
    _write(folder / "c.json", {**_STUDY, "trials": "\x1b[31m"})
    _write(folder / "d.json", "[" * 100_000)
    _write(folder / "e.json", {**_STUDY, "summary": "\ud800"})
    _write(tmp_path / "secret.json", _STUDY)
    (folder / "f.json").symlink_to(tmp_path / "secret.json")
    (folder / "g").symlink_to(tmp_path)
    problems: list[str] = []
    (study,) = read_case_studies(tmp_path, problems)
    assert study.summary == "\ufffd"
    assert [each.partition(":")[0].rpartition("/")[2] for each in problems] == [
        f"{name}.json" for name in "abcdf"
    ]
    assert all(each.isprintable() for each in problems)
