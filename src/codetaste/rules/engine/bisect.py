"""Bisect a failed scan: find the rule and the file that make the engine hang or crash, and scan all others.

A failed attempt is split into halves until one rule on one file fails, or until time is up; what is unknown
then becomes a problem of each rule concerned. Pure logic over a function that makes one attempt.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from math import log2
from typing import TYPE_CHECKING, TypeVar

from codetaste.rules.scan.model import ScanProblem, ScanProblemKind, ScanResult, merge_scans

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from codetaste.rules.rule import Rule

    Rules = Sequence[Rule]
    Files = Sequence[str]

MAX_FAILURES = 48

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class FailedAttempt:
    """An attempt without an answer, and the kind of problem that it is reported as."""

    kind: ScanProblemKind
    message: str


async def bisect_failure(
    attempt: Callable[[Rules, Files, float], Awaitable[ScanResult | FailedAttempt]],
    rules: Rules,
    files: Files,
    failure: FailedAttempt,
    *,
    extra_s: float,
    clock: Callable[[], float] = time.monotonic,
) -> ScanResult:
    """Return all answers of ``rules`` on ``files`` that can be had after an attempt ended in ``failure``.

    Args:
        attempt: scans some rules on some files for at most so many seconds; without files the
            rules are only parsed.
        rules: all rules of the scan.
        files: all files of the scan.
        failure: the result of the failed attempt.
        extra_s: time limit of all further attempts together, seconds.
        clock: the time now, in seconds.
    """
    bisection = _Bisection(attempt, clock() + extra_s, clock)
    bad = await bisection.attempt(rules, ())
    good = await bisection.parseable(rules, bad) if bad else rules
    if bad and good:
        failure_of_good = await bisection.attempt(good, files)
        if failure_of_good:
            await bisection.split(good, files, failure_of_good)
    elif good:
        await bisection.split(good, files, failure)
    return merge_scans([*bisection.answers, ScanResult((), tuple(bisection.problems))])


class _Bisection:
    """The state of one bisection: answers and problems so far, deadline and number of failures."""

    def __init__(
        self,
        attempt: Callable[[Rules, Files, float], Awaitable[ScanResult | FailedAttempt]],
        deadline: float,
        clock: Callable[[], float],
    ) -> None:
        self.answers: list[ScanResult] = []
        self.problems: list[ScanProblem] = []
        self._attempt, self._deadline, self._clock = attempt, deadline, clock
        self._failures = 0

    @property
    def _over(self) -> bool:
        return self._failures >= MAX_FAILURES or self._clock() >= self._deadline

    async def attempt(self, rules: Rules, files: Files) -> FailedAttempt | None:
        """Scan some rules on some files; return None on success."""
        if self._over:
            return FailedAttempt(
                ScanProblemKind.TIMEOUT,
                "not scanned: no time left to find out which rule and file are at fault",
            )
        # One culprit costs one failed attempt per remaining halving; two culprits cost somewhat more.
        halvings = log2(len(rules)) + log2(len(files) or 1)
        limit_s = (self._deadline - self._clock()) / (1.5 * halvings + 3)
        answer = await self._attempt(rules, files, limit_s)
        if isinstance(answer, ScanResult):
            self.answers.append(answer)
            return None
        self._failures += 1
        return answer

    async def parseable(self, rules: Rules, failure: FailedAttempt) -> Rules:
        """Return the rules that the engine can parse; the others become problems."""
        if len(rules) == 1 or self._over:
            self._report(rules, "", failure)
            return ()
        good: list[Rule] = []
        for half in _halves(rules):
            bad = await self.attempt(half, ())
            good += await self.parseable(half, bad) if bad else half
        return good

    async def split(self, rules: Rules, files: Files, failure: FailedAttempt) -> None:
        """Split a failed attempt and scan as much of it as possible."""
        if self._over or (len(rules) == 1 and len(files) <= 1):
            self._report(rules, files[0] if len(files) == 1 else "", failure)
        elif len(files) > 1:
            await self._split_files(rules, files)
        else:
            await self._split_rules(rules, files, failure)

    async def _split_files(self, rules: Rules, files: Files) -> None:
        halves = _halves(files)
        failures = [await self.attempt(rules, half) for half in halves]
        failing = [(half, bad) for half, bad in zip(halves, failures, strict=True) if bad]
        if len(failing) < len(halves):
            for half, bad in failing:
                await self.split(rules, half, bad)
        elif len(rules) == 1:
            half, bad = failing[0]
            self.problems.append(ScanProblem(bad.kind, f"{bad.message}; also on other files", rules[0].id))
            await self.split(rules, half, bad)
        else:
            await self._split_both(rules, files, failing)

    async def _split_both(
        self, rules: Rules, files: Files, failing: list[tuple[Files, FailedAttempt]]
    ) -> None:
        """Split if both halves of the files fail: one rule fails everywhere, or several files are bad."""
        halves = _halves(rules)
        failures = [await self.attempt(half, files) for half in halves]
        if all(failures):
            for half, bad in failing:
                await self.split(rules, half, bad)
            return
        for part, part_failure in zip(halves, failures, strict=True):
            if part_failure:
                await self.split(part, files, part_failure)

    async def _split_rules(self, rules: Rules, files: Files, failure: FailedAttempt, both: int = 0) -> None:
        """Split the rules of one file; both halves failing twice in a row means a bad file."""
        if len(rules) == 1 or self._over or both > 1:
            self._report(rules, files[0], failure)
            return
        halves = _halves(rules)
        failures = [await self.attempt(half, files) for half in halves]
        both = both + 1 if all(failures) else 0
        for half, bad in zip(halves, failures, strict=True):
            if bad:
                await self._split_rules(half, files, bad, both)

    def _report(self, rules: Rules, path: str, failure: FailedAttempt) -> None:
        self.problems += [ScanProblem(failure.kind, failure.message, rule.id, path) for rule in rules]


def _halves(items: Sequence[T]) -> tuple[Sequence[T], Sequence[T]]:
    middle = len(items) // 2
    return items[:middle], items[middle:]
