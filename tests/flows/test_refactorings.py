"""[evaluate] refactorings = true: what the human did, what the agent did, and which of them agree."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from support.cli.invoke import codetaste
from support.flows.tiny_benchmark import Bench, TinyBenchmark, Workspace, git
from support.flows.trial_runs import make_trial_workspace, output_folder
from support.refactorings.examples import EXTRACTED, LONG, PATH, SHORT, java
from support.refactorings.java_tools import tools_in

pytestmark = pytest.mark.heavy

OTHER = "int other(int a) {\n  int b = a * 3;\n  System.out.println(b);\n  return b - 1;\n}"
SETTING = "[evaluate]\nrefactorings = true\nrefactoring_miner = { workers = 1 }"


def rows_of(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "evaluation/refactorings.jsonl").read_text().splitlines()]


def summary_of(folder: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((folder / "evaluation/refactorings.json").read_text())
    return document


@pytest.fixture
def shop(tmp_path: Path, bubblewrap: Path) -> TinyBenchmark:
    """An instance in which a method of a Java class is extracted."""
    cache = tools_in(tmp_path / "cache" / "codetaste", "refactoring-miner-3.1.4").parent
    bench = Bench(tmp_path)
    bench.add(base={PATH: java("Shop", LONG, OTHER)}, golden={PATH: java("Shop", SHORT, EXTRACTED, OTHER)})
    return TinyBenchmark(bench, cache)


def test_refactorings_of_human_and_agent_are_compared(tmp_path: Path, shop: TinyBenchmark) -> None:
    workspace = make_trial_workspace(tmp_path / "run", shop, coder="java_coder", more=SETTING)
    first = workspace.run("--json", "--exit-zero")
    folder = output_folder(workspace, shop)
    assert first.code == 0, first.err
    summary = summary_of(folder)
    assert (summary["outcome"], summary["refactoring_miner"]) == ("compared", "3.1.4")
    counts = summary["counts"]
    assert (counts["human"], counts["agreed"], counts["same_result"]) == (1, 1, 0)
    rows = rows_of(folder)
    both = [row for row in rows if row["by"] == "both"]
    assert [(row["type"], row["path"], row["human_pure"], row["agent_pure"]) for row in both] == [
        ("Extract Method", PATH, True, True)
    ]
    assert "total(prices int[], count int)" in both[0]["element"]
    assert "sumUp" in both[0]["agent"]
    assert "add(" in both[0]["human"]
    assert ("agent", "Rename Method") in [(row["by"], row["type"]) for row in rows]
    golden = workspace.out / "outputs/pseudo_agents/direct" / shop.row.path / "golden_agent"
    assert summary_of(golden)["counts"]["same_result"] == 1
    report = workspace.cli("report", str(workspace.out), "--table", "refactorings", "--json")
    table = report.json["tables"][0]
    assert table["name"] == "refactorings"
    files = {path: path.read_bytes() for path in folder.rglob("refactorings.json*")}
    for path in files:
        path.unlink()
    again = resumed(workspace)
    assert not [key for key in again if key.startswith("refactorings/")]
    assert {path: path.read_bytes() for path in files} == files


def resumed(workspace: Workspace) -> list[str]:
    """Run again, and return the keys of the jobs that were started then."""
    before = len(workspace.journal())
    assert workspace.run("--json", "--exit-zero").code == 0
    return [line["key"] for line in workspace.journal()[before:] if line["event"] == "started"]


def test_a_hung_comparison_costs_its_time_limit_and_is_named(tmp_path: Path, shop: TinyBenchmark) -> None:
    setting = SETTING.replace("workers = 1", "workers = 1, time_limit = 0.001")
    workspace = make_trial_workspace(tmp_path / "run", shop, coder="java_coder", more=setting)
    result = workspace.run("--json", "--exit-zero")
    assert result.code == 0, result.err
    summary = summary_of(output_folder(workspace, shop))
    assert (summary["outcome"], summary["counts"]) == ("timeout", None)
    ended = {job["key"]: job for job in result.json["jobs"]}
    refactorings = [job for key, job in ended.items() if "refactorings" in str(key)]
    assert all(job["ending"] != "ok" for job in refactorings)


def test_evaluate_compares_the_refactorings_of_one_patch(
    tmp_path: Path, shop: TinyBenchmark, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(shop.cache))
    rules = shop.bench.root / "assets/rules" / shop.row.path
    rules.mkdir(parents=True)
    java_rule = {"id": "r", "pattern": "add(...)", "message": "m", "severity": "INFO", "languages": ["java"]}
    for sign, found in (("positive", [{**java_rule, "metadata": {}}]), ("negative", [])):
        (rules / f"rules_{sign}.yml").write_text(json.dumps({"rules": found}))
    clone = shop.bench.repos / "tiny" / shop.row.repo
    patch = tmp_path / "prediction.diff"
    text = git(clone, "diff", shop.row.base, shop.row.golden)
    patch.write_text(text.replace("add(", "addUp(") + "\n")
    bench = ["--benchmark", shop.bench.root, "--repos", shop.bench.repos, "--instance", "tiny*"]
    shown = codetaste(capsys, "evaluate", *bench, "--patch", patch, "--refactorings")
    assert "Refactorings of the patch beside the human's" in shown
    assert "both: Extract Method, src/p/Shop.java: " in shown
    written = json.loads((tmp_path / "evaluation/refactorings.json").read_text())
    assert (written["counts"]["agreed"], written["counts"]["same_result"]) == (1, 0)
    assert len((tmp_path / "evaluation/refactorings.jsonl").read_text().splitlines()) == 1
    golden = codetaste(capsys, "evaluate", *bench, "--patch", "golden", "--refactorings", "--json")
    found = json.loads(golden)["refactorings"]
    assert (found["outcome"], found["counts"]["same_result"], found["rows"][0]["by"]) == (
        "compared",
        1,
        "both",
    )
    shown = codetaste(capsys, "evaluate", *bench, "--patch", "null", "--refactorings")
    assert "human: Extract Method" in shown
    assert "refactorings" not in codetaste(capsys, "evaluate", *bench, "--patch", "null")
