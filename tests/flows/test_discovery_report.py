"""``codetaste report`` on rule discovery: its numbers against counts made here from files and source text."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from codetaste.report.discovery.passes import read_passes
from codetaste.rules.registration import Direction
from support.flows.tiny_benchmark import BASE, GOLDEN, TinyBenchmark, Workspace

FILES = {"additive": "rules_positive.yml", "reductive": "rules_negative.yml"}


@pytest.fixture(scope="module")
def two_models(tmp_path_factory: pytest.TempPathFactory, alpha: TinyBenchmark) -> Workspace:
    """A run with a model that finds all rules, and one that finds one of each kind."""
    workspace = alpha.make_workspace(tmp_path_factory.mktemp("two"), {"all": "reply", "one": "quick"})
    assert workspace.run().code == 0
    return workspace


def tables_of(workspace: Workspace, *args: str) -> dict[str, list[dict[str, Any]]]:
    document = workspace.cli("report", "r", *args, "--json").json
    return {
        table["name"]: [
            dict(zip((column["name"] for column in table["columns"]), row["cells"], strict=True))
            for row in table["rows"]
        ]
        for table in document["tables"]
    }


def lines_of(rule_ids: set[str], side: str) -> set[tuple[str, int]]:
    """The lines that rules of discovery_models.py match, found by looking at the text."""
    found = set()
    for path, text in (GOLDEN if side == "additive" else BASE).items():
        name = "fetch_new" if side == "additive" else "fetch_old"
        lines = text.splitlines() if path.endswith(".py") else []
        for number, line in enumerate(lines, 1):
            calls = re.search(rf"{name}\(", line) and not line.startswith("def ")
            if any(each.startswith("calls") for each in rule_ids) and calls:
                found.add((path, number))
            if any(each.startswith("imports") for each in rule_ids) and line.startswith("from pack.store"):
                found.add((path, number))
            if any(each.startswith("defines") for each in rule_ids) and line.startswith(f"def {name}"):
                found |= {(path, number), (path, number + 1)}
            if "object-base" in rule_ids and "(object)" in line:
                # A match of a class covers its body.
                end = next((at for at in range(number, len(lines)) if not lines[at].strip()), len(lines))
                found |= {(path, at) for at in range(number, end + 1)}
    return found


def published(workspace: Workspace, alpha: TinyBenchmark, model: str, side: str) -> list[dict[str, Any]]:
    path = workspace.out / "discover" / model / "assets/rules" / alpha.row.path / FILES[side]
    rules: list[dict[str, Any]] = YAML(typ="safe").load(path.read_text())["rules"]
    return rules


def test_rules_turns_costs_files_and_lines_of_each_pass(two_models: Workspace, alpha: TinyBenchmark) -> None:
    rows = tables_of(two_models)["discovery"]
    assert len(rows) == 4
    for row in rows:
        model, side = row["system"].split(",")[0], row["pass"]
        rules = published(two_models, alpha, model, side)
        lines = lines_of({rule["id"] for rule in rules}, side)
        assert (row["instances"], row["rules"], row["rules_mean"]) == (1, len(rules), len(rules))
        assert (row["files"], row["lines"]) == (len({path for path, _ in lines}), len(lines))
        assert row["turns"] == {"all": 6, "one": 2}[model]
        key = f"discover/{model}/{alpha.row.id}/{side}/"
        settled = [
            line
            for line in two_models.journal()
            if line["event"] == "settled" and line["call"].startswith(key)
        ]
        assert row["cost_usd"] == pytest.approx(sum(float(line["usd"]) for line in settled))
        assert row["rule_usd"] == pytest.approx(row["cost_usd"] / len(rules))
        assert row["endings"] == "1 ok"


def test_overlap_is_the_jaccard_of_the_lines(two_models: Workspace, alpha: TinyBenchmark) -> None:
    rows = tables_of(two_models, "--table", "overlap")["overlap"]
    assert [row["pass"] for row in rows] == ["additive", "reductive"]
    for row in rows:
        one, other = (
            lines_of({rule["id"] for rule in published(two_models, alpha, model, row["pass"])}, row["pass"])
            for model in ("all", "one")
        )
        assert row["jaccard"] == pytest.approx(len(one & other) / len(one | other))


def test_rejections_are_counted_by_reason(two_models: Workspace) -> None:
    rows = {
        (row["system"], row["pass"]): row
        for row in tables_of(two_models, "--table", "rejections")["rejections"]
    }
    for (system, _), row in rows.items():
        rejected = (row["matches_wrong_tree"], row["overlaps"])
        assert rejected == ((1, 1) if system.startswith("all") else (0, 0))
    assert len(rows) == 4


def test_rejections_are_recorded_with_rule_reason_and_code(two_models: Workspace) -> None:
    passes = [each for each in read_passes(two_models.out) if each.system == "all"]
    assert {each.direction for each in passes} == set(Direction)
    for each in passes:
        assert each.run == two_models.out
        recorded = {rejected.rejection: rejected for rejected in each.rejected}
        assert all(rejected.reason and f"id: {rejected.id}" in rejected.yaml for rejected in each.rejected)
        additive = each.direction is Direction.ADDITIVE
        wrong, right = (BASE, GOLDEN) if additive else (GOLDEN, BASE)
        sides = ("base", "refactored") if additive else ("refactored", "base")
        for kind, tree, side in (("matches_wrong_tree", wrong, sides[0]), ("overlaps", right, sides[1])):
            assert recorded[kind].matches
            for match in recorded[kind].matches:
                lines = tree[match.path].split("\n")[match.start_line - 1 : match.end_line]
                assert (match.side, match.text) == (side, "\n".join(lines))


def test_rules_of_the_benchmark_are_compared(two_models: Workspace, alpha: TinyBenchmark) -> None:
    """The benchmark that the model "all" discovered is compared with itself, and with that of "one"."""
    ruled = two_models.out / "discover" / "all"
    args = ("--benchmark", str(ruled), "--repos", str(alpha.bench.repos), "--table", "existing-rules")
    rows = {
        (row["system"].split(",")[0], row["pass"]): row
        for row in tables_of(two_models, *args)["existing-rules"]
    }
    for side in FILES:
        assert (
            rows["all", side]["of_existing"]
            == rows["all", side]["of_ours"]
            == rows["all", side]["jaccard"]
            == 1
        )
        ids = [{rule["id"] for rule in published(two_models, alpha, model, side)} for model in ("all", "one")]
        theirs, ours = (lines_of(each, side) for each in ids)
        assert rows["one", side]["of_existing"] == pytest.approx(len(ours & theirs) / len(theirs))
        assert rows["one", side]["of_ours"] == pytest.approx(len(ours & theirs) / len(ours))


def test_features_are_counted_in_the_rules(two_models: Workspace, alpha: TinyBenchmark) -> None:
    shown = two_models.cli("report", "r", "--table", "rule-features", "--format", "csv").out.splitlines()
    assert any("all rules" in line for line in shown)


def test_damaged_journal_is_listed(two_models: Workspace, tmp_path: Path) -> None:
    folder = tmp_path / "runs" / "r"
    folder.mkdir(parents=True)
    lines = (two_models.out / "journal.jsonl").read_bytes().splitlines(keepends=True)
    (folder / "journal.jsonl").write_bytes(lines[0] + b"{torn\n" + b"".join(lines[1:]))
    result = Workspace(tmp_path, two_models.cache, two_models.config).cli("report", "r")
    assert result.code == 1
    assert "journal.jsonl, line 2: not a journal line" in result.out
    assert "there is no trial" in result.err


def test_run_without_rules_or_trials_says_so(alpha: TinyBenchmark, tmp_path: Path) -> None:
    workspace = alpha.make_workspace(tmp_path, {"m": "broken"})
    assert workspace.run().code == 1
    result = workspace.cli("report", "r")
    assert result.code == 1
    assert "there is no trial" in result.err


FEATURES = {
    "paths": {"id": "a", "pattern": "x", "paths": {"exclude": ["t"]}},
    "regular expression": {"id": "a", "patterns": [{"pattern": "x"}, {"pattern-regex": "y"}]},
    "pattern-not-inside": {"id": "a", "patterns": [{"pattern": "x"}, {"pattern-not-inside": "y"}]},
    "pattern-either": {"id": "a", "patterns": [{"pattern-either": [{"pattern": "x"}]}]},
    "taint mode": {"id": "a", "mode": "taint", "pattern-sources": [{"pattern": "x"}]},
    "plain text": {"id": "a", "languages": ["generic"], "pattern": "x"},
}


@pytest.mark.parametrize("feature", FEATURES)
def test_feature_of_a_rule_is_found_at_any_depth(feature: str) -> None:
    from codetaste.report.discovery.features import rule_features

    metadata = {"metadata": {"paths": 1, "pattern-regex": "no feature"}}
    assert rule_features({**FEATURES[feature], **metadata}) == {feature}
    assert json.dumps(FEATURES[feature])
