"""What cannot be read of case studies is named, and the others are read."""

from __future__ import annotations

import json
from pathlib import Path

from codetaste.evaluation.trials.records import ReadProblem
from codetaste.results.trial_studies import read_studies


def test_a_file_in_the_place_of_a_folder_is_named(tmp_path: Path) -> None:
    one, two = tmp_path / "one/case_studies", tmp_path / "two/case_studies"
    one.parent.mkdir()
    (two / "reports").mkdir(parents=True)
    one.write_text("")
    (two / "labels").write_text("")
    origin = {"instance": "o__r-01234567", "track": "open", "mode": "plan", "by": "judge", "cost_usd": "0"}
    study = {"schema_version": 1, "origin": origin, "summary": "It moves modules.", "trials": []}
    (two / "reports/judge.json").write_text(json.dumps(study))
    problems: list[ReadProblem] = []
    studies = read_studies([one.parent, two.parent], problems)
    assert [each.summary for each in studies.case_studies] == ["It moves modules."]
    assert [(each.location, each.text) for each in problems] == [
        (f"{one.parent}: case_studies", "cannot be read: Not a directory"),
        (f"{two.parent}: case_studies/labels", "cannot be read: Not a directory"),
    ]
