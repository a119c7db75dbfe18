"""Outputs in the layout of the published harness: a patch, two scans, metadata and results."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

BASE, GOLDEN_HASH = "0123abcd" + "0" * 32, "f" * 40
PATH = "Made/Up/0123abcd"
ID = "made__up-0123abcd"
PATCH = b"""diff --git a/src/a.py b/src/a.py
index 1111111..2222222 100644
--- a/src/a.py
+++ b/src/a.py
@@ -1,3 +1,4 @@
-old one
-old two
+new one
+new two
+new three
 kept
diff --git a/node_modules/x.js b/node_modules/x.js
new file mode 100644
index 0000000..3333333
--- /dev/null
+++ b/node_modules/x.js
@@ -0,0 +1 @@
+excluded
"""
"""|L⁺| is 3 and |L⁻| is 2 with the published exclusions."""


def make_sarif(*spans: tuple[str, int, int]) -> bytes:
    """SARIF results of one rule at these locations: path, first and last line."""
    results = [
        {
            "ruleId": "rules.r",
            "locations": [
                {
                    "physicalLocation": {
                        "artifactLocation": {"uri": path, "uriBaseId": "%SRCROOT%"},
                        "region": {"startLine": start, "endLine": end, "startColumn": 1, "endColumn": 2},
                    }
                }
            ],
        }
        for path, start, end in spans
    ]
    run = {"results": results, "tool": {"driver": {"semanticVersion": "1.14.0"}}}
    return json.dumps({"version": "2.1.0", "runs": [run]}).encode()


@dataclass(frozen=True)
class Outputs:
    """The folder ``outputs`` of a published checkout."""

    root: Path

    def add_trial(
        self, agent: str = "a", *, at: str = "open/direct", path: str = PATH, **fields: Any
    ) -> Path:
        """Write a trial that follows 7 of 10 rules, passes its tests, and costs $1.25 in ten minutes."""
        folder = self.root / at / path / agent
        (folder / "evaluation").mkdir(parents=True)
        (folder / "prediction.diff").write_bytes(fields.get("patch", PATCH))
        write_json(folder / "agent_config.json", agent_config(fields.get("identity", agent)))
        track, mode = at.split("/")
        metadata = {
            "cost_usd": 1.25,
            "finish_reason": "success",
            "start_time": "2025-11-01T10:00:00Z",
            "finish_time": "2025-11-01T10:10:00Z",
            "description_type": track,
            "mode": mode,
            "additional": None,
        }
        pseudo = track == "pseudo_agents"
        if not pseudo:
            write_json(folder / "inference_metadata.json", metadata | fields.get("metadata", {}))
        tests = {"passed": 20, "failed": 1, "skipped": 0, "total": 21, "error": None}
        rules = dict(zip(RULES, fields.get("rules", (3, 4, 2, 6)), strict=True))
        result = {
            "instance_metadata": instance_metadata(path),
            "agent_config": agent_config(fields.get("identity", agent)),
            "agent_test_metrics": fields.get("tests", tests),
            "agent_rule_metrics": rules,
            "inference_metadata": None if pseudo else metadata | fields.get("metadata", {}),
            "evaluation_timestamp": "2025-11-01T11:00:00Z",
        }
        write_json(folder / "evaluation/evaluation_result.json", result)
        (folder / "evaluation/rules_positive.sarif").write_bytes(make_sarif(("src/a.py", 2, 3)))
        (folder / "evaluation/rules_negative.sarif").write_bytes(make_sarif(("src/a.py", 9, 9)))
        return folder

    def add_null(self, path: str = PATH) -> Path:
        """Write the null agent's evaluation; R has a match in the first line that the patch removes."""
        folder = self.add_trial(
            "null_agent", at="pseudo_agents/direct", path=path, patch=b"\n", rules=(0, 4, 6, 6)
        )
        (folder / "evaluation/rules_negative.sarif").write_bytes(make_sarif(("src/a.py", 1, 1)))
        return folder

    def add_baselines(self, *runs: tuple[int, int], path: str = PATH) -> None:
        """Write test runs of R∘X* beside the outputs: passed and failed of each."""
        folder = self.root.parent / "baseline_results" / path
        folder.mkdir(parents=True)
        lines = [json.dumps({"passed": p, "failed": f, "skipped": 0, "total": p + f}) for p, f in runs]
        (folder / "golden_agent.jsonl").write_text("\n".join([*lines, "null", ""]))


RULES = (
    *("positive_rules_matched", "total_positive_rules"),
    *("negative_rules_matched", "total_negative_rules"),
)


def agent_config(identity: str) -> dict[str, Any]:
    return {
        "id": identity,
        "agent": {"name": "claude-code", "version": "2", "provider": "anthropic", "additional": None},
        "model": {"name": "sonnet", "provider": "anthropic", "additional": None},
    }


def instance_metadata(path: str = PATH) -> dict[str, Any]:
    owner, repo, hash8 = path.split("/")
    return {
        "owner": owner,
        "repo": repo,
        "base_hash": hash8 + BASE[8:],
        "golden_hash": GOLDEN_HASH,
        "golden_metrics": {"passed": 20, "failed": 0, "skipped": 0, "total": 20},
        "base_metrics": {"passed": 19, "failed": 1, "skipped": 0, "total": 20},
        "has_execution_environment": True,
    }


def make_scores(patch: bytes = PATCH, **fields: Any) -> dict[str, Any]:
    """A scores.json of codetaste with the fields that are read."""
    return {
        "format": 4,
        "status": "scored",
        "reason": "",
        "passed": False,
        "tests": {"passed": 1, "failed": 9, "skipped": 0, "total": 10, "error": None},
        "ifr": 0.5,
        "ifr_plus": 1.0,
        "ifr_minus": 0.25,
        "prec": 0.25,
        "prec_plus": 0.5,
        "prec_minus": 0.0,
        "added": 4,
        "removed": 4,
        "patch_sha256": hashlib.sha256(patch).hexdigest(),
        "rules_sha256": {"positive": "aa", "negative": "bb"},
        "engine": "opengrep 1.30.0",
        "codetaste_version": "0.6.0",
        "notes": ["a note"],
    } | fields


def write_json(path: Path, data: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(data))
