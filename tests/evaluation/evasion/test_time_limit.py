"""A file that the engine cannot scan in time is named and not cleaned, and costs other patches nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import anyio
import pytest

from codetaste.evaluation.evaluate import Evaluation, EvaluationStatus, evaluate
from codetaste.evaluation.output.scores_json import scores_to_json
from codetaste.evaluation.rule_set import parse_rule_set
from codetaste.rules.cache.scanner import IncrementalScanner
from codetaste.rules.cache.store import MatchStore
from codetaste.rules.engine.install import RuleEngine
from codetaste.rules.engine.opengrep import OpenGrep, RuleEngineLimits
from codetaste.rules.rule import Rule
from codetaste.rules.scan.model import Scanner, ScanProblem, ScanProblemKind, ScanResult
from codetaste.source.tree.overlay import OverlayTree
from support.evaluation.trees import Files, git_diff, render_rule_file, rule, score, write_tree

OPERATORS = "var y = 1" + "+1" * 400_000 + ";\n"
"""The engine's time grows with the square of it: minutes on any machine."""
CODE = "".join(f"line({number})\n" for number in range(5)) + "old(1)\n"
BASE: Files = {"a.js": CODE, "b.js": "old(2)\n", "c.js": "old(3)\nolder(3)\n"}
ADDITIVE = [rule("new", "new(1)", languages=["javascript"])]
REDUCTIVE = [rule(name, f"{name}(...)", languages=["javascript"]) for name in ("old", "older")]
GONE: Files = {"a.js": "new(1)\n", "b.js": "x()\n", "c.js": "x()\n"}
PATCHES: dict[str, Files] = {
    "operators": {**GONE, "a.js": OPERATORS + "old;\n"},
    "moved, with operators": {"b.js": "x()\n", "c.js": "x()\n", "other.js": CODE + OPERATORS},
    "honest": GONE,
}


@pytest.mark.heavy
@pytest.mark.parametrize("cheat", ["operators", "moved, with operators"])
def test_file_over_the_time_limit_is_named_and_not_cleaned(
    tmp_path: Path, engine: RuleEngine, cheat: str
) -> None:
    limits = RuleEngineLimits(wall_s=24.0, pair_s=1.0)
    scanner = IncrementalScanner(OpenGrep(engine, limits=limits), MatchStore(tmp_path / "cache", "test"))
    base = write_tree(tmp_path / "R", BASE)
    patches = {name: git_diff(tmp_path, BASE, PATCHES[name], "--no-renames") for name in (cheat, "honest")}
    ended: list[str] = []
    evaluations: dict[str, Evaluation] = {}

    async def score(name: str) -> None:
        scratch = tmp_path / name
        scratch.mkdir()
        rules = parse_rule_set(render_rule_file(ADDITIVE), render_rule_file(REDUCTIVE))
        evaluations[name] = await evaluate(rules, base, patches[name], scanner, scratch=scratch)
        ended.append(name)

    async def main() -> None:
        await score("honest")
        (tmp_path / "honest").rmdir()
        ended.clear()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(score, cheat)
            await anyio.sleep(3.0)
            tasks.start_soon(score, "honest")

    anyio.run(main)
    assert ended == ["honest", cheat]
    late, honest = evaluations[cheat], evaluations["honest"]
    name = "a.js" if cheat == "operators" else "other.js"
    assert (late.status, late.timed_out) == (EvaluationStatus.SCORED, (name,))
    assert late.unmet_reductive == ("old",)
    assert scores_to_json(late)["timed_out"] == [name]
    assert any("scan timed out" in note for note in late.notes)
    assert (honest.status, honest.timed_out) == (EvaluationStatus.SCORED, ())
    assert (honest.unmet_additive, honest.unmet_reductive) == ((), ())


@pytest.mark.parametrize(
    ("calls", "unmet"),
    [(("old",), ("old",)), (("new",), ()), (("new", "older"), ("old", "older"))],
    ids=["of a reductive rule", "of an additive rule", "of several rules"],
)
def test_file_with_too_many_matches_counts_against_the_patch(
    tmp_path: Path, scanner: Scanner, calls: tuple[str, ...], unmet: tuple[str, ...]
) -> None:
    """Of a file with more than 10,000 matches the engine reports none, and names one of the rules."""
    base = write_tree(tmp_path / "R", BASE)
    content = f"{calls[0]}(1)\n" * 10_001 + "".join(f"{call}(2)\n" for call in calls[1:])
    patch = git_diff(tmp_path, BASE, {**GONE, "a.js": "x()\n", "d.js": content})
    evaluation = score(scanner, base, patch, ADDITIVE, REDUCTIVE)
    assert (evaluation.status, evaluation.unmet_additive) == (EvaluationStatus.SCORED, ("new",))
    assert evaluation.unmet_reductive == unmet
    assert any("d.js" in note and "too often" in note for note in evaluation.notes)
    assert [problem.path for problem in evaluation.problems] == ["d.js"]


@dataclass
class FailingScanner:
    """Scans R, and cannot say on which file of a patch the engine fails."""

    scanner: Scanner
    kind: ScanProblemKind

    async def scan(self, rules: Sequence[Rule], tree: Path | OverlayTree) -> ScanResult:
        if isinstance(tree, Path):
            return await self.scanner.scan(rules, tree)
        problems = [ScanProblem(self.kind, "no time left", rule.id) for rule in rules]
        return ScanResult((), tuple(problems))


def test_patch_with_too_many_files_over_the_time_limit_has_a_score(tmp_path: Path, scanner: Scanner) -> None:
    """Left out of the means, it would be better than a patch that cleans nothing."""
    base = write_tree(tmp_path / "R", BASE)
    patch = git_diff(tmp_path, BASE, {**BASE, "a.js": "x()\n", "b.js": "x()\n"})
    late = score(FailingScanner(scanner, ScanProblemKind.TIMEOUT), base, patch, ADDITIVE, REDUCTIVE)
    assert (late.status, late.timed_out) == (EvaluationStatus.SCORED, ("a.js", "b.js"))
    assert (late.unmet_additive, late.unmet_reductive) == (("new",), ("old",))
    crashed = score(FailingScanner(scanner, ScanProblemKind.ENGINE), base, patch, ADDITIVE, REDUCTIVE)
    assert crashed.status is EvaluationStatus.PARTIAL_SCAN
