"""How money is set aside for one call, and who gets it first when not all can have it.

A reservation is committed at a node and all its ancestors at once. Requests that must wait are served in
order: each keeps a claim on what it is waiting for, so that a later one cannot take that away, and later ones
that compete for nothing with it pass by.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import TYPE_CHECKING

import anyio

from codetaste.errors import BudgetExceeded
from codetaste.orchestration.money import Cost

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from codetaste.orchestration.budget import Budget
    from codetaste.orchestration.money import Prior

_ZERO = Cost()


class State(Enum):
    """What is known of a call."""

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

    def __init__(self, budget: Budget, granted: Cost, state: State, tree: Tree) -> None:
        self.granted = granted
        self.budget, self._state, self._tree = budget, state, tree

    @property
    def open(self) -> bool:
        """Whether nothing has been said of this call yet."""
        return self._state is State.HELD

    def settle(self, cost: Cost) -> None:
        """Charge what the call cost, even if that is more than was reserved."""
        if self._state is not State.SETTLED:
            self._move(State.SETTLED, cost.check())

    def unknown(self) -> None:
        """Keep the reservation charged: the call was sent and nobody knows what it cost."""
        if self._state is State.HELD:
            self._move(State.UNKNOWN, _ZERO)

    def release(self) -> None:
        """Give all of it back: the call was certainly never sent."""
        if self._state is State.HELD:
            self._move(State.RELEASED, _ZERO)

    def _move(self, state: State, cost: Cost) -> None:
        before, self._state = self._state, state
        for node in self.budget.chain:
            if before is State.HELD:
                node.reserved -= self.granted
            elif before is State.UNKNOWN:
                node.unknown -= self.granted
            if state is State.UNKNOWN:
                node.unknown += self.granted
            elif state is State.SETTLED:
                node.settled += cost
        self._tree.serve(self.budget)


class Request:
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

    def grant(self, tree: Tree) -> None:
        """Commit ``target`` at the node and all its ancestors."""
        for node in self.budget.chain:
            node.reserved += self.target
        self.reservation = Reservation(self.budget, self.target, State.HELD, tree)


class Tree:
    """What the nodes of one tree share: who waits for money, in the order in which they asked.

    ``watcher`` is told of each node whose money, limits or claims have changed; it must not ask for money.
    """

    __slots__ = ("_ahead", "_waiters", "prior", "watcher")

    def __init__(self, prior: Mapping[tuple[str, ...], Prior]) -> None:
        self.prior = prior
        self._waiters: dict[Request, None] = {}
        self._ahead: dict[Budget, Cost] = {}
        self.watcher: Callable[[Budget], None] = _nobody

    def claimed(self, node: Budget) -> Cost:
        """Return what those claim at ``node`` who wait for money."""
        return self._ahead.get(node, _ZERO)

    def ask(self, request: Request) -> None:
        """Answer at once or put the request last in the queue."""
        if not self._answer(request):
            self._waiters[request] = None
        self.watcher(request.budget)

    def ask_now(self, request: Request) -> None:
        """Answer at once or not at all: nothing is claimed for a request that would have to wait."""
        if request.aim() and request.fits(self._ahead):
            request.grant(self)
            self.watcher(request.budget)

    def withdraw(self, request: Request) -> None:
        """Forget a request whose asker went away, and what it may have been granted meanwhile."""
        if request.reservation is not None:
            request.reservation.release()
        elif request in self._waiters:
            del self._waiters[request]
            self.serve(request.budget)

    def serve(self, moved: Budget) -> None:
        """Answer whoever can be answered now that something has changed at ``moved``, in order.

        Those still waiting keep a claim on their target.
        """
        self._ahead = {}
        changed = [moved]
        for request in tuple(self._waiters):
            if self._answer(request):
                del self._waiters[request]
                request.answered.set()
                changed.append(request.budget)
            elif self._taken(request.budget.chain[0]):
                break  # nobody further back can pass: thousands of waiters cost no more than a few
        for budget in changed:
            self.watcher(budget)

    def _taken(self, root: Budget) -> bool:
        """Whether all dollars of the run are spent, in flight, or claimed by those who wait."""
        taken = root.settled + root.unknown + root.reserved + self._ahead.get(root, _ZERO)
        return root.limits.usd is not None and taken.usd >= root.limits.usd

    def _answer(self, request: Request) -> bool:
        if not request.aim():
            return True
        if request.fits(self._ahead):
            request.grant(self)
            return True
        for node in request.budget.chain:
            self._ahead[node] = self._ahead.get(node, _ZERO) + request.target
        return False


def _nobody(_: Budget) -> None:
    """Watch nothing."""


def _refusal(request: Request, node: Budget) -> str:
    least, limits = request.least, node.limits
    asked: list[str] = []
    left = node.settled + node.unknown
    if limits.usd is not None:
        room = max(limits.usd - left.usd, _ZERO.usd)
        asked.append(f"at least ${least.usd} asked, ${room} left of ${limits.usd}")
    if limits.tokens is not None:
        rest = max(limits.tokens - left.tokens, 0)
        asked.append(f"at least {least.tokens} tokens asked, {rest} left of {limits.tokens}")
    return f"budget of {spoken(node.path)}: " + "; ".join(asked)


def spoken(path: tuple[str, ...]) -> str:
    """Return a node's path as people read it."""
    return "/".join(path) or "the run"
