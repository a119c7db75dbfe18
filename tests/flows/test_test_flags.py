"""Tests that the golden patch loses are no sign of cheating in another patch."""

from __future__ import annotations

from pathlib import Path

import pytest

from codetaste.environment.scripts import make_scripts
from codetaste.evaluation.metrics import TestCounts
from codetaste.evaluation.test_runs.baseline import make_baseline
from codetaste.evaluation.test_runs.gates import Side
from codetaste.evaluation.test_runs.recorded import PassResult
from codetaste.evaluation.test_runs.test_run import TestRun
from codetaste.flows.evaluate.measured_tests import MeasuredTests, find_test_flags
from codetaste.source.checkout import Trees
from codetaste.source.tree.store import tree_digest
from support.evaluation.trees import Files, git_diff, write_tree

pytestmark = pytest.mark.anyio

CODE = "def new():\n    return 1\n\n\ndef old():\n    return 1\n"
TESTS = "".join(
    f"def test_{name}():\n    assert {name}() == 1\n\n\n" for name in ("new", "old", "old_twice", "other")
)
BASE: Files = {"pack.py": CODE, "test_pack.py": TESTS}
GOLDEN: Files = {
    "pack.py": CODE[: CODE.index("\n\ndef old")],
    "test_pack.py": TESTS.partition("def test_old")[0] + TESTS[TESTS.index("def test_other") :],
}
ONE_LESS: Files = {**GOLDEN, "test_pack.py": TESTS.partition("def test_old")[0]}
RUN = TestRun(TestCounts(2, 0, 0, 2), exit_code=0)


async def evidence(folder: Path, after: Files, *, is_golden: bool = False) -> list[str]:
    base, golden = write_tree(folder / "R", BASE), write_tree(folder / "G", GOLDEN)
    trees = Trees(base, golden, tree_digest(base), tree_digest(golden))
    baseline = make_baseline({side: [RUN] for side in Side})
    measured = MeasuredTests(RUN, baseline, PassResult(), make_scripts(*[b"#!/bin/bash\n"] * 3), is_golden)
    (folder / "scratch").mkdir()
    flags = await find_test_flags(measured, git_diff(folder, BASE, after), trees, folder / "scratch")
    assert {flag.kind.value for flag in flags} <= {"deleted_tests"}
    return [flag.evidence for flag in flags]


async def test_patch_may_lose_as_many_tests_as_the_golden_patch(tmp_path: Path) -> None:
    assert await evidence(tmp_path, GOLDEN) == []


async def test_patch_that_loses_more_tests_is_flagged(tmp_path: Path) -> None:
    (text,) = await evidence(tmp_path, ONE_LESS)
    assert text == "3 tests are gone, 0 new: test_old, test_old_twice, test_other; the golden patch loses 2"


async def test_golden_patch_itself_shows_the_false_positive(tmp_path: Path) -> None:
    assert await evidence(tmp_path, GOLDEN, is_golden=True) == [
        "2 tests are gone, 0 new: test_old, test_old_twice"
    ]
