"""Recounting the matches of published rules."""

from __future__ import annotations

import csv
import resource
import subprocess
from pathlib import Path

import anyio
import pytest

from codetaste.errors import RuleError
from codetaste.rules.engine.install import RuleEngine
from codetaste.rules.engine.opengrep import OpenGrep
from codetaste.rules.recount import RecountReport, recount_rules
from codetaste.rules.scan.full import FullScanner
from codetaste.rules.yaml_writer import dump_rules
from support.rules.scan_cases import MakeTree, rule


def check(
    engine: RuleEngine, base: Path, golden: Path, positive: str, negative: str, ignore: str = ""
) -> RecountReport:
    async def main() -> RecountReport:
        texts = {"rules_positive.yml": positive, "rules_negative.yml": negative}
        return await recount_rules(FullScanner(OpenGrep(engine), ignore), base, golden, texts)

    return anyio.run(main)


def rule_with_counts(name: str, pattern: str, base: object, golden: object) -> str:
    metadata = {"nr_refactored_patterns": golden, "nr_legacy_patterns": base}
    return dump_rules([rule(name, pattern=pattern, metadata=metadata)])


def test_only_mismatches_are_listed(engine: RuleEngine, make_tree: MakeTree) -> None:
    base = make_tree({"a.py": "old(1)\nold(2)\n"})
    golden = make_tree({"a.py": "new(1)\n", "b.py": "def (\n"})
    matching = check(
        engine, base, golden, rule_with_counts("x", "new(...)", 0, 1), rule_with_counts("x", "old(...)", 2, 0)
    )
    assert matching.all_match
    assert matching.rule_count == 2
    assert not matching.mismatches
    differing = check(
        engine,
        base,
        golden,
        rule_with_counts("x", "new(...)", 0, 7),
        rule_with_counts("x", "old(...)", "two", 0),
    )
    assert [
        (d.file, d.rule_id, d.line, d.stated_base, d.stated_golden, d.base, d.golden)
        for d in differing.mismatches
    ] == [
        ("rules_positive.yml", "x", 2, 0, 7, 0, 1),
        ("rules_negative.yml", "x", 2, None, 0, 2, 0),
    ]


def test_uncountable_rule_is_a_mismatch_with_a_reason(engine: RuleEngine, make_tree: MakeTree) -> None:
    tree = make_tree({"a.py": "old(1)\n"})
    report = check(engine, tree, tree, rule_with_counts("x", "old((", 0, 0), "")
    assert not report.all_match
    assert report.mismatches[0].base is None
    assert "Invalid pattern" in report.mismatches[0].reason
    assert {(side, problem.rule_id) for side, problem in report.problems} == {("base", "x"), ("golden", "x")}


def test_malformed_file_is_named(engine: RuleEngine, make_tree: MakeTree) -> None:
    tree = make_tree({})
    with pytest.raises(RuleError, match=r"rules_negative\.yml:1: "):
        check(engine, tree, tree, "", "- x")


def extract_commit(clone: Path, commit: str, tree: Path) -> Path:
    """Extract a commit into a plain folder with git."""
    tree.mkdir(parents=True)
    with subprocess.Popen(["git", "archive", commit], cwd=clone, stdout=subprocess.PIPE) as archive:
        subprocess.run(["tar", "x"], cwd=tree, stdin=archive.stdout, check=True)
    assert archive.returncode == 0
    return tree


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_all_published_counts_are_reproduced(
    engine: RuleEngine, published_data: Path, clones: Path, tmp_path: Path
) -> None:
    ignore = (published_data / "assets" / "default.semgrepignore").read_text()
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    checked = 0
    for row in csv.DictReader((published_data / "instances.csv").read_text().splitlines()):
        name = f"{row['owner']}/{row['repo']}"
        rules = published_data / "assets" / "rules" / name / row["commit_hash"][:8]
        if not rules.is_dir() or not (clones / name).exists():
            continue
        trees = [
            extract_commit(clones / name, row[column], tmp_path / name / column)
            for column in ("commit_hash", "golden_commit_hash")
        ]
        texts = [(rules / f"rules_{sign}.yml").read_text() for sign in ("positive", "negative")]
        report = check(engine, trees[0], trees[1], texts[0], texts[1], ignore)
        assert not report.mismatches, name
        assert not [p for _, p in report.problems if p.kind not in {"parse", "skipped"}]
        checked += report.rule_count
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(f"{checked} rules, {after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime:.1f} CPU-s")  # noqa: T201
    assert checked == 287
