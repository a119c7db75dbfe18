"""Nested budgets: a tree run → flow → trial or instance → job, in which the tightest ancestor decides.

Money is reserved before a call and settled after it, at every ancestor at once. Whatever is in flight stays
charged, so that what a provider bills can never pass a limit unless a call costs more than was reserved for
it. Arithmetic and clocks only: the journal and the scheduler are elsewhere, and all of it runs on one event
loop without locks.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from enum import Enum, auto
from typing import TYPE_CHECKING

import anyio

from codetaste.errors import BudgetExceeded, ConfigError
from codetaste.orchestration.clock import Clock
from codetaste.orchestration.money import Cost, Limits, Prior, Snapshot

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

__all__ = ["Budget", "Cost", "Limits", "Prior", "Reservation", "Snapshot"]

_ZERO = Cost()
_UNLIMITED = Limits()


class Budget:
    """A node of the tree. ``path`` names it from the root, whose own path is empty."""

    def __init__(self, name: str, limits: Limits, parent: Budget | None, tree: _Tree) -> None:
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
        self._tree = tree

    @classmethod
    def root(
        cls, limits: Limits = _UNLIMITED, *, prior: Mapping[tuple[str, ...], Prior] | None = None
    ) -> Budget:
        """Make the budget of a whole run; ``prior`` is what its earlier sessions charged, by path."""
        return cls("", limits, None, _Tree(_with_ancestors(prior or {})))

    def child(self, name: str, limits: Limits = _UNLIMITED) -> Budget:
        """Return the node ``name`` beneath this one, made on first use.

        Raises:
            ConfigError: it exists already with other limits.
        """
        found = self._children.get(name)
        if found is None:
            found = self._children[name] = Budget(name, limits, self, self._tree)
        elif limits not in (_UNLIMITED, found.limits):
            if found.limits != _UNLIMITED:
                raise ConfigError(
                    f"budget {_spoken(found.path)}: two different limits: {found.limits}, {limits}"
                )
            found.limits = limits
            found.clock.limit(limits.wall_s, limits.working_s)
        return found

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
        request = _Request(self, wanted.check(), wanted if least is None else least.check())
        if not request.least <= wanted:
            raise ValueError(f"least {least} is more than wanted {wanted}")
        self._tree.ask(request)
        if request.refused is None and request.reservation is None:
            try:
                with (while_waiting or self.waiting)():
                    await request.answered.wait()
            except BaseException:
                self._tree.withdraw(request)
                raise
        if request.reservation is None:
            raise request.refused or BudgetExceeded("refused")
        return request.reservation

    def adopt(self, granted: Cost) -> Reservation:
        """Return a reservation of an earlier session, charged here as unknown already, to be settled now."""
        return Reservation(self, granted, _State.UNKNOWN, self._tree)

    def deadline(self, *, grace_s: float = 0.0) -> AbstractContextManager[anyio.CancelScope]:
        """Give a cancel scope that ends ``grace_s`` after the tightest time limit of this node or an ancestor.

        The working clock stands still inside ``waiting()``. Time used by earlier sessions counts.
        """
        return self.clock.deadline(grace_s)

    def waiting(self) -> AbstractContextManager[None]:
        """Stop the working clock. Waits of one node that overlap count once."""
        return self.clock.waiting()

    def exhausted(self) -> str:
        """Say which node of the chain has no money left at all; empty when there is some everywhere."""
        for node in self.chain:
            spent, limits = node.settled + node.unknown, node.limits
            if limits.usd is not None and spent.usd >= limits.usd:
                return f"budget of {_spoken(node.path)}: ${spent.usd} of ${limits.usd} is used up"
            if limits.tokens is not None and spent.tokens >= limits.tokens:
                return f"budget of {_spoken(node.path)}: {spent.tokens} of {limits.tokens} tokens are used up"
        return ""

    def snapshot(self) -> Snapshot:
        """Return what this node and everything beneath it has spent, and its clocks."""
        wall_s = self.clock.wall_s
        waited_s = max(0.0, wall_s - self.clock.working_s)
        return Snapshot(self.path, self.settled, self.unknown, self.reserved, self.limits, wall_s, waited_s)


class _State(Enum):
    HELD = auto()
    UNKNOWN = auto()
    RELEASED = auto()
    SETTLED = auto()


class Reservation:
    """Money set aside for one call. ``settle``, ``unknown`` or ``release`` it; the first of them counts.

    One thing may still follow: a call that was given up as unknown, or as never sent, and turns out to have
    been billed is settled later. What has been settled stays.
    """

    __slots__ = ("_state", "_tree", "budget", "granted")

    def __init__(self, budget: Budget, granted: Cost, state: _State, tree: _Tree) -> None:
        self.granted = granted
        self.budget, self._state, self._tree = budget, state, tree

    @property
    def open(self) -> bool:
        """Whether nothing has been said of this call yet."""
        return self._state is _State.HELD

    def settle(self, cost: Cost) -> None:
        """Charge what the call cost, even if that is more than was reserved."""
        if self._state is not _State.SETTLED:
            self._move(_State.SETTLED, cost.check())

    def unknown(self) -> None:
        """Keep the reservation charged: the call was sent and nobody knows what it cost."""
        if self._state is _State.HELD:
            self._move(_State.UNKNOWN, _ZERO)

    def release(self) -> None:
        """Give all of it back: the call was certainly never sent."""
        if self._state is _State.HELD:
            self._move(_State.RELEASED, _ZERO)

    def _move(self, state: _State, cost: Cost) -> None:
        before, self._state = self._state, state
        for node in self.budget.chain:
            if before is _State.HELD:
                node.reserved -= self.granted
            elif before is _State.UNKNOWN:
                node.unknown -= self.granted
            if state is _State.UNKNOWN:
                node.unknown += self.granted
            elif state is _State.SETTLED:
                node.settled += cost
        self._tree.serve()


class _Request:
    """Somebody asks for money; ``target`` is what the request would get if all in flight cost nothing."""

    __slots__ = ("answered", "budget", "least", "refused", "reservation", "target", "wanted")

    def __init__(self, budget: Budget, wanted: Cost, least: Cost) -> None:
        self.budget, self.wanted, self.least = budget, wanted, least
        self.answered = anyio.Event()
        self.target = wanted
        self.reservation: Reservation | None = None
        self.refused: BudgetExceeded | None = None

    def aim(self) -> bool:
        """Set ``target`` to what can ever fit; False, with ``refused`` set, when that is less than least."""
        usd, tokens = self.wanted.usd, self.wanted.tokens
        tightest = {"usd": self.budget, "tokens": self.budget}
        for node in self.budget.chain:
            spent, limits = node.settled + node.unknown, node.limits
            if limits.usd is not None and usd > 0 and limits.usd - spent.usd < usd:
                usd, tightest["usd"] = limits.usd - spent.usd, node
            if limits.tokens is not None and tokens > 0 and limits.tokens - spent.tokens < tokens:
                tokens, tightest["tokens"] = limits.tokens - spent.tokens, node
        self.target = Cost(usd, tokens)
        if self.least <= self.target and usd >= 0 and tokens >= 0:
            return True
        node = tightest["usd" if usd < self.least.usd or usd < 0 else "tokens"]
        self.refused = BudgetExceeded(_refusal(self, node))
        return False

    def fits(self, ahead: Mapping[Budget, Cost]) -> bool:
        """Whether ``target`` fits now beside all in flight and those who asked before (``ahead``)."""
        for node in self.budget.chain:
            limits, target = node.limits, self.target
            taken = node.settled + node.unknown + node.reserved + ahead.get(node, _ZERO) + target
            if limits.usd is not None and target.usd and taken.usd > limits.usd:
                return False
            if limits.tokens is not None and target.tokens and taken.tokens > limits.tokens:
                return False
        return True

    def grant(self, tree: _Tree) -> None:
        """Commit ``target`` at the node and all its ancestors."""
        for node in self.budget.chain:
            node.reserved += self.target
        self.reservation = Reservation(self.budget, self.target, _State.HELD, tree)


class _Tree:
    """What the nodes of one tree share: who waits for money, in the order in which they asked."""

    __slots__ = ("_ahead", "_waiters", "prior")

    def __init__(self, prior: Mapping[tuple[str, ...], Prior]) -> None:
        self.prior = prior
        self._waiters: dict[_Request, None] = {}
        self._ahead: dict[Budget, Cost] = {}

    def ask(self, request: _Request) -> None:
        """Answer at once or put the request last in the queue."""
        if not self._answer(request):
            self._waiters[request] = None

    def withdraw(self, request: _Request) -> None:
        """Forget a request whose asker went away, and what it may have been granted meanwhile."""
        if request.reservation is not None:
            request.reservation.release()
        elif request in self._waiters:
            del self._waiters[request]
            self.serve()

    def serve(self) -> None:
        """Answer whoever can be answered now, in order. Those still waiting keep a claim on their target."""
        self._ahead = {}
        for request in tuple(self._waiters):
            if self._answer(request):
                del self._waiters[request]
                request.answered.set()

    def _answer(self, request: _Request) -> bool:
        if not request.aim():
            return True
        if request.fits(self._ahead):
            request.grant(self)
            return True
        for node in request.budget.chain:
            self._ahead[node] = self._ahead.get(node, _ZERO) + request.target
        return False


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


def _refusal(request: _Request, node: Budget) -> str:
    least, limits = request.least, node.limits
    asked: list[str] = []
    left = node.settled + node.unknown
    if limits.usd is not None:
        asked.append(f"at least ${least.usd} asked, ${limits.usd - left.usd} left of ${limits.usd}")
    if limits.tokens is not None:
        asked.append(
            f"at least {least.tokens} tokens asked, {limits.tokens - left.tokens} left of {limits.tokens}"
        )
    return f"budget of {_spoken(node.path)}: " + "; ".join(asked)


def _spoken(path: tuple[str, ...]) -> str:
    return " › ".join(path) or "the run"
