"""Run an agent in a test: a job with a gateway, a sandbox with a small repository, and the agent in it."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

from codetaste.gateway.gateway import open_gateway
from codetaste.gateway.session import SessionUsage
from codetaste.gateway.upstream import GatewayModel
from codetaste.harness.adapter import load_adapter
from codetaste.harness.install.build import install_agent
from codetaste.harness.install.store import InstalledAgent
from codetaste.harness.patch.extract import extract_patch
from codetaste.harness.result import AgentResult
from codetaste.harness.run import AgentTask, run_agent
from codetaste.harness.testbed.testbed import prepare_testbed, testbed_archive
from codetaste.llm.metering.metered import MeteredModel
from codetaste.llm.price import Price
from codetaste.llm.providers.scripted import ScriptedModel
from codetaste.llm.ratelimit.limiter import RateLimiter
from codetaste.orchestration.budget.cost import BudgetLimits as Money
from codetaste.orchestration.job import JobContext
from codetaste.orchestration.journal.journal import Json
from codetaste.orchestration.session import open_session
from codetaste.sandbox.base import CommandLimits, Egress, PortForward, Sandbox, SandboxProvider, SandboxSpec
from codetaste.source.tree.store import Tree
from support.orchestration.closure_jobs import closure_job

PRICE = Price(input=Decimal(1), output=Decimal(30))
PROMPT = "Make the greeting new, and add a file.\n"
PORT = 8787
PINNED = ("claude-code", "codex", "qwen-code")
NEWEST = {name: f"{name}@{load_adapter(name, Path()).manifest.versions[-1]}" for name in PINNED}
"""The newest tested release of each agent."""
MODELS = {"claude-code": "claude-sonnet-4-5", "codex": "gpt-5.1-codex", NEWEST["codex"]: "gpt-5.5"}
"""The model name that an agent gets: some agents have special tools for models that they know."""


@dataclass
class AgentRun:
    """The outcome of one agent run."""

    agent_result: AgentResult | None = None
    session_usage: SessionUsage | None = None
    patch: str = ""
    budget_usd: Decimal = Decimal(0)
    spent_usd: Decimal = Decimal(0)
    unknown_usd: Decimal = Decimal(0)
    requests: list[Any] = field(default_factory=list)
    events: Path = Path()
    left_running: str = ""

    @property
    def result(self) -> AgentResult:
        assert self.agent_result is not None
        return self.agent_result

    @property
    def usage(self) -> SessionUsage:
        assert self.session_usage is not None
        return self.session_usage


async def install_by_name(name: str, cache: Path) -> InstalledAgent:
    """Install the agent ``NAME`` or ``NAME@VERSION``, unless the cache has it."""
    adapter, _, version = name.partition("@")
    return await install_agent(load_adapter(adapter, Path()), version or None, cache, print)


async def prepare_small_testbed(folder: Path) -> Any:
    """Prepare a testbed with one file."""
    base = folder / "base"
    base.mkdir(parents=True)
    (base / "hello.py").write_text("print('old')\n")
    return await prepare_testbed(Tree(base, "hello"), folder / "cache")


async def run_with_model(
    folder: Path,
    provider: SandboxProvider,
    agent: InstalledAgent,
    script: Callable[[Any], Any],
    *,
    model: str = "scripted-1",
    **more: Any,
) -> AgentRun:
    """Run ``agent`` with a scripted model under a budget, and extract its patch in any case."""
    requests: list[Any] = []

    def answer(request: Any) -> Any:
        requests.append(request)
        return script(request)

    scripted = ScriptedModel("m", answer, price=PRICE, ledger=folder / "ledger.jsonl")
    gateway_model = GatewayModel(MeteredModel(scripted, PRICE, RateLimiter("m", maximum=8)), model)
    run = await run_with_gateway(folder, provider, agent, gateway_model, **more)
    run.requests = requests
    return run


async def run_with_gateway(
    folder: Path,
    provider: SandboxProvider,
    agent: InstalledAgent,
    gateway_model: GatewayModel,
    *,
    usd: str | None = "10",
    wall_s: float = 100.0,
    prompt: str = PROMPT,
    options: dict[str, Any] | None = None,
    drive: Callable[[Callable[[], Awaitable[AgentResult]]], Awaitable[AgentResult | None]] | None = None,
) -> AgentRun:
    """Run ``agent`` with a model of the gateway; without ``usd`` any request may pass."""
    run = AgentRun(budget_usd=Decimal(usd or 0), events=folder / "events.jsonl")
    limits = Money(usd=None if usd is None else Decimal(usd))
    testbed = await prepare_small_testbed(folder)

    async def work(ctx: JobContext) -> Json:
        async with gateway.admit(
            ctx,
            models=[gateway_model.id],
            protocol=agent.adapter.protocol,
            transcript=folder / "transcript.jsonl",
        ) as access:
            spec = SandboxSpec(
                "agent-run",
                mounts=agent.mounts,
                egress=Egress(forwards=(PortForward(PORT, gateway.socket),)),
                lifetime_s=900.0,
            )
            async with provider.open(spec) as sandbox:
                await sandbox.put(
                    testbed_archive(testbed, {"/task_description/description.md": prompt.encode()})
                )
                task = AgentTask(
                    prompt, gateway_model.name, f"http://127.0.0.1:{PORT}", access.token, options or {}
                )

                async def start() -> AgentResult:
                    limits = CommandLimits(wall_s=wall_s)
                    return await run_agent(agent, sandbox, task, limits, run.events, access.usage.stopped)

                run.agent_result = await (drive(start) if drive else start())
                run.session_usage = access.usage
                run.left_running = await running_commands(sandbox)
                await sandbox.stop()
                run.patch = (await extract_patch(sandbox, testbed)).patch.decode()
        return None

    async with (
        open_session(folder / "run", limits, retries={}, grace_s=3.0) as session,
        open_gateway({gateway_model.id: gateway_model}, folder / "run") as gateway,
    ):
        outcomes = await session.run([closure_job(session, "job", work, session.budget, "f")])
        assert outcomes["job"].usable, outcomes["job"]
        spent = session.budget.snapshot()
        run.spent_usd, run.unknown_usd = spent.spent.usd, spent.unknown.usd
    return run


async def running_commands(sandbox: Sandbox) -> str:
    """Return the commands that run in a sandbox, without this one's shell and the sandbox's own two."""
    # With shell builtins only: any program that the shell starts would be listed too.
    script = 'for p in /proc/[0-9]*; do read -r line <$p/stat && echo "$line"; done 2>/dev/null'
    done = await sandbox.run(["/bin/sh", "-c", script], limits=CommandLimits(wall_s=30))
    lines = done.stdout.decode(errors="replace").splitlines()
    found = [re.match(r"(\d+) \((.*)\) (\w) (\d+) ", line) for line in lines]
    processes = sorted((int(each[1]), each[2], each[3], each[4]) for each in found if each)
    own = next((each for each in processes if each[3] == "1"), None)
    return " ".join(
        name
        for pid, name, state, parent in processes
        if pid != 1 and (pid, name, state, parent) != own and (name, state) != ("sh", "R")
    )


def apply_patch(patch: str, folder: Path) -> dict[str, str]:
    """Apply ``patch`` to the small repository; return its files."""
    folder.mkdir()
    (folder / "hello.py").write_text("print('old')\n")
    if patch:
        subprocess.run(["git", "apply", "-"], input=patch.encode(), cwd=folder, check=True)
    return {path.name: path.read_text() for path in folder.iterdir()}
