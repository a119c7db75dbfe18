"""Finding the rule and the file that make the engine hang or crash, and the answers of all the others.

A failed attempt is cut in halves until what fails is one rule on one file, or until time is up: what is then
still unknown is named as a problem of each rule concerned. Pure logic over a function that makes one attempt.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from math import log2
from typing import TYPE_CHECKING, TypeVar

from codetaste.rules.scan import Problem, Scan, merge

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from codetaste.rules.rule import Rule

    Rules = Sequence[Rule]
    Files = Sequence[str]

MAX_FAILURES = 48

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Failure:
    """An attempt without an answer. ``kind`` is that of the problem it becomes."""

    kind: str
    message: str


async def isolate(
    attempt: Callable[[Rules, Files, float], Awaitable[Scan | Failure]],
    rules: Rules,
    files: Files,
    failure: Failure,
    *,
    extra_s: float,
    clock: Callable[[], float] = time.monotonic,
) -> Scan:
    """Return what can be known of ``rules`` on ``files``, an attempt at which ended in ``failure``.

    Args:
        attempt: scans some rules on some files for at most so many seconds; without files the
            rules are only read.
        rules: all of them.
        files: all of them.
        failure: how the whole failed.
        extra_s: for all attempts together.
        clock: the time now, in seconds.
    """
    search = _Search(attempt, clock() + extra_s, clock)
    bad = await search.ask(rules, ())
    good = await search.readable(rules, bad) if bad else rules
    if bad and good:
        failure_of_good = await search.ask(good, files)
        if failure_of_good:
            await search.cut(good, files, failure_of_good)
    elif good:
        await search.cut(good, files, failure)
    return merge([*search.found, Scan((), tuple(search.problems))])


class _Search:
    """The state of one search: answers and problems so far, and what is left of time and patience."""

    def __init__(
        self,
        attempt: Callable[[Rules, Files, float], Awaitable[Scan | Failure]],
        deadline: float,
        clock: Callable[[], float],
    ) -> None:
        self.found: list[Scan] = []
        self.problems: list[Problem] = []
        self._attempt, self._deadline, self._clock = attempt, deadline, clock
        self._failures = 0

    @property
    def _over(self) -> bool:
        return self._failures >= MAX_FAILURES or self._clock() >= self._deadline

    async def ask(self, rules: Rules, files: Files) -> Failure | None:
        """Scan a piece; None when it was answered."""
        if self._over:
            return Failure(
                "timeout", "not scanned: no time left to find out which rule and file are at fault"
            )
        # One culprit costs a death for each halving that is still to come; two culprits somewhat more.
        halvings = log2(len(rules)) + log2(len(files) or 1)
        limit_s = (self._deadline - self._clock()) / (1.5 * halvings + 3)
        answer = await self._attempt(rules, files, limit_s)
        if isinstance(answer, Scan):
            self.found.append(answer)
            return None
        self._failures += 1
        return answer

    async def readable(self, rules: Rules, failure: Failure) -> Rules:
        """Those rules that the engine can read; the others become problems."""
        if len(rules) == 1 or self._over:
            self._blame(rules, "", failure)
            return ()
        good: list[Rule] = []
        for half in _halves(rules):
            bad = await self.ask(half, ())
            good += await self.readable(half, bad) if bad else half
        return good

    async def cut(self, rules: Rules, files: Files, failure: Failure) -> None:
        """Answer as much as possible of a piece that failed."""
        if self._over or (len(rules) == 1 and len(files) <= 1):
            self._blame(rules, files[0] if len(files) == 1 else "", failure)
        elif len(files) > 1:
            await self._cut_files(rules, files)
        else:
            await self._cut_rules(rules, files, failure)

    async def _cut_files(self, rules: Rules, files: Files) -> None:
        halves = _halves(files)
        failures = [await self.ask(rules, half) for half in halves]
        failing = [(half, bad) for half, bad in zip(halves, failures, strict=True) if bad]
        if len(failing) < len(halves):
            for half, bad in failing:
                await self.cut(rules, half, bad)
        elif len(rules) == 1:
            half, bad = failing[0]
            self.problems.append(Problem(bad.kind, f"{bad.message}; so on several files", rules[0].id))
            await self.cut(rules, half, bad)
        else:
            await self._cut_both(rules, files, failing)

    async def _cut_both(self, rules: Rules, files: Files, failing: list[tuple[Files, Failure]]) -> None:
        """Both halves of the files fail: one rule that fails everywhere, or several bad files."""
        halves = _halves(rules)
        failures = [await self.ask(half, files) for half in halves]
        if all(failures):
            for half, bad in failing:
                await self.cut(rules, half, bad)
            return
        for part, trouble in zip(halves, failures, strict=True):
            if trouble:
                await self.cut(part, files, trouble)

    async def _cut_rules(self, rules: Rules, files: Files, failure: Failure, both: int = 0) -> None:
        """One file, many rules. Where both halves fail twice in a row the file is bad for every rule."""
        if len(rules) == 1 or self._over or both > 1:
            self._blame(rules, files[0], failure)
            return
        halves = _halves(rules)
        failures = [await self.ask(half, files) for half in halves]
        both = both + 1 if all(failures) else 0
        for half, bad in zip(halves, failures, strict=True):
            if bad:
                await self._cut_rules(half, files, bad, both)

    def _blame(self, rules: Rules, path: str, failure: Failure) -> None:
        self.problems += [Problem(failure.kind, failure.message, rule.id, path) for rule in rules]


def _halves(items: Sequence[T]) -> tuple[Sequence[T], Sequence[T]]:
    middle = len(items) // 2
    return items[:middle], items[middle:]
