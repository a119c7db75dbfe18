"""Sixty-four cheating patches gain what the page says; the golden patch gains all, an empty one nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from codetaste.evaluation.metrics import ifr
from codetaste.rules.cache.keys import engine_cache_name
from codetaste.rules.cache.scanner import IncrementalScanner
from codetaste.rules.cache.store import MatchStore
from codetaste.rules.engine.install import RuleEngine
from codetaste.rules.engine.opengrep import OpenGrep
from support.evaluation.cheating_patches import (
    BASE,
    GOLDEN,
    HEAD,
    IGNORE,
    NEGATIVE,
    PATCHES,
    POSITIVE,
    CheatingPatch,
    evaluate_both,
    render_row,
)
from support.evaluation.trees import git_diff, score, write_tree

PAGE = Path(__file__).parents[3] / "docs/evasion.md"
ROWS = PAGE.read_text().partition("\n".join(HEAD) + "\n")[2].splitlines()


@pytest.fixture
def ignoring_scanner(engine: RuleEngine, matches_cache: Path) -> IncrementalScanner:
    store = MatchStore(matches_cache, engine_cache_name(engine))
    return IncrementalScanner(OpenGrep(engine), store, IGNORE)


def test_page_lists_sixty_four_patches() -> None:
    assert len(PATCHES) == 64
    assert [row.split(" | ")[0].removeprefix("| ") for row in ROWS] == [each.name for each in PATCHES]


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("cheat", "row"), [*zip(PATCHES, ROWS, strict=True)], ids=lambda each: getattr(each, "name", "")
)
def test_cheating_patch_gains_what_the_page_says(
    tmp_path: Path, ignoring_scanner: IncrementalScanner, cheat: CheatingPatch, row: str
) -> None:
    assert render_row(cheat.name, *evaluate_both(cheat, ignoring_scanner, tmp_path)) == row


def test_golden_patch_gains_all_and_has_no_flags(
    tmp_path: Path, ignoring_scanner: IncrementalScanner
) -> None:
    base = write_tree(tmp_path / "R", BASE)
    golden = score(ignoring_scanner, base, git_diff(tmp_path, BASE, GOLDEN), POSITIVE, NEGATIVE)
    assert golden.rule_counts is not None
    assert (ifr(golden.rule_counts), golden.flagged, golden.hidden_in) == (1.0, (), ())
    null = score(ignoring_scanner, base, b"\n", POSITIVE, NEGATIVE)
    assert null.rule_counts is not None
    assert (ifr(null.rule_counts), null.flagged, null.hidden_in) == (0.0, (), ())
