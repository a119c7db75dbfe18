"""Jobs that install the programs of CLI agents; trials and environments need them."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from codetaste.flows.agents.runners import CliAgentRunner
from codetaste.flows.sources import digest_parts
from codetaste.orchestration.job import Job

if TYPE_CHECKING:
    from codetaste.flows.agents.run import AgentServices
    from codetaste.orchestration.budget.cost import BudgetPath
    from codetaste.orchestration.job import Handler, JobContext
    from codetaste.orchestration.journal.journal import Json

INSTALL = "agents.install"
"""The kind of the jobs."""


def install_job(key: str, agent_id: str, services: AgentServices, budget: BudgetPath) -> Job | None:
    """Return the job ``key`` that installs the program of an agent; None for the own agent."""
    runner = services.runners[agent_id]
    if not isinstance(runner, CliAgentRunner):
        return None
    adapter, version = runner.adapter, runner.version
    return Job(
        key,
        INSTALL,
        budget,
        fingerprint=digest_parts("install", adapter.digest, version),
        parameters=agent_id,
        resources={"cpu": 1},
        title=f"install {adapter.name} {version}",
        costs_nothing=True,
        prerequisite_only=True,
    )


def install_handler(services: AgentServices) -> Handler:
    """Return what runs these jobs."""

    async def install(job: Job, _context: JobContext) -> Json:
        runner = cast("CliAgentRunner", services.runners[job.parameters])
        installed = await runner.install()
        return {"id": installed.id, "digest": installed.digest, "version": installed.version}

    return install
