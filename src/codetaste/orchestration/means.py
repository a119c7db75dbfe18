"""Which jobs their budgets can carry now: what each needs at the least is promised to it before it starts.

A promise is no reservation: it keeps other jobs from being started on the same money, and never stands in the
way of a call. It ends with the job's first call, or with the job. A job whose money is only in flight
elsewhere waits at the node that is short of it, in the order in which all of them asked, and holds nothing
but its place.
"""

from __future__ import annotations

import itertools
from decimal import ROUND_DOWN, ROUND_UP
from heapq import heappop, heappush
from typing import TYPE_CHECKING

from codetaste.orchestration.money import Cost, dollars
from codetaste.orchestration.reservation import spoken

if TYPE_CHECKING:
    from collections.abc import Callable

    from codetaste.orchestration.attempt import Entry
    from codetaste.orchestration.budget import Budget

_ZERO = Cost()


class Means:
    """The promises of a run, and the jobs that wait for money; ``freed`` is told of those that may start."""

    def __init__(self, root: Budget, freed: Callable[[list[Entry]], None]) -> None:
        self._root, self._freed = root, freed
        self._promised: dict[Budget, Cost] = {}
        self._sums: dict[Budget, Cost] = {}
        self._waiting: dict[Budget, list[tuple[int, Entry]]] = {}
        self._turns: dict[Entry, int] = {}
        self._next_turn = itertools.count()
        root.tree.watcher = self._moved

    def promise(self, entry: Entry) -> bool:
        """Promise ``entry`` what it needs at the least; False when that is in flight: it waits, then."""
        if entry.budget in self._promised:
            return True
        turn = self._turns.setdefault(entry, next(self._next_turn))
        node = self._short(entry, turn)
        if node is not None:
            heappush(self._waiting.setdefault(node, []), (turn, entry))
            return False
        self._give(entry)
        return True

    def withdraw(self, entry: Entry) -> None:
        """End the promise to ``entry``, if there still is one."""
        if entry.budget in self._promised:
            self._take_back(entry.budget)
            self._moved(entry.budget)

    def clear(self) -> list[Entry]:
        """Return all that wait, and let nobody wait any more."""
        waiting = [entry for queue in self._waiting.values() for _, entry in sorted(queue)]
        self._waiting.clear()
        self._turns.clear()
        return waiting

    def _short(self, entry: Entry, turn: int) -> Budget | None:
        """Return a node of the chain that cannot carry ``entry`` now, or where an earlier one waits."""
        for node in entry.budget.chain:
            queue = self._waiting.get(node)
            if (queue and queue[0][0] < turn) or not self._fits(node, entry.job.least or _ZERO):
                return node
        return None

    def _fits(self, node: Budget, least: Cost) -> bool:
        limits = node.limits
        if limits.usd is None and limits.tokens is None:
            return True
        taken = node.settled + node.unknown + node.reserved + node.tree.claimed(node)
        taken += self._sums.get(node, _ZERO) + least
        return not (
            (limits.usd is not None and least.usd and taken.usd > limits.usd)
            or (limits.tokens is not None and least.tokens and taken.tokens > limits.tokens)
        )

    def _give(self, entry: Entry) -> None:
        least = self._promised[entry.budget] = entry.job.least or _ZERO
        for node in entry.budget.chain[:-1]:
            self._sums[node] = self._sums.get(node, _ZERO) + least
        self._turns.pop(entry, None)

    def _take_back(self, budget: Budget) -> None:
        least = self._promised.pop(budget)
        for node in budget.chain[:-1]:
            self._sums[node] -= least

    def _moved(self, budget: Budget) -> None:
        """Take into account that money has moved at ``budget``: a job's first call ends its promise."""
        if budget in self._promised and budget.reserved != _ZERO:
            self._take_back(budget)
        if self._waiting and any(node in self._waiting for node in budget.chain):
            entries = [entry for node in budget.chain for entry in self._served(node)]
            if entries:
                self._freed(entries)

    def _served(self, node: Budget) -> list[Entry]:
        """Take from the queue at ``node`` whom it is not short for any more, first come first served."""
        served: list[Entry] = []
        queue = self._waiting.get(node, [])
        while queue:
            entry = queue[0][1]
            hopeless = bool(lacking(entry))
            if not hopeless and not self._fits(node, entry.job.least or _ZERO):
                return served
            heappop(queue)
            if hopeless:
                served.append(entry)  # whoever starts it finds out and says so
                self._turns.pop(entry, None)
            elif self.promise(entry):
                served.append(entry)
        self._waiting.pop(node, None)
        return served


def lacking(entry: Entry) -> str:
    """Say what the job needs at the least and can never get from its budgets; empty when it can."""
    least = entry.job.least
    if least is None:
        return ""
    for node in entry.budget.chain:
        spent, limits = node.settled + node.unknown, node.limits
        where = f"({spoken(node.path) if node.path else 'run'})"
        if limits.usd is not None and least.usd > (left := limits.usd - spent.usd):
            needed, rest = dollars(least.usd, ROUND_UP), dollars(max(left, _ZERO.usd), ROUND_DOWN)
            return f"needs at least {needed}, {rest} left of {dollars(limits.usd)} {where}"
        if limits.tokens is not None and least.tokens > (room := limits.tokens - spent.tokens):
            return f"needs at least {least.tokens} tokens, {max(room, 0)} left of {limits.tokens} {where}"
    return ""
