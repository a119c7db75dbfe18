"""Nested budgets: a tree run → flow → trial or instance → job, in which the tightest ancestor decides.

Money is reserved before a call and settled after it, at every ancestor at once. Whatever is in flight stays
charged, so that what a provider bills can never pass a limit unless a call costs more than was reserved for
it. Arithmetic and clocks only: the journal and the scheduler are elsewhere, and all of it runs on one event
loop without locks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from codetaste.errors import BudgetExceeded, ConfigError
from codetaste.orchestration.clock import Clock
from codetaste.orchestration.money import Cost, Limits, Prior, Snapshot
from codetaste.orchestration.reservation import Request, Reservation, State, Tree, spoken

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from contextlib import AbstractContextManager

    import anyio

__all__ = ["Budget", "Cost", "Limits", "Prior", "Reservation", "Snapshot"]

_ZERO = Cost()
_UNLIMITED = Limits()


class Budget:
    """A node of the tree. ``path`` names it from the root, whose own path is empty."""

    def __init__(self, name: str, limits: Limits, parent: Budget | None, tree: Tree) -> None:
        self.path: tuple[str, ...] = () if parent is None else (*parent.path, name)
        self.limits = limits
        self.chain: tuple[Budget, ...] = (self,) if parent is None else (*parent.chain, self)
        prior = tree.prior.get(self.path, Prior())
        self.settled, self.unknown, self.reserved = prior.settled, prior.unknown, _ZERO
        self.clock: Clock = Clock(
            parent.clock if parent else None, wall_s=prior.wall_s, working_s=prior.working_s
        )
        self.clock.limit(limits.wall_s, limits.working_s)
        self._children: dict[str, Budget] = {}
        self.tree = tree

    @classmethod
    def root(
        cls, limits: Limits = _UNLIMITED, *, prior: Mapping[tuple[str, ...], Prior] | None = None
    ) -> Budget:
        """Make the budget of a whole run; ``prior`` is what its earlier sessions charged, by path."""
        return cls("", limits, None, Tree(_with_ancestors(prior or {})))

    def child(self, name: str, limits: Limits = _UNLIMITED) -> Budget:
        """Return the node ``name`` beneath this one, made on first use.

        Raises:
            ConfigError: it exists already with other limits.
        """
        found = self._children.get(name)
        if found is None:
            found = self._children[name] = Budget(name, limits, self, self.tree)
        elif limits not in (_UNLIMITED, found.limits):
            if found.limits != _UNLIMITED:
                raise ConfigError(
                    f"budget {spoken(found.path)}: two different limits: {found.limits}, {limits}"
                )
            found.limits = limits
            found.clock.limit(limits.wall_s, limits.working_s)
        return found

    def set_limits(self, limits: Limits) -> None:
        """Put other limits in the place of this node's, at once and for all that is under way beneath it.

        Nothing that was spent is subtracted, and what is in flight stays granted: under a lower limit later
        reservations get less or are refused, under a higher one those that wait are served.

        Raises:
            ValueError: a limit is negative or not finite.
        """
        self.limits = limits.check()
        self.clock.limit(limits.wall_s, limits.working_s)
        self.tree.serve(self)

    def find(self, path: tuple[str, ...]) -> Budget:
        """Return the node at ``path`` counted from this one."""
        node = self
        for name in path:
            node = node.child(name)
        return node

    def walk(self) -> Iterator[Budget]:
        """Give this node and everything beneath it, parents first."""
        yield self
        for child in tuple(self._children.values()):
            yield from child.walk()

    async def reserve(
        self,
        wanted: Cost,
        least: Cost | None = None,
        *,
        while_waiting: Callable[[], AbstractContextManager[object]] | None = None,
    ) -> Reservation:
        """Commit ``wanted`` at this node and every ancestor, or as much of it as fits but at least ``least``.

        Less than ``wanted`` is granted only when nothing in flight could free more. While reservations in
        flight might, the call waits its turn: first come, first served among those that compete for the same
        money. Do not wait here while holding a reservation of the same tree that only you can give back.
        A wait happens inside ``while_waiting()``, by default ``self.waiting()``.

        Raises:
            BudgetExceeded: not even ``least`` can ever fit; names the tightest node.
        """
        request = Request(self, wanted.check(), wanted if least is None else least.check())
        if not request.least <= wanted:
            raise ValueError(f"least {least} is more than wanted {wanted}")
        self.tree.ask(request)
        if request.refused is None and request.reservation is None:
            try:
                with (while_waiting or self.waiting)():
                    await request.answered.wait()
            except BaseException:
                self.tree.withdraw(request)
                raise
        if request.reservation is None:
            raise request.refused or BudgetExceeded("refused")
        return request.reservation

    def reserve_now(self, wanted: Cost, least: Cost | None = None) -> Reservation | None:
        """Do as ``reserve`` does where that need not wait; None where it must.

        Raises:
            BudgetExceeded: not even ``least`` can ever fit; names the tightest node.
        """
        request = Request(self, wanted.check(), wanted if least is None else least.check())
        self.tree.ask_now(request)
        if request.refused is not None:
            raise request.refused
        return request.reservation

    def adopt(self, granted: Cost) -> Reservation:
        """Return a reservation of an earlier session, charged here as unknown already, to be settled now."""
        return Reservation(self, granted, State.UNKNOWN, self.tree)

    def deadline(self, *, grace_s: float = 0.0) -> AbstractContextManager[anyio.CancelScope]:
        """Give a cancel scope that ends ``grace_s`` after the tightest time limit here or above.

        The working clock stands still inside ``waiting()``. Time used by earlier sessions counts.
        """
        return self.clock.deadline(grace_s)

    def waiting(self) -> AbstractContextManager[None]:
        """Stop the working clock. Waits of one node that overlap count once."""
        return self.clock.waiting()

    def busy(self) -> AbstractContextManager[None]:
        """Let the working clock run on, although others at work for this node wait meanwhile."""
        return self.clock.busy()

    def exhausted(self) -> str:
        """Say which node of the chain has no money left at all; empty when there is some everywhere."""
        for node in self.chain:
            spent, limits = node.settled + node.unknown, node.limits
            if limits.usd is not None and spent.usd >= limits.usd:
                return f"budget of {spoken(node.path)}: ${spent.usd} of ${limits.usd} is used up"
            if limits.tokens is not None and spent.tokens >= limits.tokens:
                return f"budget of {spoken(node.path)}: {spent.tokens} of {limits.tokens} tokens are used up"
        return ""

    def snapshot(self) -> Snapshot:
        """Return what this node and everything beneath it has spent, and its clocks."""
        wall_s = self.clock.wall_s
        waited_s = max(0.0, wall_s - self.clock.working_s)
        return Snapshot(self.path, self.settled, self.unknown, self.reserved, self.limits, wall_s, waited_s)


def _with_ancestors(prior: Mapping[tuple[str, ...], Prior]) -> dict[tuple[str, ...], Prior]:
    """Add each node's own charges to all its ancestors; the clocks are every node's own."""
    settled: dict[tuple[str, ...], Cost] = {}
    unknown: dict[tuple[str, ...], Cost] = {}
    for path, own in prior.items():
        for depth in range(len(path) + 1):
            at = path[:depth]
            settled[at] = settled.get(at, _ZERO) + own.settled
            unknown[at] = unknown.get(at, _ZERO) + own.unknown
    clocks = {at: prior.get(at, Prior()) for at in settled}
    return {at: Prior(settled[at], unknown[at], clocks[at].wall_s, clocks[at].working_s) for at in settled}
