import gzip
import random
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from codetaste.mining.commit import CommitRecord
from codetaste.mining.filter_result import Stage
from codetaste.mining.prefilter.diff import ChangeStatus, CommitDiff, FileChange, make_commit_diff
from codetaste.mining.prefilter.outliers import outlier_bounds, percentile
from codetaste.mining.prefilter.prefilter import Prefiltered, PrefilterLimits, prefilter
from codetaste.mining.prefilter.unreachable import Unreachable, UnreachableReason


@dataclass(frozen=True)
class MadeDiff:
    """A commit as plain data: (is code, edited lines) of each file; None: it cannot be read."""

    repository: str
    files: tuple[tuple[bool, int], ...] | None
    text: bytes = b""


_FILES = st.lists(st.tuples(st.booleans(), st.integers(0, 40)), max_size=6).map(tuple)
_TEXTS = st.sampled_from([b"", b"ab", b"a" * 99])
_MADE = st.builds(MadeDiff, st.sampled_from(["a/a", "a/b", "b/a"]), st.none() | _FILES, _TEXTS)


def diff_of(made: MadeDiff, index: int) -> CommitDiff | Unreachable:
    golden = f"{index * 7919 % 1000:040x}"
    record = CommitRecord(made.repository, golden)
    if made.files is None:
        return Unreachable(record, UnreachableReason.NO_REPOSITORY, "it is gone")
    files = [
        FileChange(f"f{at}.{'py' if code else 'md'}", None, ChangeStatus.MODIFIED, lines, 0)
        for at, (code, lines) in enumerate(made.files)
    ]
    return make_commit_diff(record, "0" * 40, golden, files, made.text)


def brute_force(population: list[MadeDiff], code_edits: int, keep: int) -> list[int]:
    """Return the indices of the commits that stage 2 takes, in its order."""
    code = [
        index
        for index, made in enumerate(population)
        if made.files is not None and sum(lines for is_code, lines in made.files if is_code) >= code_edits
    ]
    if not code:
        return []
    lines = {index: sum(lines for _, lines in population[index].files or ()) for index in code}
    files = {index: len(population[index].files or ()) for index in code}
    usual = [
        index
        for index in code
        if all(
            0.5 * np.percentile([*sizes.values()], 10) - 1e-9
            <= sizes[index]
            <= 2 * np.percentile([*sizes.values()], 90) + 1e-9
            for sizes in (lines, files)
        )
    ]

    def order(index: int) -> tuple[float, str, str]:
        text = population[index].text
        ratio = len(gzip.compress(text, 6)) / len(text) if text else 0.0
        return -ratio, population[index].repository, f"{index * 7919 % 1000:040x}"

    return sorted(usual, key=order)[:keep]


@given(st.lists(_MADE, max_size=25), st.integers(0, 60), st.integers(0, 12), st.randoms())
def test_stage_2_agrees_with_brute_force_in_any_order(
    population: list[MadeDiff], code_edits: int, keep: int, order: random.Random
) -> None:
    diffs = [diff_of(made, index) for index, made in enumerate(population)]
    limits = PrefilterLimits(code_edits, keep)
    found = prefilter(diffs, limits)
    expected = [f"{index * 7919 % 1000:040x}" for index in brute_force(population, code_edits, keep)]
    assert [diff.golden for diff in found.selected] == expected
    assert {each.record.golden for each in found.checked if each.passed} == set(expected)
    assert [each.record for each in found.checked] == [diff.record for diff in diffs]
    order.shuffle(diffs)
    assert prefilter(diffs, limits).selected == found.selected
    for each in found.checked:
        assert all(result.stage is Stage.PREFILTER for result in each.results)
        assert all(bool(result.reason) is not result.passed for result in each.results)


@given(st.lists(st.integers(0, 10**9), min_size=1, max_size=60), st.integers(0, 100))
def test_percentiles_are_those_of_numpy(values: list[int], percent: int) -> None:
    assert float(percentile(values, percent)) == pytest.approx(float(np.percentile(values, percent)))


def test_no_values_have_no_percentile() -> None:
    with pytest.raises(ValueError, match="no values"):
        percentile([], 10)
    assert outlier_bounds([]) is None


def _uniform(lines: int, files: int, index: int) -> CommitDiff:
    made = MadeDiff("a/a", ((True, lines - files + 1), *((True, 1),) * (files - 1)))
    diff = diff_of(made, index)
    assert isinstance(diff, CommitDiff)
    assert (diff.changed_lines, diff.changed_files) == (lines, files)
    return diff


def test_bounds_are_inclusive_and_computed_exactly() -> None:
    population = [_uniform(100, 50, index) for index in range(20)]
    at_bounds = [_uniform(lines, files, 50 + at) for at, (lines, files) in enumerate([(200, 50), (50, 25)])]
    beyond = [_uniform(lines, files, 70 + at) for at, (lines, files) in enumerate([(201, 50), (49, 25)])]
    found = prefilter([*population, *at_bounds, *beyond])
    assert found.bounds is not None
    assert (str(found.bounds.lines), str(found.bounds.files)) == ("50 to 200", "25 to 100")
    assert {each.golden for each in found.selected} == {each.golden for each in [*population, *at_bounds]}
    dropped = {each.record.golden: each.results[-2] for each in found.checked if not each.passed}
    assert [dropped[each.golden].reason for each in beyond] == [
        "larger than nearly all others",
        "smaller than nearly all others",
    ]
    assert (dropped[beyond[0].golden].filter, dropped[beyond[0].golden].value) == ("changed_lines", "201")


def test_each_filter_names_number_bound_and_reason() -> None:
    words = b" ".join(b"%d" % (n * 7919) for n in range(400))
    population = [
        MadeDiff("a/a", ((True, 30), (False, 5)), words),
        MadeDiff("a/b", ((True, 30), (False, 5)), b"same " * 400),
        MadeDiff("a/c", ((True, 24), (False, 900)), words),
        MadeDiff("a/d", None),
    ]
    found = prefilter(
        [diff_of(made, index) for index, made in enumerate(population)], PrefilterLimits(keep=1)
    )
    last = {each.record.repository: each.results[-1] for each in found.checked}
    assert last["a/a"].passed
    assert last["a/b"].filter == "gzip_ratio"
    assert last["a/b"].value.endswith("(rank 2)")
    assert last["a/b"].bound == f"the highest 1, from {_lowest(found):.4f}"
    assert (last["a/c"].filter, last["a/c"].value, last["a/c"].bound) == ("code_edits", "24", "at least 25")
    assert last["a/c"].reason == "24 edited lines of code, fewer than 25"
    assert (last["a/d"].filter, last["a/d"].value) == ("reachable", "repository deleted, private or renamed")
    assert last["a/d"].reason == "it is gone"


def _lowest(found: Prefiltered) -> float:
    assert found.lowest_ratio is not None
    return found.lowest_ratio
