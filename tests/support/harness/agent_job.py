"""Agents at work, for tests: a job with a gateway, a box with a small repository, and a program in it."""

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
MODELS = {"claude-code": "claude-sonnet-4-5", "codex": "gpt-5.1-codex", "codex@0.169.0": "gpt-5.5"}
"""What a program is told its model is called: some have tools of their own for models that they know."""


@dataclass
class Trial:
    """What became of one program."""

    end: AgentResult | None = None
    tally: SessionUsage | None = None
    patch: str = ""
    budget_usd: Decimal = Decimal(0)
    spent_usd: Decimal = Decimal(0)
    requests: list[Any] = field(default_factory=list)
    events: Path = Path()
    left_running: str = ""

    @property
    def done(self) -> AgentResult:
        assert self.end is not None
        return self.end

    @property
    def counted(self) -> SessionUsage:
        assert self.tally is not None
        return self.tally


async def agent(name: str, cache: Path) -> InstalledAgent:
    """The program ``NAME`` or ``NAME@VERSION``, installed where no test did it before."""
    adapter, _, version = name.partition("@")
    return await install_agent(load_adapter(adapter, Path()), version or None, cache, print)


async def repository(folder: Path) -> Any:
    """A testbed with one file."""
    base = folder / "base"
    base.mkdir(parents=True)
    (base / "hello.py").write_text("print('old')\n")
    return await prepare_testbed(Tree(base, "hello"), folder / "cache")


async def at_work(
    folder: Path,
    boxes: SandboxProvider,
    program: InstalledAgent,
    script: Callable[[Any], Any],
    *,
    usd: str = "10",
    wall_s: float = 100.0,
    model: str = "scripted-1",
    prompt: str = PROMPT,
    options: dict[str, Any] | None = None,
    drive: Callable[[Callable[[], Awaitable[AgentResult]]], Awaitable[AgentResult | None]] | None = None,
) -> Trial:
    """Run ``program`` with a scripted model under a budget; what it leaves is harvested in any case."""
    trial = Trial(budget_usd=Decimal(usd), events=folder / "events.jsonl")

    def answered(request: Any) -> Any:
        trial.requests.append(request)
        return script(request)

    scripted = ScriptedModel("m", answered, price=PRICE, ledger=folder / "ledger.jsonl")
    served = GatewayModel(MeteredModel(scripted, PRICE, RateLimiter("m", maximum=8)), model)
    testbed = await repository(folder)

    async def work(ctx: JobContext) -> Json:
        async with gateway.admit(
            ctx, models=["m"], protocol=program.adapter.protocol, transcript=folder / "said.jsonl"
        ) as access:
            spec = SandboxSpec(
                "trial",
                mounts=program.mounts,
                egress=Egress(forwards=(PortForward(PORT, gateway.socket),)),
                lifetime_s=900.0,
            )
            async with boxes.open(spec) as box:
                await box.put(testbed_archive(testbed, {"/task_description/description.md": prompt.encode()}))
                task = AgentTask(prompt, model, f"http://127.0.0.1:{PORT}", access.token, options or {})

                async def run() -> AgentResult:
                    limits = CommandLimits(wall_s=wall_s)
                    return await run_agent(program, box, task, limits, trial.events, access.usage.stopped)

                trial.end = await (drive(run) if drive else run())
                trial.tally = access.usage
                trial.left_running = await commands_in(box)
                await box.stop()
                trial.patch = (await extract_patch(box, testbed)).patch.decode()
        return None

    async with (
        open_session(folder / "run", Money(usd=Decimal(usd)), retries={}, grace_s=3.0) as session,
        open_gateway({"m": served}, folder / "run") as gateway,
    ):
        outcomes = await session.run([closure_job(session, "job", work, session.budget, "f")])
        assert outcomes["job"].usable, outcomes["job"]
        trial.spent_usd = session.budget.snapshot().spent.usd
    return trial


async def commands_in(box: Sandbox) -> str:
    """The programs that run in a box, but for the one that looks and the box's own two."""
    # By the shell alone: what it would start would be seen too.
    script = 'for p in /proc/[0-9]*; do read -r line <$p/stat && echo "$line"; done 2>/dev/null'
    done = await box.run(["/bin/sh", "-c", script], limits=CommandLimits(wall_s=30))
    lines = done.stdout.decode(errors="replace").splitlines()
    found = [re.match(r"(\d+) \((.*)\) (\w) (\d+) ", line) for line in lines]
    programs = sorted((int(each[1]), each[2], each[3], each[4]) for each in found if each)
    own = next((each for each in programs if each[3] == "1"), None)
    return " ".join(
        name
        for pid, name, state, above in programs
        if pid != 1 and (pid, name, state, above) != own and (name, state) != ("sh", "R")
    )


def applied(patch: str, folder: Path) -> dict[str, str]:
    """The files of the small repository with ``patch`` in it."""
    folder.mkdir()
    (folder / "hello.py").write_text("print('old')\n")
    if patch:
        subprocess.run(["git", "apply", "-"], input=patch.encode(), cwd=folder, check=True)
    return {path.name: path.read_text() for path in folder.iterdir()}
