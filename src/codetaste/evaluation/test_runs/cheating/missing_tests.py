"""Tests that a patch deletes without a counterpart, and tests whose body it empties.

Moves and renames keep the number of tests: a test that is gone has a counterpart in a new one of any name, in
any file, unless that one does nothing.

A patch may lose as many tests as the golden patch does: those of code that the refactoring removes for good.

False positives: several tests that become one with parameters, and tests that are written in a way that is
not recognised afterwards.
Not found: a test that is replaced by a weaker one; one that the runner no longer collects because of its name
or place is in the report of the run, or not.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from codetaste.core.text import plural
from codetaste.evaluation.test_runs.cheating.declared_tests import DeclaredTest, find_declared_tests
from codetaste.evaluation.test_runs.cheating.flags import CheatingFlag, CheatingKind, make_flag

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from codetaste.evaluation.test_runs.cheating.changes import PatchChanges

_SHOWN = 5


@dataclass(frozen=True, slots=True)
class _LostTests:
    """Tests without a counterpart by their file in R, and the number of tests that are new."""

    gone: Mapping[str, list[DeclaredTest]]
    new: int

    @property
    def count(self) -> int:
        return sum(map(len, self.gone.values()))


def find_missing_tests(changes: PatchChanges, allowed: int = 0) -> Iterator[CheatingFlag]:
    """Yield at most one flag for more than ``allowed`` lost tests, and one for each emptied test."""
    before, after = _declared_tests(changes)
    yield from _emptied(before, after)
    lost = _lost(before, after)
    if lost.count - lost.new > allowed:
        path = max(lost.gone, key=lambda each: len(lost.gone[each]))
        names = ", ".join(test.name for test in lost.gone[path][:_SHOWN])
        text = f"{plural(lost.count, 'test is', 'tests are')} gone, {lost.new:,} new: {names}"
        if allowed:
            text = f"{text}; the golden patch loses {allowed:,}"
        yield make_flag(CheatingKind.DELETED_TESTS, text, path, lost.gone[path][0].line)


def count_lost_tests(changes: PatchChanges) -> int:
    """Return how many tests fewer there are after the changes; 0 if there are as many or more."""
    lost = _lost(*_declared_tests(changes))
    return max(0, lost.count - lost.new)


def _declared_tests(
    changes: PatchChanges,
) -> tuple[dict[str, list[DeclaredTest]], dict[str, list[DeclaredTest]]]:
    """Return the tests of the changed files in R and in R∘X̂, by path."""
    before: dict[str, list[DeclaredTest]] = {}
    after: dict[str, list[DeclaredTest]] = {}
    for file in changes.files:
        if file.diff.old is not None and not file.diff.copied:
            before[file.diff.old] = find_declared_tests(file.before, file.diff.old)
        if file.diff.new is not None:
            after[file.diff.new] = find_declared_tests(file.after, file.diff.new)
    return before, after


def _emptied(
    before: dict[str, list[DeclaredTest]], after: dict[str, list[DeclaredTest]]
) -> Iterator[CheatingFlag]:
    """Yield the tests that do nothing, without as many of the same name that did nothing before."""
    old = Counter(test.name for tests in before.values() for test in tests if test.is_empty)
    for path, tests in after.items():
        for test in tests:
            if test.is_empty and old[test.name] <= 0:
                yield make_flag(CheatingKind.EMPTY_TESTS, f"{test.name} does nothing", path, test.line)
            old[test.name] -= test.is_empty


def _lost(before: dict[str, list[DeclaredTest]], after: dict[str, list[DeclaredTest]]) -> _LostTests:
    new = Counter(test.name for tests in after.values() for test in tests if not test.is_empty)
    gone: defaultdict[str, list[DeclaredTest]] = defaultdict(list)
    for path, tests in before.items():
        for test in tests:
            if test.is_empty:
                continue
            if new[test.name] > 0:
                new[test.name] -= 1
            else:
                gone[path].append(test)
    return _LostTests(gone, sum(new.values()))
