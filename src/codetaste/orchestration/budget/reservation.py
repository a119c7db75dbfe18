"""Reservations of money for single calls, and the queue of requests that wait for money.

A reservation is committed at a node and all its ancestors at once. Requests that must wait are granted in
order: each claims what it waits for, so that a later request cannot take it, and later requests that do not
compete with it may pass.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio

from codetaste.errors import BudgetExceeded
from codetaste.orchestration.budget.cost import Cost
from codetaste.orchestration.budget.node import BudgetNode, CallState, format_path

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from codetaste.orchestration.budget.cost import PriorCharges

_ZERO = Cost()


class Reservation:
    """Money reserved for one call. ``settle``, ``mark_unknown`` or ``release`` it; the first of them counts.

    One thing may still follow: an unknown or released call that turns out to have been billed can be settled
    later. A settlement is final.
    """

    __slots__ = ("_risk", "_state", "_tree", "budget", "granted")

    def __init__(
        self,
        budget: BudgetNode,
        granted: Cost,
        state: CallState,
        tree: ReservationQueue,
        risk: Cost = _ZERO,
    ) -> None:
        self.granted, self._risk = granted, risk
        self.budget, self._state, self._tree = budget, state, tree

    @property
    def open(self) -> bool:
        """Whether the reservation is neither settled, unknown nor released."""
        return self._state is CallState.IN_FLIGHT

    def settle(self, cost: Cost) -> None:
        """Charge the cost of the call, even if that is more than was reserved."""
        if self._state is not CallState.SETTLED:
            self._move(CallState.SETTLED, cost.check())

    @property
    def worst(self) -> Cost:
        """What the call costs at most if nothing holds that is known of its provider, or all that is left."""
        usd, tokens = self._risk.usd, self._risk.tokens
        for node in self.budget.chain:
            taken, limits = node.spent + node.reserved, node.limits
            usd = usd if limits.usd is None else min(usd, max(limits.usd - taken.usd, _ZERO.usd))
            tokens = tokens if limits.tokens is None else min(tokens, max(limits.tokens - taken.tokens, 0))
        return self.granted + Cost(usd, tokens)

    def mark_unknown(self, most: Cost | None = None) -> None:
        """Keep the reservation charged, or ``most`` instead: the cost is unknown."""
        if self._state is CallState.IN_FLIGHT:
            if most is not None:
                for node in self.budget.chain:
                    node.reserved += most - self.granted
                self.granted = most
            self._move(CallState.UNKNOWN, _ZERO)

    def release(self) -> None:
        """Free all of it: the call was certainly never sent."""
        if self._state is CallState.IN_FLIGHT:
            self._move(CallState.RELEASED, _ZERO)

    def _move(self, state: CallState, cost: Cost) -> None:
        before, self._state = self._state, state
        for node in self.budget.chain:
            node.move(self.granted, before, state, cost)
            if before is CallState.IN_FLIGHT and self._risk != _ZERO:
                node.risk -= self._risk
                node.calls_at_risk -= 1
        self._tree.grant_waiting(self.budget)


class ReservationRequest:
    """A request for money; ``target`` is what it would get if everything in flight cost nothing."""

    __slots__ = ("answered", "budget", "least", "refusal", "reservation", "risk", "target", "wanted")

    def __init__(self, budget: BudgetNode, wanted: Cost, least: Cost, risk: Cost = _ZERO) -> None:
        self.budget, self.wanted, self.least, self.risk = budget, wanted, least, risk
        self.answered = anyio.Event()
        self.target = wanted
        self.reservation: Reservation | None = None
        self.refusal: BudgetExceeded | None = None

    def resolve_target(self) -> bool:
        """Set ``target`` to the most that can ever fit; below ``least``: set ``refusal``, return False."""
        usd, tokens = self.wanted.usd, self.wanted.tokens
        tightest = {"usd": self.budget, "tokens": self.budget}
        for node in self.budget.chain:
            spent, limits = node.spent, node.limits
            if limits.usd is not None and usd > 0 and limits.usd - spent.usd < usd:
                usd, tightest["usd"] = limits.usd - spent.usd, node
            if limits.tokens is not None and tokens > 0 and limits.tokens - spent.tokens < tokens:
                tokens, tightest["tokens"] = limits.tokens - spent.tokens, node
        self.target = Cost(usd, tokens)
        if self.least <= self.target and usd >= 0 and tokens >= 0:
            return True
        node = tightest["usd" if usd < self.least.usd or usd < 0 else "tokens"]
        self.refusal = BudgetExceeded(_refusal(self, node))
        return False

    def fits(self, ahead: Mapping[BudgetNode, Cost]) -> bool:
        """Whether ``target`` fits now, beside money in flight and earlier requests' claims (``ahead``).

        If several calls in flight are at risk, this one included, so must the sum of their risks.
        """
        for node in self.budget.chain:
            limits, target = node.limits, self.target
            taken = node.spent + node.reserved + ahead.get(node, _ZERO) + target
            if node.calls_at_risk + (self.risk != _ZERO) > 1:
                taken += node.risk + self.risk
            if limits.usd is not None and target.usd and taken.usd > limits.usd:
                return False
            if limits.tokens is not None and target.tokens and taken.tokens > limits.tokens:
                return False
        return True

    def grant(self, tree: ReservationQueue) -> None:
        """Commit ``target`` at the node and all its ancestors."""
        for node in self.budget.chain:
            node.reserved += self.target
            if self.risk != _ZERO:
                node.risk += self.risk
                node.calls_at_risk += 1
        self.reservation = Reservation(self.budget, self.target, CallState.IN_FLIGHT, tree, self.risk)


class ReservationQueue:
    """State shared by the nodes of one budget tree: the requests that wait for money, in order.

    ``on_change`` is called with each node whose money, limits or claims have changed; it must not request
    money.
    """

    __slots__ = ("_ahead", "_waiters", "on_change", "prior")

    def __init__(self, prior: Mapping[tuple[str, ...], PriorCharges]) -> None:
        self.prior = prior
        self._waiters: dict[ReservationRequest, None] = {}
        self._ahead: dict[BudgetNode, Cost] = {}
        self.on_change: Callable[[BudgetNode], None] = lambda _: None

    def queued_claims(self, node: BudgetNode) -> Cost:
        """Return the sum of the claims of waiting requests at ``node``."""
        return self._ahead.get(node, _ZERO)

    def submit(self, request: ReservationRequest) -> None:
        """Answer the request now, or append it to the queue."""
        if not self._answer(request):
            self._waiters[request] = None
        self.on_change(request.budget)

    def try_grant(self, request: ReservationRequest) -> None:
        """Grant the request only if it need not wait; otherwise it claims nothing."""
        if request.resolve_target() and request.fits(self._ahead):
            request.grant(self)
            self.on_change(request.budget)

    def withdraw(self, request: ReservationRequest) -> None:
        """Drop a request whose caller went away, and release what it may have been granted meanwhile."""
        if request.reservation is not None:
            request.reservation.release()
        elif request in self._waiters:
            del self._waiters[request]
            self.grant_waiting(request.budget)

    def grant_waiting(self, moved: BudgetNode) -> None:
        """Answer waiting requests, in order, after a change at ``moved``; the others keep their claims."""
        self._ahead = {}
        changed = [moved]
        for request in tuple(self._waiters):
            if self._answer(request):
                del self._waiters[request]
                request.answered.set()
                changed.append(request.budget)
            elif self._taken(request.budget.chain[0]):
                break  # no later request can pass: thousands of waiting requests cost no more than a few
        for budget in changed:
            self.on_change(budget)

    def _taken(self, root: BudgetNode) -> bool:
        """Whether all dollars of the run are spent, in flight, or claimed by waiting requests."""
        taken = root.spent + root.reserved + self._ahead.get(root, _ZERO)
        return root.limits.usd is not None and taken.usd >= root.limits.usd

    def _answer(self, request: ReservationRequest) -> bool:
        if not request.resolve_target():
            return True
        if request.fits(self._ahead):
            request.grant(self)
            return True
        for node in request.budget.chain:
            self._ahead[node] = self._ahead.get(node, _ZERO) + request.target
        return False


def _refusal(request: ReservationRequest, node: BudgetNode) -> str:
    least, limits = request.least, node.limits
    parts: list[str] = []
    spent = node.spent
    if limits.usd is not None:
        left_usd = max(limits.usd - spent.usd, _ZERO.usd)
        parts.append(f"at least ${least.usd} requested, ${left_usd} left of ${limits.usd}")
        parts[-1] += node.describe_unknown()
    if limits.tokens is not None:
        left_tokens = max(limits.tokens - spent.tokens, 0)
        parts.append(f"at least {least.tokens} tokens requested, {left_tokens} left of {limits.tokens}")
    return f"budget of {format_path(node.path)}: " + "; ".join(parts)
