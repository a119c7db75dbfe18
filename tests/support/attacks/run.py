"""Run the attacking program in a sandbox with a gateway, against a provider that keeps its own bill."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from decimal import Decimal
from importlib.resources import files
from pathlib import Path

from codetaste.gateway.gateway import open_gateway
from codetaste.gateway.upstream import GatewayModel, gateway_model
from codetaste.llm.build import build_metered_model
from codetaste.llm.config import ModelConfig
from codetaste.orchestration.budget.cost import BudgetLimits
from codetaste.orchestration.job import JobContext
from codetaste.orchestration.journal.journal import Json
from codetaste.orchestration.session import open_session
from codetaste.sandbox.base import CommandLimits, Egress, PortForward, SandboxProvider, SandboxSpec
from support.attacks.billing.charge import INPUT_USD, OUTPUT_USD
from support.attacks.provider import BillingProvider, serve_billing
from support.attacks.ways.way import Way
from support.gateway.jobs import read_journal
from support.llm.bill_run import KEY_ENV, key_in_environment
from support.orchestration.closure_jobs import closure_job

BUDGET_USD = Decimal(1)
REQUESTS = 300
_PORT = 8787
_PROGRAM = (files("support.attacks") / "program.py").read_text()


@dataclass
class AttackResult:
    """What a program in a sandbox has achieved."""

    provider: BillingProvider
    sent: int = 0
    statuses: Counter[str] = field(default_factory=Counter)
    messages: Counter[str] = field(default_factory=Counter)
    settled_usd: Decimal = Decimal(0)
    unknown_usd: Decimal = Decimal(0)
    disputes: int = 0

    def __str__(self) -> str:
        provider = self.provider
        return (
            f"bill ${provider.usd:.2f} for {len(provider.charges)} of {self.sent} requests, "
            f"highest ${provider.highest_usd:.4f}, settled ${self.settled_usd:.4f}, "
            f"unknown ${self.unknown_usd:.4f}, disputes {self.disputes}; "
            f"{dict(self.statuses)}; {dict(provider.features)}"
        )


async def run_attack(way: Way, folder: Path, sandboxes: SandboxProvider) -> AttackResult:
    """Run all sessions of a way against a provider of its own, on one budget."""
    with serve_billing(way.delay_s) as provider:
        attack = AttackResult(provider)
        for number in range(way.sessions):
            await _run_session(way, folder, sandboxes, attack, number)
    attack.disputes = [line["event"] for line in read_journal(folder)].count("disputed")
    return attack


async def _run_session(
    way: Way, folder: Path, sandboxes: SandboxProvider, attack: AttackResult, number: int
) -> None:
    model = _model(way, attack.provider.url, folder)
    async with (
        open_session(folder / "run", BudgetLimits(usd=BUDGET_USD), retries={}, grace_s=20.0) as session,
        open_gateway({model.id: model}, folder / "run") as gateway,
    ):

        async def work(ctx: JobContext) -> Json:
            async with gateway.admit(
                ctx,
                models=[model.id],
                protocol=way.protocol,
                transcript=folder / f"{number}.jsonl",
            ) as access:
                spec = SandboxSpec("attack", egress=Egress((PortForward(_PORT, gateway.socket),)))
                async with sandboxes.open(spec) as sandbox:
                    plan = {
                        "port": _PORT,
                        "token": access.token,
                        "requests": REQUESTS // way.sessions,
                        "connections": way.connections,
                        "first": way.first,
                        "then": way.then,
                    }
                    done = await sandbox.run(
                        ["python3", "-S", "-E", "-c", _PROGRAM],
                        limits=CommandLimits(wall_s=600, output_bytes=1 << 20),
                        stdin=json.dumps(plan).encode(),
                    )
                assert done.exit_code == 0, done.stderr.decode()
                found = json.loads(done.stdout)
                attack.sent += found["sent"]
                attack.statuses += Counter(found["statuses"])
                attack.messages += Counter(found["messages"])
            return None

        outcomes = await session.run([closure_job(session, f"job-{number}", work, session.budget, "f")])
        assert outcomes[f"job-{number}"].usable, outcomes
        spent = session.budget.snapshot()
        attack.settled_usd, attack.unknown_usd = spent.settled.usd, spent.unknown.usd
    await model.metered.aclose()


def _model(way: Way, url: str, folder: Path) -> GatewayModel:
    """Build the model as a run does; its price is that of a long-known, plain model."""
    config = ModelConfig(
        id="expensive",
        provider=way.protocol,
        model="expensive",
        base_url=url if way.protocol == "anthropic" else f"{url}/v1",
        api_key_env=KEY_ENV,
        timeout=way.timeout_s,
        price={"input": INPUT_USD, "output": OUTPUT_USD},
    )
    with key_in_environment():
        return gateway_model(config, build_metered_model(config, base_dir=folder, record_dir=folder))
