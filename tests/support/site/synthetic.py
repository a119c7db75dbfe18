"""Made-up results on disk: a benchmark and a run of several agents in four settings, for pages and figures.

Agents differ, instances differ in difficulty, and some trials end by a limit, a refusal or a fault. Sizes
of patches are those of CodeTaste's Table 5, numbers of rules those of its Table 1. All is derived from a
seed, and the files agree with each other: SARIF results lie on lines of the patch, and scores count them.
"""

from __future__ import annotations

import csv
import hashlib
import json
import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from codetaste.evaluation.output.scores_json import SCORES_FORMAT

SETTINGS = ("instructed/direct", "open/direct", "open/plan", "open/multiplan")
AGENTS = {"gpt-5.2": 0.72, "sonnet-4.5": 0.68, "codex-mini": 0.48, "qwen3": 0.36}
"""Skill of each agent, 0..1."""
PRICES = {"gpt-5.2": 3.1, "sonnet-4.5": 5.8, "codex-mini": 0.9, "qwen3": 0.4}
LINES = {
    "gpt-5.2": (2433, 768, 2280, 2624),
    "sonnet-4.5": (2101, 1535, 3278, 3826),
    "codex-mini": (1307, 489, 1043, 667),
    "qwen3": (1610, 2067, 1141, 787),
}
"""Mean edited lines by setting (CodeTaste, Table 5)."""
FACTOR = {"instructed/direct": 1.0, "open/direct": 0.16, "open/plan": 0.3, "open/multiplan": 0.42}
LANGUAGES = ("python", "java", "go", "typescript", "rust", "c++")
CATEGORIES = ("api", "dependency", "basic", "structure")
WORDS = [
    "cache",
    "lookup",
    "registry",
    "option",
    "handler",
    "session",
    "parser",
    "client",
    "builder",
    "timeout",
    "legacy",
    "adapter",
]
HUNK = 6
_JOURNAL: list[dict[str, Any]] = [
    {"event": "journal", "format": 2, "t": 0},
    {"event": "session", "pid": 7, "host": "here", "limits": ["2.0", None, 60.0, None], "t": 0},
    {"event": "job", "key": "make", "title": "make", "lane": "m", "needs": [], "path": ["make"], "t": 0},
    {"event": "started", "key": "make", "attempt": 1, "t": 0},
    {"event": "ended", "key": "make", "fingerprint": "f", "status": "done", "t": 1},
]
"""The journal of a run whose trials were made at once."""


@dataclass(frozen=True, slots=True)
class Size:
    """How much is made: the defaults are small; ``PAPER`` is the paper's 1,600 trials."""

    instances: int = 12
    agents: int = 4
    settings: int = 4
    lines: float = 0.05
    """Factor on the lines of patches."""
    rules: int = 8
    """Mean number of additive rules; there are as many reductive ones and a few more."""
    turns: int = 6


PAPER = Size(instances=100, lines=1.0, rules=40, turns=60)


@dataclass(frozen=True, slots=True)
class Instance:
    """A made-up instance; ``ease`` is 0..1."""

    owner: str
    repo: str
    commit: str
    language: str
    category: str
    additive: int
    reductive: int
    ease: float

    @property
    def path(self) -> str:
        """Its folder in the published layout."""
        return f"{self.owner}/{self.repo}/{self.commit[:8]}"

    @property
    def id(self) -> str:
        """Its id."""
        return f"{self.owner}__{self.repo}-{self.commit[:8]}"


@dataclass(frozen=True, slots=True)
class Patch:
    """A patch with the places of its lines."""

    content: bytes
    added: list[tuple[str, int]]
    removed: list[tuple[str, int]]


def write_results(folder: Path, size: Size = Size(), seed: int = 7) -> tuple[Path, Path]:
    """Write a benchmark and a run below ``folder``; returns both folders."""
    rng = random.Random(seed)
    instances = [_instance(rng, number, size) for number in range(size.instances)]
    benchmark, run = folder / "benchmark", folder / "synthetic"
    _write_benchmark(benchmark, instances, rng, size)
    (run / "outputs").mkdir(parents=True)
    config = {"run": {"name": "synthetic"}, "benchmark": {"path": str(benchmark)}}
    (run / "config.json").write_text(json.dumps(config))
    (run / "journal.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in _JOURNAL))
    for instance in instances:
        for agent in list(AGENTS)[: size.agents]:
            for setting in SETTINGS[: size.settings]:
                _write_trial(run, instance, agent, setting, rng, size)
    return benchmark, run


def _instance(rng: random.Random, number: int, size: Size) -> Instance:
    name = f"{rng.choice(WORDS)}-{rng.choice(WORDS)}"
    return Instance(
        f"owner{number % 87}",
        name,
        rng.randbytes(20).hex(),
        rng.choice(LANGUAGES),
        rng.choice(CATEGORIES),
        max(2, round(size.rules * rng.uniform(0.4, 1.6))),
        max(2, round(1.3 * size.rules * rng.uniform(0.4, 1.6))),
        rng.betavariate(2.2, 2.0),
    )


def _write_benchmark(folder: Path, instances: list[Instance], rng: random.Random, size: Size) -> None:
    folder.mkdir(parents=True)
    columns = ("owner", "repo", "commit_hash", "golden_commit_hash", "combined_score", "category", "language")
    with (folder / "instances.csv").open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(columns)
        for each in instances:
            golden = each.commit[::-1]
            table.writerow((each.owner, each.repo, each.commit, golden, 0.7, each.category, each.language))
    for each in instances:
        rules = folder / "assets/rules" / each.path
        rules.mkdir(parents=True)
        for name, count, verb in (
            ("positive", each.additive, "uses"),
            ("negative", each.reductive, "still-uses"),
        ):
            (rules / f"rules_{name}.yml").write_text(_rules(each, count, verb, rng))
        descriptions = folder / "assets/descriptions" / each.path
        descriptions.mkdir(parents=True)
        words = " ".join(rng.choices(WORDS, k=120))
        for name in ("description.md", "open_description.md"):
            (descriptions / name).write_text(
                f"# Replace the {each.repo}\n\n{words}\n\n- `{each.repo}` goes\n"
            )
        golden_patch = folder / "assets/diffs" / each.path / "golden.diff"
        golden_patch.parent.mkdir(parents=True)
        golden_patch.write_bytes(
            _patch(round(2605 * size.lines * rng.lognormvariate(-0.4, 0.9)), rng).content
        )


def _rules(instance: Instance, count: int, verb: str, rng: random.Random) -> str:
    language = "python" if instance.language == "c++" else instance.language
    lines = ["rules:"]
    for number in range(count):
        word = rng.choice(WORDS)
        lines += [
            f"- id: {verb}-{number}",
            f"  message: The {word} {verb.replace('-', ' ')} the new interface",
            "  severity: INFO",
            f"  languages: [{language}]",
            f"  pattern: {word}.open($X)",
            "  metadata: {nr_refactored_patterns: 3, nr_legacy_patterns: 0}",
        ]
    return "\n".join(lines) + "\n"


def _patch(lines: int, rng: random.Random) -> Patch:
    parts: list[str] = []
    added: list[tuple[str, int]] = []
    removed: list[tuple[str, int]] = []
    left, number = max(lines, 4), 0
    while left > 0:
        number += 1
        path = f"src/{rng.choice(WORDS)}/{rng.choice(WORDS)}_{number}.py"
        parts.append(
            f"diff --git a/{path} b/{path}\nindex 0123456..89abcde 100644\n--- a/{path}\n+++ b/{path}\n"
        )
        old = new = 1
        for _ in range(rng.randint(1, 4)):
            minus, plus = rng.randint(1, HUNK), rng.randint(1, HUNK)
            parts.append(f"@@ -{old},{minus + 2} +{new},{plus + 2} @@ class {rng.choice(WORDS).title()}:\n")
            parts.append(f"     def {rng.choice(WORDS)}(self, {rng.choice(WORDS)}: int) -> None:\n")
            for at in range(minus):
                parts.append(
                    f"-        self.{rng.choice(WORDS)}.{rng.choice(WORDS)}(old_{rng.choice(WORDS)}={at})\n"
                )
                removed.append((path, old + 1 + at))
            for at in range(plus):
                parts.append(f"+        return {rng.choice(WORDS)}.open({rng.choice(WORDS)}, limit={at})\n")
                added.append((path, new + 1 + at))
            parts.append(f"     # {' '.join(rng.choices(WORDS, k=6))}\n")
            old, new, left = old + minus + 40, new + plus + 40, left - plus - minus
    return Patch("".join(parts).encode(), added, removed)


def _write_trial(
    run: Path, instance: Instance, agent: str, setting: str, rng: random.Random, size: Size
) -> None:
    place = run / "outputs" / setting / instance.path / agent
    evaluation = place / "evaluation"
    evaluation.mkdir(parents=True)
    mean = LINES[agent][SETTINGS.index(setting)] * size.lines
    patch = _patch(round(min(6 * mean, mean * rng.lognormvariate(-0.4, 0.9))), rng)
    (place / "prediction.diff").write_bytes(patch.content)
    ending = rng.choices(("success", "budget_exceeded", "timeout", "error"), (88, 6, 4, 2))[0]
    track, _, mode = setting.partition("/")
    minutes = rng.randint(2, 59)
    metadata: dict[str, Any] = {
        "finish_reason": ending,
        "cost_usd": round(PRICES[agent] * rng.lognormvariate(-0.1, 0.5), 6),
        "start_time": "2026-01-01T00:00:00Z",
        "finish_time": f"2026-01-01T00:{minutes:02}:00Z",
        "description_type": track,
        "mode": mode,
        "additional": {"turns": size.turns, "tool_calls": size.turns, "codetaste_version": "0", "attempt": 1},
    }
    agent_config = {
        "id": agent,
        "agent": {"name": "codetaste", "provider": "codetaste"},
        "model": {"name": agent, "provider": "scripted"},
    }
    _write_json(place / "agent_config.json", agent_config)
    _write_json(place / "inference_metadata.json", metadata)
    (place / "inference.out").write_text(_transcript(rng, size.turns, agent))
    if ending == "error":
        (place / "prediction.diff").unlink()
        return
    _write_evaluation(evaluation, instance, patch, agent_config, metadata, rng)


def _write_evaluation(
    folder: Path,
    instance: Instance,
    patch: Patch,
    agent_config: dict[str, Any],
    metadata: dict[str, Any],
    rng: random.Random,
) -> None:
    setting = f"{metadata['description_type']}/{metadata['mode']}"
    quality = AGENTS[agent_config["id"]] * FACTOR[setting] * (0.45 + 1.1 * instance.ease)
    met = [rng.random() < quality for _ in range(instance.additive)]
    gone = [rng.random() < quality for _ in range(instance.reductive)]
    additive, reductive = sum(met), sum(gone)
    rules = instance.additive + instance.reductive
    ifr = (additive + reductive) / rules
    passed = rng.random() < 0.55 + 0.4 * AGENTS[agent_config["id"]] * (1 if ifr > 0 else 0.3)
    tests = {"passed": 702 if passed else rng.randint(500, 690), "failed": 0 if passed else 9, "skipped": 0}
    tests |= {"total": tests["passed"] + tests["failed"], "error": None}
    hits = [_sarif(folder, "positive", "uses", met, patch.added, rng)]
    hits.append(_sarif(folder, "negative", "still-uses", [not each for each in gone], patch.removed, rng))
    counts = (len(patch.added), len(patch.removed))
    prec = [hit / max(1, count) for hit, count in zip(hits, counts, strict=True)]
    rates = {
        "ifr": ifr,
        "ifr_plus": additive / instance.additive,
        "ifr_minus": reductive / instance.reductive,
    }
    found = {
        "hits_added": hits[0],
        "added": counts[0],
        "hits_removed": hits[1],
        "removed": counts[1],
    }
    unmet = {
        "unmet_additive": [f"uses-{number}" for number, each in enumerate(met) if not each],
        "unmet_reductive": [f"still-uses-{number}" for number, each in enumerate(gone) if not each],
    }
    scores = {
        "format": SCORES_FORMAT,
        "status": "scored",
        "reason": "",
        "passed": passed,
        **rates,
        "ifr_unflagged": ifr,
        "ifr_plus_unflagged": rates["ifr_plus"],
        "flagged_rules": 0,
        "flagged": [],
        "prec": sum(hits) / max(1, sum(counts)),
        "prec_plus": prec[0],
        "prec_minus": prec[1],
        "added": counts[0],
        "removed": counts[1],
        "added_all": counts[0],
        "removed_all": counts[1],
        "exclusions": "published",
        "hits": found,
        "tests": tests,
        "notes": [],
        **unmet,
        "baseline": {"min_passed": 700, "max_failed": 2, "runs": 10, "source": "baseline_results"},
        "patch_sha256": hashlib.sha256(patch.content).hexdigest(),
        "patch_bytes": len(patch.content),
        "rules_sha256": {"positive": "0" * 64, "negative": "1" * 64},
        "engine": "opengrep 1.30.0",
        "codetaste_version": "0",
    }
    _write_json(folder / "scores.json", scores)
    _write_json(folder / "activity.json", {"commands": 40, "test_runs": rng.randint(0, 9), "bulk_edits": 2})
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
            "positive_rules_matched": additive,
            "total_positive_rules": instance.additive,
            "negative_rules_matched": instance.reductive - reductive,
            "total_negative_rules": instance.reductive,
        },
        "inference_metadata": metadata,
    }
    _write_json(folder / "evaluation_result.json", result)


def _sarif(
    folder: Path,
    name: str,
    verb: str,
    matched: list[bool],
    places: list[tuple[str, int]],
    rng: random.Random,
) -> int:
    """Write results of the rules that match, on lines of the patch; returns how many lines they cover."""
    results = []
    covered = set()
    for number, match in enumerate(matched):
        for path, line in rng.choices(places, k=rng.randint(1, 6)) if match else ():
            covered.add((path, line))
            region = {"startLine": line, "endLine": line, "startColumn": 9, "endColumn": 40}
            place = {"artifactLocation": {"uri": path, "uriBaseId": "%SRCROOT%"}, "region": region}
            results.append(
                {
                    "locations": [{"physicalLocation": place}],
                    "message": {"text": "The new interface is used here"},
                    "ruleId": f"rules.{verb}-{number}",
                }
            )
    run = {
        "invocations": [{"executionSuccessful": True}],
        "results": results,
        "tool": {"driver": {"name": "opengrep", "rules": []}},
    }
    _write_json(folder / f"rules_{name}.sarif", {"version": "2.1.0", "runs": [run]})
    return len(covered)


def _transcript(rng: random.Random, turns: int, agent: str) -> str:
    lines: list[dict[str, Any]] = [
        {"model": agent, "system": "You are a software engineer.", "tools": ["bash", "edit", "finish"]},
        {"role": "user", "content": [{"type": "text", "text": "Carry out the refactoring."}]},
    ]
    for turn in range(turns):
        call = {"type": "call", "id": f"call-{turn}", "name": "bash"}
        command = {"command": f"rg -n {rng.choice(WORDS)} src | head -{turn + 5}"}
        text = {"type": "text", "text": f"I look for the {rng.choice(WORDS)}."}
        output = "".join(
            f"src/{rng.choice(WORDS)}/{rng.choice(WORDS)}.py:{at}: {' '.join(rng.choices(WORDS, k=6))}\n"
            for at in range(30)
        )
        lines.append({"role": "assistant", "content": [text, {**call, "arguments": command}]})
        result = {"type": "result", "call": f"call-{turn}", "content": output}
        lines.append({"role": "user", "content": [result]})
    return "\n".join(map(json.dumps, lines)) + "\n"


def _write_json(path: Path, value: object) -> None:
    path.write_text(json.dumps(value))
