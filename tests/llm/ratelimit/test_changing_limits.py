"""Limits that change while hundreds of calls run: the provider's limits and our own."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import anyio
import pytest

from codetaste.errors import ModelError
from codetaste.llm.messages import Reply, Request
from codetaste.llm.metering.metered import MeteredModel
from codetaste.llm.model import Model
from codetaste.llm.ratelimit.adaptive import STEP_S
from codetaste.orchestration.budget.cost import BudgetLimits
from codetaste.orchestration.job import JobContext
from codetaste.orchestration.journal.journal import Json
from codetaste.orchestration.session import open_session
from support.llm import bill_run
from support.llm.bill_audit import Audit, audit_run
from support.llm.provider import faults
from support.llm.provider import server as provider
from support.llm.provider.server import PROTOCOLS_OTHERS_HEAVY, Exchange, Gate
from support.orchestration.closure_jobs import closure_job

BUDGET = Decimal(50)
ANSWER_S = 0.02
ANY_SPEED: dict[str, Any] = {
    "step_s": STEP_S,
    "retries": {cause: replace(rule, tries=1000) for cause, rule in bill_run.QUICK.items()},
}
"""For slow machines: refusals arrive within a step, and no call fails after a number of refusals."""


@dataclass
class RecordingModel:
    """A model that records when requests are sent, and when and for how long the provider asks to pause.

    Both are recorded at the client, as no request may be sent after the client has received a pause.
    """

    model: Model
    limit: Callable[[], int] = lambda: 10_000
    in_flight: int = 0
    sent_s: list[float] = field(default_factory=list)
    pauses: list[tuple[float, float]] = field(default_factory=list)
    together: list[tuple[int, int]] = field(default_factory=list)
    """For each sent request the number in flight after it, and the limit at that moment."""
    answered: int = 0
    on_answer: Callable[[int], None] = lambda _: None

    @property
    def id(self) -> str:
        return self.model.id

    @property
    def has_ledger(self) -> bool:
        return self.model.has_ledger

    async def complete(self, request: Request, *, call: str) -> Reply:
        self.sent_s.append(time.monotonic())
        self.in_flight += 1
        self.together.append((self.in_flight, self.limit()))
        try:
            reply = await self.model.complete(request, call=call)
        except ModelError as error:
            if (wait_s := getattr(error, "retry_after_s", None)) is not None:
                now_s = time.monotonic()
                self.pauses.append((now_s, now_s + wait_s))
            raise
        finally:
            self.in_flight -= 1
        self.answered += 1
        self.on_answer(self.answered)
        return reply

    async def lookup(self, call: str) -> Reply | None:
        return await self.model.lookup(call)

    async def aclose(self) -> None:
        await self.model.aclose()

    @property
    def early(self) -> int:
        """The number of requests sent in a pause that the provider had requested before."""
        return sum(any(begin < sent < end for begin, end in self.pauses) for sent in self.sent_s)


def record_calls(metered: MeteredModel) -> RecordingModel:
    metered.model = recording = RecordingModel(metered.model, lambda: metered.limiter.maximum)
    return recording


@pytest.fixture
def server() -> Iterator[provider.Server]:
    rng = Random(1)

    async def answer(exchange: Exchange) -> None:
        await anyio.sleep(ANSWER_S * rng.uniform(0.5, 1.5))
        await faults.good(exchange, rng)

    with provider.serving() as running:
        running.default, running.strict = answer, True
        yield running


async def run_conversations(
    server: provider.Server, model: MeteredModel, folder: Path, *, jobs: int, turns: int
) -> Audit:
    """Run ``jobs`` conversations at once; assert that every call is finally answered and settled."""

    async def work(ctx: JobContext) -> Json:
        return await bill_run.run_conversation(model, ctx, turns)

    async with open_session(folder / "run", BudgetLimits(usd=BUDGET), retries={}) as session:
        with anyio.fail_after(200):
            outcomes = await session.run(
                closure_job(session, f"job-{number}", work, session.budget, "f") for number in range(jobs)
            )
    await model.aclose()
    assert {outcome.error for outcome in outcomes.values()} == {""}
    assert {outcome.value for outcome in outcomes.values()} == {"done"}
    assert not server.complaints
    audit = audit_run(folder / "run", server.bill, {(): BUDGET})
    assert audit.states["settled"] == jobs * turns
    assert audit.settled == audit.bill
    assert audit.unknown == 0
    return audit


@dataclass
class LimitChanger:
    """Changes the provider's limit while calls run, and records how many it had admitted and refused by then.

    ``steps`` maps a number of answers to the limit from then on; a step without a change marks the
    end of a time to adapt.
    """

    gate: Gate
    steps: dict[int, int]
    marks: list[tuple[int, int]] = field(default_factory=lambda: [(0, 0)])

    def __call__(self, answers: int) -> None:
        if answers in self.steps:
            self.mark()
            self.gate.most = self.steps[answers]

    def mark(self) -> None:
        self.marks.append((self.gate.let_in, self.gate.refused))

    def refused(self, phase: int) -> int:
        """Return the number of refusals between the marks ``phase`` and ``phase + 1``."""
        return self.marks[phase + 1][1] - self.marks[phase][1]


@pytest.mark.heavy
@pytest.mark.anyio
@pytest.mark.parametrize("protocol", PROTOCOLS_OTHERS_HEAVY)
async def test_changing_provider_limit_is_followed_with_few_refusals(
    server: provider.Server, tmp_path: Path, protocol: str
) -> None:
    gate = server.gates["expensive"] = Gate(most=16, styles=("seconds", "ms", "none"))
    model = bill_run.make_model("expensive", protocol, server.url, tmp_path, permits=40, **ANY_SPEED)
    recording = record_calls(model)
    changer = recording.on_answer = LimitChanger(gate, {60: 16, 140: 3, 170: 3, 280: 10, 310: 10})
    await run_conversations(server, model, tmp_path, jobs=35, turns=12)
    changer.mark()
    print(changer.marks, gate.early)  # noqa: T201
    assert recording.early == 0
    assert recording.pauses
    # All are sent at once, as no limit is known yet; some of those and of a few probes are refused.
    assert changer.refused(0) <= 35 + 20
    # The known limit is used, and sometimes one more request is tried.
    assert changer.refused(1) <= 80 // 2
    assert changer.refused(2) <= 2 * (16 + 10)
    assert changer.refused(3) <= 110 // 2
    assert changer.refused(4) + changer.refused(5) <= 140 // 2
    # The raised limit is used: ten requests at once are accepted again.
    assert model.limiter.statistics().limit >= 5


@pytest.mark.anyio
async def test_rate_limited_provider_is_not_called_during_pauses(
    server: provider.Server, tmp_path: Path
) -> None:
    gate = server.gates["expensive"] = Gate(per_s=60.0, burst=8.0, wait_s=0.1)
    model = bill_run.make_model("expensive", "openai-chat", server.url, tmp_path, permits=20, **ANY_SPEED)
    recording = record_calls(model)
    await run_conversations(server, model, tmp_path, jobs=20, turns=6)
    print(gate.let_in, gate.refused, gate.early)  # noqa: T201
    assert recording.early == 0
    assert 0 < gate.refused <= gate.let_in == 20 * 6


@pytest.mark.heavy
@pytest.mark.anyio
async def test_pause_until_a_date_applies_to_all_callers(server: provider.Server, tmp_path: Path) -> None:
    # A date has whole seconds, so that a pause of two seconds is 1.5 s on average and never zero.
    gate = server.gates["expensive"] = Gate(most=6, wait_s=2.0, styles=("date",))
    model = bill_run.make_model("expensive", "openai", server.url, tmp_path, permits=20, **ANY_SPEED)
    recording = record_calls(model)
    await run_conversations(server, model, tmp_path, jobs=20, turns=3)
    assert recording.early == 0
    assert recording.pauses
    assert 0 < gate.refused <= gate.let_in == 20 * 3


@pytest.mark.anyio
async def test_own_limit_changed_during_calls_is_exact(server: provider.Server, tmp_path: Path) -> None:
    gate = server.gates["expensive"] = Gate()
    model = bill_run.make_model("expensive", "anthropic", server.url, tmp_path, permits=8, **ANY_SPEED)
    recording = record_calls(model)
    steps, changed_at = {40: 2, 80: 12, 160: 1, 175: 5}, dict[int, int]()

    def change_limit(answers: int) -> None:
        if answers in steps:
            changed_at[answers] = len(recording.together)
            model.limiter.maximum = steps[answers]

    recording.on_answer = change_limit
    await run_conversations(server, model, tmp_path, jobs=25, turns=10)
    assert all(in_flight <= limit for in_flight, limit in recording.together)
    phases = [0, *changed_at.values(), len(recording.together)]
    reached = [
        max(in_flight for in_flight, _ in recording.together[begin:end])
        for begin, end in itertools.pairwise(phases)
    ]
    assert reached == [8, 2, 12, 1, 5]
    assert gate.highest <= 12
    assert gate.refused == 0


@pytest.mark.heavy
@pytest.mark.anyio
async def test_own_limit_applies_while_provider_limit_is_lower(
    server: provider.Server, tmp_path: Path
) -> None:
    gate = server.gates["expensive"] = Gate(most=4)
    model = bill_run.make_model("expensive", "openai-chat", server.url, tmp_path, permits=10, **ANY_SPEED)
    recording, steps = record_calls(model), {50: 2, 100: 10}

    def change_limit(answers: int) -> None:
        if answers in steps:
            model.limiter.maximum = steps[answers]

    recording.on_answer = change_limit
    await run_conversations(server, model, tmp_path, jobs=20, turns=10)
    assert all(in_flight <= limit for in_flight, limit in recording.together)
    assert recording.early == 0
    assert gate.refused <= 10 + 200 // 5
