"""The numbers of Tables 4 and 5 from published outputs, by a short script as a researcher would write it.

For ``tables.py``; it uses pandas, unidiff and scipy, and not codetaste. For each trial: rates from
``evaluation_result.json``, lines of ``prediction.diff`` by unidiff, precision from SARIF; then means with
t-intervals by agent and track. It checks nothing and repairs nothing.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pandas as pd
from scipy import stats
from unidiff import PatchSet


def covered(path: Path) -> set[tuple[str, int]]:
    found: set[tuple[str, int]] = set()
    for result in json.loads(path.read_bytes())["runs"][0]["results"]:
        place = result["locations"][0]["physicalLocation"]
        region = place["region"]
        uri = place["artifactLocation"]["uri"]
        found.update((uri, line) for line in range(region["startLine"], region["endLine"] + 1))
    return found


def lines(path: Path) -> tuple[set[tuple[str, int]], set[tuple[str, int]]]:
    added, removed = set(), set()
    for file in PatchSet(path.read_text("utf-8", "surrogateescape")):
        for hunk in file:
            for line in hunk:
                if line.is_added:
                    added.add((file.path, line.target_line_no))
                elif line.is_removed:
                    removed.add((file.path, line.source_line_no))
    return added, removed


def row(folder: Path, root: Path, before: dict[str, set[tuple[str, int]]]) -> dict[str, Any]:
    evaluation = json.loads((folder / "evaluation/evaluation_result.json").read_bytes())
    track, mode, owner, repo, commit, agent = folder.relative_to(root).parts
    instance = f"{owner}/{repo}/{commit}"
    if instance not in before:
        null = root / "pseudo_agents/direct" / instance / "null_agent"
        before[instance] = covered(null / "evaluation/rules_negative.sarif")
    added, removed = lines(folder / "prediction.diff")
    after = covered(folder / "evaluation/rules_positive.sarif")
    edited = len(added) + len(removed)
    hits = len(added & after) + len(removed & before[instance])
    return {
        "agent": agent,
        "track": f"{track}/{mode}",
        "ifr": evaluation["agent_rule_metrics"]["ifr"],
        "pass": evaluation["agent_test_metrics"]["passed"] >= 700,
        "prec": hits / edited if edited else 0.0,
        "edited": edited,
        "cost": evaluation["inference_metadata"]["cost_usd"],
    }


def interval(values: pd.Series) -> float:
    return stats.sem(values) * stats.t.ppf(0.975, len(values) - 1)


root, before = Path(sys.argv[1]), {}
folders = sorted(
    path.parent for path in root.glob("*/*/*/*/*/*/prediction.diff") if "pseudo" not in path.parts[-8]
)
frame = pd.DataFrame([row(folder, root, before) for folder in folders])
frame["a"] = frame["ifr"] * frame["pass"]
columns = ["pass", "ifr", "a", "prec", "edited", "cost"]
print(len(frame), frame.groupby(["agent", "track"])[columns].agg(["mean", interval]).round(3).to_string())
