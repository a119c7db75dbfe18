"""The golden patches of published instances have the published scores, and nothing in them is flagged."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from support.cli.invoke import codetaste

NOTHING_FOUND = {
    "flagged": [],
    "flagged_rules": 0,
    "hidden_in": [],
    "unread": [],
    "timed_out": [],
    "unscannable": [],
}


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("instance", ["koajs/koa", "99designs/gqlgen", "aws/aws-cli"])
def test_golden_patch_is_scored_as_published_and_shows_no_evasion(
    instance: str,
    published_data: Path,
    clones: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    benchmark = ("--benchmark", published_data, "--repos", clones)
    which = ("--instance", f"{instance.replace('/', '__')}-*", "--patch", "golden")
    out = codetaste(capsys, "evaluate", *benchmark, *which, "--out", tmp_path, "--json")
    scores: dict[str, Any] = json.loads(out)
    with (published_data / "golden_reference.csv").open() as file:
        (published,) = (row for row in csv.DictReader(file) if row["instance"].startswith(f"{instance}/"))
    assert {name: scores[name] for name in NOTHING_FOUND} == NOTHING_FOUND
    assert (scores["ifr"], scores["ifr_unflagged"], scores["passed"], scores["alignment"]) == (1, 1, True, 1)
    counts = ("files", "added", "removed", "positive_rules", "negative_rules")
    names = ("files", "official_added", "official_removed", "n_pos", "n_neg")
    assert [scores[name] for name in counts] == [int(published[name]) for name in names]
