"""IFR and precision against an independent computation with regular expressions and git's hunk headers.

The expected values use no code of codetaste: rules are words, found in the files by ``re``; changed lines
are those of the hunk headers of ``git diff -U0``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from codetaste.rules.scan.model import Scanner
from support.evaluation.trees import git_diff, regex_rule, score, write_tree

WORDS = ("alpha", "beta", "gamma", "delta", "alpha\nbeta", "beta  ")
NAMES = ("one.py", "sub/two words.txt", "sub/three.js", "vendor/four.py", "ünï.py", "a/build/x.py")
EXCLUDED = {"vendor", "build"}
HUNK = re.compile(rb"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")

Lines = set[tuple[str, int]]


def matched_lines(words: list[str], files: Mapping[str, str]) -> tuple[dict[str, int], Lines]:
    """Count the matches of each word, and return all lines with a match."""
    counts, lines = dict.fromkeys(words, 0), set()
    for name, content in files.items():
        for word in words:
            for found in re.finditer(re.escape(word), content):
                counts[word] += 1
                first = content.count("\n", 0, found.start()) + 1
                last = content.count("\n", 0, found.end()) + 1
                lines |= {(name, line) for line in range(first, last + 1)}
    return counts, lines


def changed_lines(patch: bytes) -> tuple[Lines, Lines]:
    """L⁻ and L⁺ from the hunk headers of a patch without context, without excluded files."""
    removed: Lines = set()
    added: Lines = set()
    old = new = ""
    lines = iter(patch.split(b"\n"))
    for line in lines:
        # A name is followed by a tab where it has spaces.
        if line.startswith(b"--- "):
            old = line[4:].decode().rstrip("\t").removeprefix("a/")
        elif line.startswith(b"+++ "):
            new = line[4:].decode().rstrip("\t").removeprefix("b/")
        elif (hunk := HUNK.match(line)) is not None:
            first, gone, start, come = (1 if group is None else int(group) for group in hunk.groups())
            for _ in range(gone + come):
                while next(lines).startswith(b"\\"):
                    pass
            if not {*old.split("/"), *new.split("/")} & EXCLUDED:
                removed |= {(old, number) for number in range(first, first + gone)}
                added |= {(new, number) for number in range(start, start + come)}
    return removed, added


@dataclass(frozen=True)
class Expected:
    followed: int
    rules: int
    hits_added: int
    added: int
    hits_removed: int
    removed: int


def expected(
    base: Mapping[str, str], after: Mapping[str, str], plain: bytes, positive: list[str], negative: list[str]
) -> Expected:
    there, fresh = matched_lines(positive, after)
    still, _ = matched_lines(negative, after)
    _, legacy = matched_lines(negative, base)
    removed, added = changed_lines(plain)
    followed = sum(there[word] > 0 for word in positive) + sum(still[word] == 0 for word in negative)
    return Expected(
        followed,
        len(positive) + len(negative),
        len(added & fresh),
        len(added),
        len(removed & legacy),
        len(removed),
    )


rows = st.sampled_from(
    [*WORDS[:4], "beta  ", "", "x = 1", "\x0cform feed", "cr\r", "mid\rdle beta", "-- dash", "++ plus"]
)
contents = st.builds(
    lambda lines, end: "\n".join(lines) + end, st.lists(rows, max_size=12), st.sampled_from(["\n", ""])
)
trees = st.dictionaries(st.sampled_from(NAMES), contents, max_size=4)
words = st.lists(st.sampled_from(WORDS), max_size=4, unique=True)


def check(
    folder: Path,
    scanner: Scanner,
    trees: tuple[dict[str, str], dict[str, str]],
    sides: tuple[list[str], list[str]],
) -> None:
    base, after = trees
    tree = write_tree(folder / "R", base)
    patch = git_diff(folder, base, after)
    plain = git_diff(folder, base, after, "-U0", quoted=False)
    positive, negative = (
        [regex_rule(f"r{number}", re.escape(word)) for number, word in enumerate(side)] for side in sides
    )
    evaluation = score(scanner, tree, patch or b"\n", positive, negative)
    wanted = expected(base, after, plain, *sides)
    if not wanted.rules:
        assert evaluation.status == "no_rules"
        assert evaluation.rule_counts is None
        return
    assert evaluation.status == "scored", evaluation.reason
    assert evaluation.rule_counts is not None
    assert evaluation.precision is not None
    matched = (
        evaluation.rule_counts.positive_matched
        + evaluation.rule_counts.negative_total
        - evaluation.rule_counts.negative_matched
    )
    assert Fraction(matched, wanted.rules) == Fraction(wanted.followed, wanted.rules)
    assert (evaluation.precision.hits_added, evaluation.precision.added) == (wanted.hits_added, wanted.added)
    assert (evaluation.precision.hits_removed, evaluation.precision.removed) == (
        wanted.hits_removed,
        wanted.removed,
    )
    assert evaluation.line_counts == (wanted.added, wanted.removed)


@settings(max_examples=3, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(base=trees, after=trees, positive=words, negative=words)
def test_a_few_random_edits(
    tmp_path_factory: pytest.TempPathFactory,
    scanner: Scanner,
    base: dict[str, str],
    after: dict[str, str],
    positive: list[str],
    negative: list[str],
) -> None:
    check(tmp_path_factory.mktemp("edit"), scanner, (base, after), (positive, negative))


@pytest.mark.slow
@pytest.mark.timeout(1800)
@settings(max_examples=400, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(base=trees, after=trees, positive=words, negative=words)
def test_many_random_edits(
    tmp_path_factory: pytest.TempPathFactory,
    scanner: Scanner,
    base: dict[str, str],
    after: dict[str, str],
    positive: list[str],
    negative: list[str],
) -> None:
    check(tmp_path_factory.mktemp("edit"), scanner, (base, after), (positive, negative))


def test_edit_with_unusual_lines_and_names(tmp_path: Path, scanner: Scanner) -> None:
    base = {
        "one.py": "alpha\nbeta\n\x0cform feed\ngamma\r\n-- alpha\nlast gamma",
        "sub/two words.txt": "\n".join(["same"] * 9 + ["alpha", ""]),
        "vendor/four.py": "alpha\n",
        "ünï.py": "gamma\n",
    }
    after = {
        "one.py": "beta\n\x0cform feed\ndelta\r\n++ delta\nmid\rdle \x85 \u2028 delta\nlast delta",
        "sub/renamed words.txt": "\n".join(["same"] * 9 + ["delta", ""]),
        "a/build/x.py": "delta\n",
        "ünï.py": "delta\n",
    }
    check(tmp_path, scanner, (base, after), (["delta", "beta", "epsilon"], ["alpha", "gamma", "same"]))
