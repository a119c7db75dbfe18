"""``GatewaySession``: one job's admission to the gateway, with its token, models, usage and transcript."""

from __future__ import annotations

import hmac
import secrets
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from typing import TYPE_CHECKING

import anyio

from codetaste.errors import BudgetExceeded, Cause
from codetaste.gateway.transcript import Transcript
from codetaste.llm.messages import StopReason, Usage
from codetaste.llm.wire.common.error_codes import ErrorKind

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Sequence
    from decimal import Decimal
    from pathlib import Path

    from anyio.abc import TaskGroup

    from codetaste.errors import CodetasteError
    from codetaste.gateway.prompt.bound import SessionTokenCounts
    from codetaste.gateway.upstream import GatewayModel
    from codetaste.llm.messages import Reply
    from codetaste.llm.wire.common.allow_list import Findings
    from codetaste.llm.wire.protocols import ProtocolName
    from codetaste.orchestration.budget.budget import Budget
    from codetaste.orchestration.budget.cost import BudgetSnapshot, Cost
    from codetaste.orchestration.job import JobContext


MAX_CONCURRENT_REQUESTS = 32
"""Requests of one job that are processed at the same time."""

_MAX_WAITING = 256
"""Requests of one job that may wait for one of these places."""

_MAX_BODY_BYTES = 128 * 1024 * 1024
"""Limit on the bodies of one job's open requests together."""


class GatewaySession:
    """One job's session at the gateway. ``finish`` ends it; later requests are rejected.

    Args:
        ctx: the job's context; its budget pays for the requests.
        models: the models that the job may use; the first one answers requests for unknown models.
        others: the ids of models that the job may not use.
        protocol: the protocol of the job's CLI agent.
        transcript: the file to which requests and replies are written.
        name_call: returns a name for each call that is unique within the job.
    """

    def __init__(
        self,
        ctx: JobContext,
        models: Sequence[GatewayModel],
        others: frozenset[str],
        *,
        protocol: ProtocolName,
        transcript: Path,
        name_call: Callable[[], str],
    ) -> None:
        self.ctx, self.protocol, self.name_call = ctx, protocol, name_call
        self.side_calls = True
        """Whether requests without tools are side calls; otherwise each request is a turn."""
        self.token = f"ct-{secrets.token_urlsafe(32)}"
        self.usage = SessionUsage(ctx.budget)
        self.transcript = Transcript(transcript, ctx)
        self.failure: Exception | None = None
        self.closed = False
        self._models, self._others = tuple(models), others
        self._counts: dict[str, SessionTokenCounts] = {
            model.id: model.token_counts.for_session() for model in models
        }
        self._permits = anyio.Semaphore(MAX_CONCURRENT_REQUESTS, fast_acquire=True)
        self._waiting = self._body_bytes = 0
        self._tracked: dict[anyio.CancelScope, Callable[[], bool]] = {}
        self._idle = anyio.Event()
        self._tasks: TaskGroup

    def model_for(self, name: str) -> GatewayModel | None:
        """Return the model for the name in a request, None if the job may not use that model."""
        for model in self._models:
            if name in {model.id, model.name}:
                return model
        return None if name in self._others else self._models[0]

    def token_counts_for(self, model: GatewayModel) -> SessionTokenCounts:
        """Return this session's token counts for ``model``."""
        return self._counts[model.id]

    def rejection(self) -> tuple[ErrorKind, str] | None:
        """Return why further requests are rejected; None while they are accepted."""
        if self.closed:
            return ErrorKind.BAD_TOKEN, "the job of this token has ended"
        if self.failure is not None:
            return ErrorKind.BUDGET, f"journal write failed: {self.failure}"
        if self.usage.budget_refusal:
            return ErrorKind.BUDGET, self.usage.budget_refusal
        return None

    def unknown_cost_problem(self, findings: Findings, *, is_agent_turn: bool) -> str:
        """Return what a budget in money or tokens refuses of a request, "" if there is nothing; record it."""
        limits = [node.limits for node in self.ctx.budget.chain]
        if not findings.refusals or all(each.usd is None and each.tokens is None for each in limits):
            return ""
        problem = findings.describe()
        if not self.usage.refused_request:
            self.ctx.note(f"a request of the agent was refused: {problem}")
        self.usage.refused_request = self.usage.refused_request or problem
        self.usage.end_request(BudgetExceeded(problem), is_agent_turn=is_agent_turn)
        return problem

    @property
    def overloaded(self) -> bool:
        """Whether the maximum number of requests is waiting."""
        return self._waiting >= _MAX_WAITING

    def open(self, tasks: TaskGroup) -> None:
        """Start writing the transcript in ``tasks``; exchanges run there too."""

        async def write() -> None:
            with anyio.CancelScope(shield=True):
                try:
                    await self.transcript.run()
                except Exception as error:  # noqa: BLE001 - raised by Gateway.admit
                    self.fail(error)

        self._tasks = tasks
        tasks.start_soon(write)

    def start(self, run: Callable[[], Awaitable[None]], body_bytes: int) -> None:
        """Run an exchange that has a permit and ``body_bytes`` reserved bytes, and release both."""

        async def run_and_release() -> None:
            try:
                await run()
            finally:
                self.release(body_bytes)

        self._tasks.start_soon(run_and_release)

    async def acquire(self) -> None:
        """Wait for a permit to process a request; ``release`` returns it."""
        self._waiting += 1
        try:
            await self._permits.acquire()
        finally:
            self._waiting -= 1

    def release(self, body_bytes: int) -> None:
        """Return a permit, and ``body_bytes`` reserved bytes."""
        self._body_bytes -= body_bytes
        self._permits.release()

    def reserve_bytes(self, more: int) -> bool:
        """Reserve ``more`` bytes for a body; False if the job's requests would exceed their limit."""
        if self._body_bytes + more > _MAX_BODY_BYTES:
            return False
        self._body_bytes += more
        return True

    def fail(self, error: Exception) -> None:
        """Record that the job cannot continue; ``Gateway.admit`` raises the error."""
        self.failure = self.failure or error
        self.usage.stopped.set()

    @contextmanager
    def track(self, in_flight: Callable[[], bool]) -> Iterator[anyio.CancelScope]:
        """Yield the cancel scope of one exchange; it is shielded, and only ``finish`` cancels it.

        ``in_flight`` returns whether the provider may be processing the request; then ``finish`` waits.
        """
        with anyio.CancelScope(shield=True) as scope:
            self._tracked[scope] = in_flight
            try:
                yield scope
            finally:
                del self._tracked[scope]
                if not self._tracked:
                    self._idle.set()

    async def finish(self) -> None:
        """Reject further requests, cancel those not yet sent, and wait for those in flight.

        Requests still in flight when this is cancelled are abandoned, and stay charged.
        """
        self.closed = True
        for scope, in_flight in tuple(self._tracked.items()):
            if not in_flight():
                scope.cancel()
        try:
            while self._tracked:
                self._idle = anyio.Event()
                await self._idle.wait()
        finally:
            for scope in self._tracked:
                scope.cancel()


@dataclass(slots=True)
class SessionUsage:
    """Usage counters of one session; the cost is all that its job has spent during the session.

    Attributes:
        budget: the job's budget node.
        requests: requests that reached a model or were refused by the budget.
        replies: answered requests.
        turns: answered requests with tools, which are the agent's turns.
        tool_calls: tool calls in the replies of these turns.
        tokens: sum over all replies whose usage is known.
        budget_refusal: why the budget refused a request, "" if it did not; all later ones are refused too.
        refusals: requests that the model, or a policy or filter of its provider, refused.
        last_failure: why the agent's last request failed for good; None if it was answered. Side calls count
            only before its first turn.
        provider_given_up: whether ``last_failure`` is that of every further request.
        refused_request: what a budget refused of the first request that was not allowed.
        stopped: set when every further request would be refused, or the journal cannot be written.
    """

    budget: Budget
    requests: int = 0
    replies: int = 0
    turns: int = 0
    tool_calls: int = 0
    tokens: Usage = field(default_factory=Usage)
    budget_refusal: str = ""
    refusals: int = 0
    last_failure: CodetasteError | None = None
    provider_given_up: bool = False
    refused_request: str = ""
    stopped: anyio.Event = field(default_factory=anyio.Event)
    _has_turns: bool = False
    _at_start: BudgetSnapshot = field(init=False)

    def __post_init__(self) -> None:
        """Record what the job had spent before."""
        self._at_start = self.budget.snapshot()

    @property
    def settled_usd(self) -> Decimal:
        """Cost known to have been billed, in US dollars."""
        return self.budget.settled.usd - self._at_start.settled.usd

    @property
    def unknown(self) -> Cost:
        """Upper bound of the cost that may have been billed besides."""
        return self.budget.unknown - self._at_start.unknown

    def count_reply(self, reply: Reply, *, is_agent_turn: bool) -> None:
        """Count a reply; ``is_agent_turn``: it is no side call."""
        self.end_request(None, is_agent_turn=is_agent_turn)
        self.replies += 1
        self.refusals += reply.stop is StopReason.REFUSAL
        if is_agent_turn:
            self.turns += 1
            self.tool_calls += len(reply.message.tool_calls)
        if reply.usage is not None:
            self.tokens += reply.usage

    def end_request(self, failure: CodetasteError | None, *, is_agent_turn: bool) -> None:
        """Record that a request failed for good, or was answered."""
        self._has_turns = self._has_turns or is_agent_turn
        if not self.provider_given_up and (is_agent_turn or not self._has_turns):
            self.last_failure = failure
        self.refusals += failure is not None and failure.cause is Cause.REFUSED

    def give_up(self, failure: CodetasteError) -> None:
        """Record that the model's provider is given up for this job, and set ``stopped``."""
        self.last_failure, self.provider_given_up = failure, True
        self.stopped.set()

    def record_refusal(self, why: str) -> None:
        """Record that the budget refused a request, and set ``stopped``."""
        self.budget_refusal = self.budget_refusal or why
        self.stopped.set()


class SessionTokens:
    """The tokens that the gateway accepts, with the session that each one opens."""

    def __init__(self) -> None:
        self._sessions: dict[bytes, GatewaySession] = {}

    def add(self, session: GatewaySession) -> None:
        """Accept the session's token."""
        self._sessions[_digest(session.token)] = session

    def remove(self, session: GatewaySession) -> None:
        """Reject the session's token from now on."""
        self._sessions.pop(_digest(session.token), None)

    def check(self, token: str) -> GatewaySession | None:
        """Return the session that ``token`` opens, or None if it is no valid token."""
        session = self._sessions.get(_digest(token))
        valid = session is not None and hmac.compare_digest(session.token.encode(), token.encode())
        return session if valid else None


def _digest(token: str) -> bytes:
    """Return the lookup key of a token: a hash, so that the time of the lookup does not leak the token."""
    return sha256(token.encode()).digest()
