"""A made-up benchmark of 100 instances with 1,600 trials, in our layout and in the published one.

For ``tables.py``. Patches have the sizes of CodeTaste's Table 5 and the numbers of files of its Table 1, and
SARIF files have as many results as those of the published rules: a median of 400, a few with thousands. All
is derived from ``SEED``. The trials of an instance share its SARIF files by hard links.
"""

from __future__ import annotations

import csv
import hashlib
import json
import os
import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from codetaste.evaluation.output.scores_json import SCORES_FORMAT

SEED = 7
AGENTS = ("gpt-5.2", "gpt-5.1-codex-mini", "claude-sonnet-4.5", "qwen3")
TRACKS = ("instructed/direct", "open/direct", "open/plan", "open/multiplan")
LINES = {
    "gpt-5.2": (2433, 768, 2280, 2624),
    "gpt-5.1-codex-mini": (1307, 489, 1043, 667),
    "claude-sonnet-4.5": (2101, 1535, 3278, 3826),
    "qwen3": (1610, 2067, 1141, 787),
}
"""Mean lines edited, by agent and track (CodeTaste, Table 5)."""
LANGUAGES = ("java", "python", "go", "typescript", "rust", "c++")
LINES_PER_FILE = 28
HUNK = 12
_REGION = {"startColumn": 5, "endColumn": 60}
_TEXT = "        this.registry.lookup(key).orElseGet(() -> factory.create(key, options.timeout()));"


@dataclass(frozen=True, slots=True)
class Instance:
    """A made-up instance."""

    owner: str
    repo: str
    commit: str
    language: str
    positive: int
    negative: int

    @property
    def path(self) -> str:
        """Its folder in the published layout."""
        return f"{self.owner}/{self.repo}/{self.commit[:8]}"


def make_instances(rng: random.Random, count: int) -> list[Instance]:
    return [
        Instance(
            f"owner{number % 87}",
            f"repo{number % 87}",
            rng.randbytes(20).hex(),
            rng.choice(LANGUAGES),
            rng.randint(10, 50),
            rng.randint(30, 100),
        )
        for number in range(count)
    ]


def write_benchmark(folder: Path, instances: list[Instance], rng: random.Random) -> None:
    """Write the tables of a benchmark."""
    folder.mkdir(parents=True)
    rows = [
        {
            "owner": each.owner,
            "repo": each.repo,
            "commit_hash": each.commit,
            "golden_commit_hash": each.commit[::-1],
            "combined_score": 0.7,
            "category": "basic",
            "language": each.language,
        }
        for each in instances
    ]
    _table(folder / "instances.csv", rows)
    golden = [
        {
            "instance": each.path,
            "language": each.language,
            "files": rng.randint(20, 200),
            **{
                f"{kind}_{side}": rng.randint(200, 3000)
                for kind in ("naive", "official", "strict")
                for side in ("added", "removed")
            },
            "n_pos": each.positive,
            "n_neg": each.negative,
            "sum_nr_refactored": 400,
            "sum_nr_legacy": 400,
            "base_passed": 700,
            "base_failed": 2,
            "golden_passed": 702,
            "golden_failed": 2,
        }
        for each in instances
    ]
    _table(folder / "golden_reference.csv", golden)


def _table(path: Path, rows: list[dict[str, Any]]) -> None:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, [*rows[0]])
        writer.writeheader()
        writer.writerows(rows)


def _patch(lines: int, rng: random.Random) -> tuple[bytes, int, int]:
    """Return a patch that edits about ``lines`` lines, and the numbers of added and removed lines."""
    parts: list[str] = []
    added = removed = 0
    left, number = max(lines, 1), 0
    while left > 0:
        number += 1
        path = f"src/main/java/org/example/module{number % 17}/Component{number}.java"
        parts.append(
            f"diff --git a/{path} b/{path}\nindex 0123456..89abcde 100644\n--- a/{path}\n+++ b/{path}\n"
        )
        old = new = 1
        for _ in range(min(left, LINES_PER_FILE) // HUNK + 1):
            minus, plus = rng.randint(1, HUNK), rng.randint(1, HUNK)
            parts.append(f"@@ -{old},{minus + 6} +{new},{plus + 6} @@ public class Component{number} {{\n")
            context = f" {_TEXT}\n" * 3
            parts += [context, f"-{_TEXT}\n" * minus, f"+{_TEXT[::-1]}\n" * plus, context]
            old, new = old + minus + 40, new + plus + 40
            added, removed, left = added + plus, removed + minus, left - plus - minus
    return "".join(parts).encode(), added, removed


def _sarif(rules: int, results: int, rng: random.Random, *, published: bool) -> bytes:
    """Return a SARIF file as the stock engine writes it, or in our shorter form."""
    more = {"help": {"text": "x" * 120}, "fullDescription": {"text": "x" * 120}} if published else {}
    drivers = [{"id": f"rules.rule-{number}", **more} for number in range(rules)]
    listed = []
    for _ in range(results):
        line, file = rng.randint(1, 400), rng.randint(1, 90)
        region: dict[str, Any] = {"startLine": line, "endLine": line + rng.randint(0, 4), **_REGION}
        path = f"src/main/java/org/example/module{file % 17}/Component{file}.java"
        extra = {}
        if published:
            region["snippet"] = {"text": _TEXT}
            extra = {"fingerprints": {"matchBasedId/v1": "0123456789abcdef" * 8}}
        place = {"artifactLocation": {"uri": path, "uriBaseId": "%SRCROOT%"}, "region": region}
        listed.append(
            {
                **extra,
                "locations": [{"physicalLocation": place}],
                "message": {"text": "Detected what is to be detected here"},
                "properties": {},
                "ruleId": f"rules.rule-{rng.randrange(rules)}",
            }
        )
    run = {
        "invocations": [{"executionSuccessful": True}],
        "results": listed,
        "tool": {"driver": {"rules": drivers}},
    }
    return json.dumps({"version": "2.1.0", "runs": [run]}).encode()


def _results(rng: random.Random) -> int:
    return min(10_000, round(rng.lognormvariate(6.0, 1.1)))


def write_outputs(folder: Path, instances: list[Instance], *, published: bool) -> int:
    """Write ``outputs/`` with a trial of every agent on every track, and return the bytes of all patches."""
    rng = random.Random(SEED)
    total = 0
    for instance in instances:
        sarif = {
            name: _sarif(rules, _results(rng), rng, published=published)
            for name, rules in (("rules_positive", instance.positive), ("rules_negative", instance.negative))
        }
        null_trial = folder / "pseudo_agents/direct" / instance.path / "null_agent"
        total += _trial(
            null_trial,
            instance,
            _Prediction("null_agent", "", b"\n", (0, 0)),
            sarif,
            rng,
            published=published,
        )
        for agent in AGENTS:
            for track, mean in zip(TRACKS, LINES[agent], strict=True):
                lines = min(6 * mean, round(mean * rng.lognormvariate(-0.4, 0.9)))
                patch, added, removed = _patch(lines, rng)
                place = folder / track / instance.path / agent
                links = {name: null_trial / f"evaluation/{name}.sarif" for name in sarif}
                prediction = _Prediction(agent, track, patch, (added, removed))
                total += _trial(place, instance, prediction, links, rng, published=published)
    return total


@dataclass(frozen=True, slots=True)
class _Prediction:
    """An agent's patch, with the numbers of added and removed lines."""

    agent: str
    track: str
    patch: bytes
    lines: tuple[int, int]


def _trial(
    place: Path,
    instance: Instance,
    prediction: _Prediction,
    sarif: dict[str, Any],
    rng: random.Random,
    *,
    published: bool,
) -> int:
    agent, track, patch, lines = prediction.agent, prediction.track, prediction.patch, prediction.lines
    evaluation = place / "evaluation"
    evaluation.mkdir(parents=True)
    (place / "prediction.diff").write_bytes(patch)
    for name, content in sarif.items():
        target = evaluation / f"{name}.sarif"
        os.link(content, target) if isinstance(content, Path) else target.write_bytes(content)
    agent_config = {"id": agent, "agent": {"name": agent}, "model": {"name": agent}}
    metadata: dict[str, Any] = {
        "finish_reason": rng.choices(("success", "budget_exceeded", "timeout"), (90, 7, 3))[0],
        "cost_usd": rng.uniform(0.1, 11.0),
        "start_time": "2026-01-01T00:00:00Z",
        "finish_time": f"2026-01-01T00:{rng.randint(2, 59):02}:00Z",
        "description_type": track.partition("/")[0] or None,
        "mode": track.partition("/")[2] or "direct",
        "additional": {"turns": rng.randint(5, 200), "tool_calls": rng.randint(5, 300)},
    }
    if not published:
        metadata["additional"] |= {"codetaste_version": "0", "attempt": 1}
    matched, left = rng.randint(0, instance.positive), rng.randint(0, instance.negative)
    ifr_plus, ifr_minus = matched / instance.positive, 1 - left / instance.negative
    ifr = (matched + instance.negative - left) / (instance.positive + instance.negative)
    passed = rng.random() < 0.6
    tests = {"passed": 702 if passed else 600, "failed": 1, "skipped": 0, "total": 703, "error": None}
    result = {
        "instance_metadata": {
            "owner": instance.owner,
            "repo": instance.repo,
            "base_hash": instance.commit,
            "golden_hash": instance.commit[::-1],
            "golden_metrics": {**tests, "passed": 702},
            "base_metrics": {**tests, "passed": 700},
        },
        "agent_config": agent_config,
        "agent_test_metrics": tests,
        "agent_rule_metrics": {
            "positive_rules_matched": matched,
            "negative_rules_matched": left,
            "total_positive_rules": instance.positive,
            "total_negative_rules": instance.negative,
            "ifr": ifr,
            "positive_ifr": ifr_plus,
            "negative_ifr": ifr_minus,
        },
        "inference_metadata": metadata,
        "evaluation_timestamp": "2026-01-01T01:00:00Z",
    }
    files: dict[Path, Any] = {
        place / "agent_config.json": agent_config,
        place / "inference_metadata.json": metadata,
        evaluation / "evaluation_result.json": result,
    }
    if not published:
        files[evaluation / "scores.json"] = _scores(
            patch, lines, (ifr, ifr_plus, ifr_minus), passed, tests, rng
        )
        files[evaluation / "activity.json"] = {
            "commands": 40,
            "test_runs": rng.randint(0, 9),
            "bulk_edits": 2,
        }
    elif metadata["mode"] != "direct":
        judged = {"finish_reason": "success", "judge_cost_usd": 0.1, "judge_latency_seconds": 9.0}
        names = (
            ("plan_metadata",)
            if metadata["mode"] == "plan"
            else ("multiplan_generation_metadata", "multiplan_metadata")
        )
        files |= {place / f"{name}.json": {**metadata, **judged} for name in names}
    for path, content in files.items():
        path.write_text(json.dumps(content, indent=2))
    return len(patch)


def _scores(
    patch: bytes,
    lines: tuple[int, int],
    rates: tuple[float, float, float],
    passed: bool,
    tests: dict[str, Any],
    rng: random.Random,
) -> dict[str, Any]:
    shares = [rng.random() for _ in range(3)]
    hits = {
        "hits_added": lines[0] // 2,
        "added": lines[0],
        "hits_removed": lines[1] // 2,
        "removed": lines[1],
    }
    return {
        "format": SCORES_FORMAT,
        "status": "scored",
        "reason": "",
        "passed": passed,
        **dict(zip(("ifr", "ifr_plus", "ifr_minus"), rates, strict=True)),
        **dict(zip(("ifr_unflagged", "ifr_plus_unflagged"), rates[:2], strict=True)),
        **dict(zip(("prec", "prec_plus", "prec_minus"), shares, strict=True)),
        "added": lines[0],
        "removed": lines[1],
        "added_all": lines[0],
        "removed_all": lines[1],
        "exclusions": "published",
        "hits": hits,
        "flagged_rules": 0,
        "flagged": [],
        "tests": tests,
        "patch_sha256": hashlib.sha256(patch).hexdigest(),
        "patch_bytes": len(patch),
        "rules_sha256": {"positive": "0" * 64, "negative": "1" * 64},
        "engine": "opengrep 1.30.0",
        "codetaste_version": "0",
        "notes": [],
    }
