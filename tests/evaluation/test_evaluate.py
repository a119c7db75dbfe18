"""A patch is scored or has a status with a reason; an unscannable file does not count as cleaned."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from codetaste.errors import EngineError, RuleError
from codetaste.evaluation.changed_lines import Exclusions
from codetaste.evaluation.evaluate import EvaluationStatus
from codetaste.evaluation.rule_set import parse_rule_set
from codetaste.rules.engine.install import RuleEngine
from codetaste.rules.engine.opengrep import OpenGrep, RuleEngineLimits
from codetaste.rules.rule import Rule
from codetaste.rules.scan.full import FullScanner
from codetaste.rules.scan.model import Scanner, ScanProblem, ScanProblemKind, ScanResult
from codetaste.source.tree.overlay import OverlayTree
from support.evaluation.trees import git_diff, regex_rule, rule, score, write_tree

BASE = {"a.py": "old(1)\nkeep()\n", "b.py": "x = old(2)\n", "dist/c.py": "old(3)\n"}
GOLDEN = {"a.py": "new(1)\nkeep()\n", "b.py": "x = new(2)\n", "dist/c.py": "new(3)\n"}
POSITIVE = [rule("same-id", "new(...)")]
NEGATIVE = [rule("same-id", "old(...)"), rule("strings", "print(...)")]


@pytest.fixture
def base(tmp_path: Path) -> Path:
    return write_tree(tmp_path / "R", BASE)


def test_golden_follows_every_rule_and_null_follows_none(
    tmp_path: Path, base: Path, scanner: Scanner
) -> None:
    golden = score(scanner, base, git_diff(tmp_path, BASE, GOLDEN), POSITIVE, NEGATIVE[:1])
    assert golden.status is EvaluationStatus.SCORED
    assert golden.rule_counts is not None
    assert (golden.rule_counts.positive_matched, golden.rule_counts.negative_matched) == (1, 0)
    assert (golden.unmet_additive, golden.unmet_reductive) == ((), ())
    null = score(scanner, base, b"\n", POSITIVE, NEGATIVE[:1])
    assert null.rule_counts is not None
    assert (null.rule_counts.positive_matched, null.rule_counts.negative_matched) == (0, 1)
    assert (null.unmet_additive, null.unmet_reductive) == (("same-id",), ("same-id",))
    assert null.line_counts == (0, 0)


def test_evaluate_reports_both_line_counts_and_configured_exclusions(
    tmp_path: Path, base: Path, scanner: Scanner
) -> None:
    patch = git_diff(tmp_path, BASE, GOLDEN)
    evaluation = score(scanner, base, patch, POSITIVE, NEGATIVE)
    assert (evaluation.line_counts, evaluation.line_counts_all) == ((2, 2), (3, 3))
    assert evaluation.precision is not None
    assert evaluation.precision_all is not None
    assert (evaluation.precision.hits_added, evaluation.precision_all.hits_added) == (2, 3)
    whole = score(scanner, base, patch, POSITIVE, NEGATIVE, exclusions=Exclusions.NONE)
    assert (whole.line_counts, whole.precision) == ((3, 3), evaluation.precision_all)


@pytest.mark.parametrize(
    ("broken", "name"),
    [
        ("def (:\n    x = old(2\n", "b.py"),
        ("def (:\n    x = old(2\n", "moved/b.py"),
        ("x = 1\n" + "# long\n" * 150_000, "b.py"),
    ],
    ids=["unparsable", "renamed and unparsable", "too large to be scanned"],
)
def test_file_unscannable_after_patch_does_not_count_as_cleaned(
    tmp_path: Path, scanner: Scanner, broken: str, name: str
) -> None:
    lines = "".join(f"keep({number})\n" for number in range(40))
    before = {"a.py": "old(1)\n", "b.py": f"x = old(2)\n{lines}"}
    after = {"a.py": "new(1)\n", name: broken + lines}
    base = write_tree(tmp_path / "before", before)
    evaluation = score(scanner, base, git_diff(tmp_path, before, after, "-M10%"), POSITIVE, NEGATIVE[:1])
    assert evaluation.status is EvaluationStatus.SCORED
    assert evaluation.unscannable == (name,)
    assert evaluation.unmet_reductive == ("same-id",)
    assert "could be scanned before the patch but not after it: 1" in evaluation.notes[-1]
    assert "reductive rules that count as unmet because of it: 1" in evaluation.notes[-1]


def test_file_unparsable_before_patch_is_not_reported(tmp_path: Path, scanner: Scanner) -> None:
    before = {"a.py": "old(1)\n", "b.py": "def (:\n"}
    after = {"a.py": "new(1)\n", "b.py": "def (((:\n"}
    base = write_tree(tmp_path / "before", before)
    evaluation = score(scanner, base, git_diff(tmp_path, before, after), POSITIVE, NEGATIVE[:1])
    assert (evaluation.unscannable, evaluation.unmet_reductive, evaluation.notes) == ((), (), ())


@pytest.mark.parametrize(
    ("kind", "message", "unscannable"),
    [
        (ScanProblemKind.SYMBOLS, "any words", ()),
        (ScanProblemKind.PARSE, "Fixpoint timeout: the words of the other kind", ("b.py",)),
    ],
)
def test_kind_of_the_problem_tells_whether_the_file_parsed(
    tmp_path: Path, base: Path, kind: ScanProblemKind, message: str, unscannable: tuple[str, ...]
) -> None:
    class TwoScans:
        problems: tuple[ScanProblem, ...] = ()

        async def scan(self, rules: Sequence[Rule], tree: Path | OverlayTree) -> ScanResult:  # noqa: ARG002
            found = ScanResult((), self.problems, frozenset({"a.py", "b.py"}))
            self.problems = (ScanProblem(kind, message, path="b.py"),)
            return found

    assert (
        score(TwoScans(), base, git_diff(tmp_path, BASE, GOLDEN), POSITIVE, NEGATIVE).unscannable
        == unscannable
    )


@pytest.mark.parametrize("kind", [ScanProblemKind.TIMEOUT, ScanProblemKind.ENGINE])
@pytest.mark.parametrize(
    ("path", "status", "timed_out"),
    [
        ("b.py", EvaluationStatus.SCORED, ("b.py",)),
        ("other.py", EvaluationStatus.PARTIAL_SCAN, ()),
    ],
    ids=["of the patch", "not of the patch"],
)
def test_file_on_which_the_engine_fails_is_not_cleaned(
    tmp_path: Path,
    base: Path,
    scanner: Scanner,
    kind: ScanProblemKind,
    path: str,
    status: EvaluationStatus,
    timed_out: tuple[str, ...],
) -> None:
    class FailingOnce:
        async def scan(self, rules: Sequence[Rule], tree: Path | OverlayTree) -> ScanResult:
            found = await scanner.scan(rules, tree)
            problem = ScanProblem(kind, "no answer in 9.0 s", rule_id=rules[0].id, path=path)
            return replace(found, problems=(problem,)) if isinstance(tree, OverlayTree) else found

    evaluation = score(FailingOnce(), base, git_diff(tmp_path, BASE, GOLDEN), POSITIVE, NEGATIVE[:1])
    assert (evaluation.status, evaluation.timed_out) == (status, timed_out)
    assert evaluation.unmet_reductive == (("same-id",) if timed_out else ())


def test_patch_that_does_not_apply_has_own_status(tmp_path: Path, base: Path, scanner: Scanner) -> None:
    other = {"a.py": "something()\nelse()\nentirely()\n"}
    patch = git_diff(tmp_path, other, {"a.py": "something()\nnew(1)\nentirely()\n"})
    evaluation = score(scanner, base, patch, POSITIVE, NEGATIVE)
    assert evaluation.status is EvaluationStatus.DOES_NOT_APPLY
    assert evaluation.reason
    assert "another" in evaluation.reason
    assert (evaluation.rule_counts, evaluation.precision, evaluation.line_counts) == (None, None, (1, 1))


def test_applicable_patch_of_another_commit_is_noted(tmp_path: Path, base: Path, scanner: Scanner) -> None:
    far = "".join(f"line({number})\n" for number in range(30))
    other = {"a.py": f"old(1)\nkeep()\n{far}changed()\n"}
    patch = git_diff(tmp_path, other, {"a.py": f"new(1)\nkeep()\n{far}changed()\n"})
    here = write_tree(tmp_path / "longer", {"a.py": f"old(1)\nkeep()\n{far}"})
    evaluation = score(scanner, here, patch, POSITIVE, NEGATIVE)
    assert evaluation.status is EvaluationStatus.SCORED
    assert evaluation.notes


@pytest.mark.parametrize(
    "patch",
    [b"no patch at all\n", b"diff --git a/a.py b/a.py\n--- a/a.py\n+++ b/a.py\n@@ -1,9 +1,9 @@\n-old(1)\n"],
)
def test_invalid_patch_has_own_status(base: Path, scanner: Scanner, patch: bytes) -> None:
    evaluation = score(scanner, base, patch, POSITIVE, NEGATIVE)
    assert evaluation.status is EvaluationStatus.UNPARSABLE_PATCH
    assert evaluation.reason
    assert "\n" not in evaluation.reason
    assert (evaluation.rule_counts, evaluation.line_counts) == (None, None)


def test_without_rules_only_lines_are_counted(tmp_path: Path, base: Path, scanner: Scanner) -> None:
    patch = git_diff(tmp_path, BASE, GOLDEN)
    for positive, negative in (([], []), (None, None)):
        evaluation = score(scanner, base, patch, positive, negative)
        assert (evaluation.status, evaluation.rule_counts, evaluation.precision, evaluation.line_counts) == (
            EvaluationStatus.NO_RULES,
            None,
            None,
            (2, 2),
        )


def test_direction_without_rules_leaves_other_direction(tmp_path: Path, base: Path, scanner: Scanner) -> None:
    evaluation = score(scanner, base, git_diff(tmp_path, BASE, GOLDEN), None, NEGATIVE)
    assert evaluation.rule_counts is not None
    assert (evaluation.rule_counts.positive_total, evaluation.rule_counts.negative_total) == (0, 2)


def test_evaluate_rule_engine_rejects_makes_scan_partial(
    tmp_path: Path, base: Path, scanner: Scanner
) -> None:
    patch = git_diff(tmp_path, BASE, GOLDEN)
    evaluation = score(scanner, base, patch, [*POSITIVE, rule("broken", "new(((")], NEGATIVE)
    assert (evaluation.status, evaluation.rule_counts, evaluation.precision) == (
        EvaluationStatus.PARTIAL_SCAN,
        None,
        None,
    )
    assert evaluation.reason.startswith("the scan of R is partial: rule broken")


def test_scan_over_time_limit_is_partial(tmp_path: Path, engine: RuleEngine) -> None:
    before = {"a.py": "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab\n"}
    base = write_tree(tmp_path / "slow", before)
    hanging = regex_rule("hangs", r"(a*)*(a*)*(a*)*(a*)*c")
    scanner = FullScanner(OpenGrep(engine, limits=RuleEngineLimits(wall_s=0.02)))
    evaluation = score(scanner, base, b"\n", [hanging], None)
    assert evaluation.status is EvaluationStatus.PARTIAL_SCAN
    assert evaluation.rule_counts is None


def test_missing_rule_engine_raises_error(base: Path, engine: RuleEngine) -> None:
    gone = FullScanner(OpenGrep(replace(engine, program=base / "nothing")))
    with pytest.raises(EngineError):
        score(gone, base, b"\n", POSITIVE, NEGATIVE)


def test_invalid_rule_file_error_names_location() -> None:
    with pytest.raises(RuleError, match=r"rules_negative.yml:1"):
        parse_rule_set(b"", b"rules: [")
    with pytest.raises(RuleError, match="message is missing"):
        parse_rule_set(b"rules:\n- id: x\n", b"")
    assert parse_rule_set(b"", b"rules: []\n").negative == ()
