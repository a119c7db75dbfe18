"""Earmarks: the minimum cost of a job is earmarked in its budgets before the job starts.

An earmark is not a reservation: it stops other jobs from starting on the same money, but never blocks a call.
It ends with the job's first call, or with the job. A job whose money is in flight elsewhere waits at the node
that is short of money, first come first served, and holds nothing but its place in that queue.
"""

from __future__ import annotations

import itertools
from decimal import ROUND_DOWN, ROUND_UP
from heapq import heappop, heappush
from typing import TYPE_CHECKING

from codetaste.orchestration.budget.cost import Cost, format_dollars
from codetaste.orchestration.budget.node import format_path

if TYPE_CHECKING:
    from collections.abc import Callable

    from codetaste.orchestration.budget.budget import Budget
    from codetaste.orchestration.budget.node import BudgetNode
    from codetaste.orchestration.scheduler.scheduled_job import ScheduledJob

_ZERO = Cost()


class Earmarks:
    """The earmarks of a run, and the jobs that wait for money; ``on_ready`` gets jobs that may start."""

    def __init__(self, root: Budget, on_ready: Callable[[list[ScheduledJob]], None]) -> None:
        self._on_ready = on_ready
        self._queued_claims = root.queue.queued_claims
        self._earmarked: dict[BudgetNode, Cost] = {}
        self._sums: dict[BudgetNode, Cost] = {}
        self._waiting: dict[BudgetNode, list[tuple[int, ScheduledJob]]] = {}
        self._turns: dict[ScheduledJob, int] = {}
        self._next_turn = itertools.count()
        root.queue.on_change = self._money_moved

    def earmark(self, entry: ScheduledJob) -> bool:
        """Earmark the minimum cost of ``entry``; False if that money is in flight, and the job is queued."""
        if entry.budget in self._earmarked:
            return True
        turn = self._turns.setdefault(entry, next(self._next_turn))
        node = self._short_node(entry, turn)
        if node is not None:
            heappush(self._waiting.setdefault(node, []), (turn, entry))
            return False
        min_cost = self._earmarked[entry.budget] = entry.job.min_cost or _ZERO
        for node in entry.budget.chain[:-1]:
            self._sums[node] = self._sums.get(node, _ZERO) + min_cost
        self._turns.pop(entry, None)
        return True

    def release(self, entry: ScheduledJob) -> None:
        """End the earmark of ``entry``, if it still has one."""
        if entry.budget in self._earmarked:
            self._drop(entry.budget)
            self._money_moved(entry.budget)

    def clear(self) -> list[ScheduledJob]:
        """Remove and return all waiting jobs."""
        waiting = [entry for queue in self._waiting.values() for _, entry in sorted(queue)]
        self._waiting.clear()
        self._turns.clear()
        return waiting

    def _short_node(self, entry: ScheduledJob, turn: int) -> BudgetNode | None:
        """Return a node of the chain that is short of money for ``entry``, or where an earlier job waits."""
        for node in entry.budget.chain:
            queue = self._waiting.get(node)
            if (queue and queue[0][0] < turn) or not self._fits(node, entry.job.min_cost or _ZERO):
                return node
        return None

    def _fits(self, node: BudgetNode, min_cost: Cost) -> bool:
        limits = node.limits
        if limits.usd is None and limits.tokens is None:
            return True
        taken = node.spent + node.reserved + self._queued_claims(node)
        taken += self._sums.get(node, _ZERO) + min_cost
        return not (
            (limits.usd is not None and min_cost.usd and taken.usd > limits.usd)
            or (limits.tokens is not None and min_cost.tokens and taken.tokens > limits.tokens)
        )

    def _drop(self, budget: BudgetNode) -> None:
        min_cost = self._earmarked.pop(budget)
        for node in budget.chain[:-1]:
            self._sums[node] -= min_cost

    def _money_moved(self, budget: BudgetNode) -> None:
        """Update earmarks and queues after a change at ``budget``: a job's first call ends its earmark."""
        if budget in self._earmarked and budget.reserved != _ZERO:
            self._drop(budget)
        if self._waiting and any(node in self._waiting for node in budget.chain):
            entries = [entry for node in budget.chain for entry in self._pop_ready(node)]
            if entries:
                self._on_ready(entries)

    def _pop_ready(self, node: BudgetNode) -> list[ScheduledJob]:
        """Take the jobs that ``node`` has money for from its queue, first come first served."""
        ready: list[ScheduledJob] = []
        queue = self._waiting.get(node, [])
        while queue:
            entry = queue[0][1]
            hopeless = bool(missing_funds(entry))
            if not hopeless and not self._fits(node, entry.job.min_cost or _ZERO):
                return ready
            heappop(queue)
            if hopeless:
                ready.append(entry)  # ``ReadyQueue.pop`` ends it with the reason
                self._turns.pop(entry, None)
            elif self.earmark(entry):
                ready.append(entry)
        self._waiting.pop(node, None)
        return ready


def missing_funds(entry: ScheduledJob) -> str:
    """Return a message if the job's budgets can never pay its minimum cost; "" if they can."""
    min_cost = entry.job.min_cost
    if min_cost is None:
        return ""
    for node in entry.budget.chain:
        spent, limits = node.spent, node.limits
        where = f"({format_path(node.path) if node.path else 'run'})"
        if limits.usd is not None and min_cost.usd > (left := limits.usd - spent.usd):
            needed, rest = (
                format_dollars(min_cost.usd, ROUND_UP),
                format_dollars(max(left, _ZERO.usd), ROUND_DOWN),
            )
            left_of = f"{rest} left of {format_dollars(limits.usd)} {where}"
            return f"needs at least {needed}, {left_of}{node.describe_unknown()}"
        if limits.tokens is not None and min_cost.tokens > (room := limits.tokens - spent.tokens):
            return f"needs at least {min_cost.tokens} tokens, {max(room, 0)} left of {limits.tokens} {where}"
    return ""
