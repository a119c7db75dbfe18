"""Nested budgets: a tree run → flow → trial or instance → job, in which the tightest ancestor decides.

Money is reserved before a call and settled after it, at every ancestor at once. Money in flight stays
charged, so a provider's bill can pass a limit only if a call costs more than was reserved for it. This module
holds arithmetic and clocks only, without journal or scheduler, and runs on one event loop without locks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from codetaste.errors import BudgetExceeded, ConfigError
from codetaste.orchestration.budget.clock import Clock
from codetaste.orchestration.budget.cost import BudgetLimits, BudgetPath, Cost, NamedLimits, PriorCharges
from codetaste.orchestration.budget.node import BudgetNode, CallState, format_path
from codetaste.orchestration.budget.reservation import Reservation, ReservationQueue, ReservationRequest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from contextlib import AbstractContextManager

    import anyio

_ZERO = Cost()
_UNLIMITED = BudgetLimits()


class Budget(BudgetNode):
    """A node of the tree. ``path`` names it from the root, whose own path is empty."""

    chain: tuple[Budget, ...]

    def __init__(
        self, name: str, limits: BudgetLimits, parent: Budget | None, tree: ReservationQueue
    ) -> None:
        path = () if parent is None else (*parent.path, name)
        prior = tree.prior.get(path, PriorCharges())
        clock = Clock(parent.clock if parent else None, wall_s=prior.wall_s, working_s=prior.working_s)
        clock.set_limits(limits.wall_s, limits.working_s)
        super().__init__(path, limits, clock, prior)
        self.chain = (self,) if parent is None else (*parent.chain, self)
        self._children: dict[str, Budget] = {}
        self.queue = tree

    @classmethod
    def root(
        cls, limits: BudgetLimits = _UNLIMITED, *, prior: Mapping[tuple[str, ...], PriorCharges] | None = None
    ) -> Budget:
        """Create the budget of a whole run; ``prior`` holds the charges of its earlier sessions, by path."""
        return cls("", limits, None, ReservationQueue(_with_ancestors(prior or {})))

    def child(self, name: str, limits: BudgetLimits = _UNLIMITED) -> Budget:
        """Return the child node ``name``, created on first use.

        Raises:
            ConfigError: the node already has other limits.
        """
        node = self._children.get(name)
        if node is None:
            node = self._children[name] = Budget(name, limits, self, self.queue)
        elif limits not in (_UNLIMITED, node.limits):
            if node.limits != _UNLIMITED:
                raise ConfigError(
                    f"budget {format_path(node.path)}: two different limits: {node.limits}, {limits}"
                )
            node.limits = limits
            node.clock.set_limits(limits.wall_s, limits.working_s)
        return node

    def set_limits(self, limits: BudgetLimits) -> None:
        """Replace this node's limits at once, also for work under way beneath it.

        Charges stay, and money in flight stays granted: under a lower limit later reservations get less or
        are refused, under a higher one waiting reservations are granted.

        Raises:
            ValueError: a limit is negative or not finite.
        """
        self.limits = limits.check()
        self.clock.set_limits(limits.wall_s, limits.working_s)
        self.queue.grant_waiting(self)

    def find(self, path: tuple[str, ...]) -> Budget:
        """Return the node at ``path``, relative to this one."""
        return self.open(tuple(map(NamedLimits, path)))

    def open(self, path: BudgetPath) -> Budget:
        """Return the node at ``path``, relative to this one; nodes are created with their limits.

        Raises:
            ConfigError: a node already has other limits.
        """
        node = self
        for each in path:
            node = node.child(each.name, each.limits)
        return node

    def walk(self) -> Iterator[Budget]:
        """Yield this node and everything beneath it, parents first."""
        yield self
        for child in tuple(self._children.values()):
            yield from child.walk()

    async def reserve(
        self,
        wanted: Cost,
        least: Cost | None = None,
        *,
        risk: Cost = _ZERO,
        while_waiting: Callable[[], AbstractContextManager[object]] | None = None,
    ) -> Reservation:
        """Reserve ``wanted`` at this node and every ancestor, or as much as fits but at least ``least``.

        Less than ``wanted`` is granted only when no reservation in flight could free more. While one might,
        the request waits: first come, first served among requests that compete for the same money. Do not
        wait here while holding a reservation of the same tree that only the caller can release: that is a
        deadlock. The wait happens inside ``while_waiting()``, by default ``self.waiting()``.

        ``risk`` is what the call may cost beyond ``wanted`` if what is known of its provider does not hold.
        One call may take it without cover; beside others, the risks of all must fit into what is left.

        Raises:
            BudgetExceeded: not even ``least`` can ever fit; names the tightest node.
        """
        request = ReservationRequest(self, wanted.check(), wanted if least is None else least.check(), risk)
        if not request.least <= wanted:
            raise ValueError(f"least {least} is more than wanted {wanted}")
        self.queue.submit(request)
        if request.refusal is None and request.reservation is None:
            try:
                with (while_waiting or self.waiting)():
                    await request.answered.wait()
            except BaseException:
                self.queue.withdraw(request)
                raise
        if request.reservation is None:
            raise request.refusal or BudgetExceeded("refused")
        return request.reservation

    def try_reserve(
        self, wanted: Cost, least: Cost | None = None, *, risk: Cost = _ZERO
    ) -> Reservation | None:
        """Reserve like ``reserve`` if that needs no waiting; return None otherwise.

        Raises:
            BudgetExceeded: not even ``least`` can ever fit; names the tightest node.
        """
        request = ReservationRequest(self, wanted.check(), wanted if least is None else least.check(), risk)
        self.queue.try_grant(request)
        if request.refusal is not None:
            raise request.refusal
        return request.reservation

    def adopt(self, granted: Cost) -> Reservation:
        """Return a reservation of an earlier session, which is charged here as unknown, to settle it now."""
        return Reservation(self, granted, CallState.UNKNOWN, self.queue)

    def deadline(self, *, grace_s: float = 0.0) -> AbstractContextManager[anyio.CancelScope]:
        """Open a cancel scope that ends ``grace_s`` after the tightest time limit here or of an ancestor.

        The working clock stops inside ``waiting()``. Time used by earlier sessions counts.
        """
        return self.clock.deadline(grace_s)

    def waiting(self) -> AbstractContextManager[None]:
        """Stop the working clock. Overlapping waits of one node count once."""
        return self.clock.waiting()

    def busy(self) -> AbstractContextManager[None]:
        """Keep the working clock running although other work of this node waits."""
        return self.clock.busy()

    def describe_exhausted(self) -> str:
        """Return a message about the first node of the chain without money or tokens left; "" if none."""
        for node in self.chain:
            spent, limits = node.spent, node.limits
            if limits.usd is not None and spent.usd >= limits.usd:
                used = f"${spent.usd} of ${limits.usd} is used up{node.describe_unknown()}"
                return f"budget of {format_path(node.path)}: {used}"
            if limits.tokens is not None and spent.tokens >= limits.tokens:
                path = format_path(node.path)
                return f"budget of {path}: {spent.tokens} of {limits.tokens} tokens are used up"
        return ""


def _with_ancestors(prior: Mapping[tuple[str, ...], PriorCharges]) -> dict[tuple[str, ...], PriorCharges]:
    """Add each node's charges to all its ancestors; clocks are not added up."""
    settled: dict[tuple[str, ...], Cost] = {}
    unknown: dict[tuple[str, ...], Cost] = {}
    for path, own in prior.items():
        for depth in range(len(path) + 1):
            at = path[:depth]
            settled[at] = settled.get(at, _ZERO) + own.settled
            unknown[at] = unknown.get(at, _ZERO) + own.unknown
    clocks = {at: prior.get(at, PriorCharges()) for at in settled}
    return {
        at: PriorCharges(settled[at], unknown[at], clocks[at].wall_s, clocks[at].working_s) for at in settled
    }
