"""Open what agent runs share: the sandbox provider, the gateway, and the runner of each agent."""

from __future__ import annotations

from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from anyio import CapacityLimiter, to_thread

from codetaste.flows.agents.run import AgentServices
from codetaste.flows.agents.runners import CliAgentRunner, OwnLoopRunner
from codetaste.harness.install.build import install_agent
from codetaste.sandbox.provider import open_sandboxes

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable, Mapping
    from contextlib import AbstractAsyncContextManager
    from pathlib import Path

    from codetaste.flows.agents.run import AgentRunner
    from codetaste.flows.context import ModelSet
    from codetaste.gateway.gateway import Gateway
    from codetaste.harness.adapter import Adapter
    from codetaste.harness.config import AgentConfig
    from codetaste.llm.prompts import Prompts
    from codetaste.sandbox.config import SandboxConfig

_MAX_EXTRACTIONS = 4


@dataclass(frozen=True, slots=True)
class AgentSet:
    """The agents of a run, the adapters of its CLI agents by agent id, their models and their prompts."""

    agents: Iterable[AgentConfig]
    adapters: Mapping[str, Adapter]
    models: ModelSet
    prompts: Prompts


@asynccontextmanager
async def open_agent_services(
    agents: AgentSet, sandbox: SandboxConfig, out: Path, cache: Path, warn: Callable[[str], None]
) -> AsyncIterator[AgentServices]:
    """Open the sandbox provider, and a gateway if a CLI agent calls a model.

    Args:
        agents: the agents of the run.
        sandbox: the section ``[sandbox]``.
        out: the run's folder.
        cache: the folder of data that is cached between runs.
        warn: receives messages for the user.

    Raises:
        SandboxError: no sandbox provider works on this host.
        JournalError: the gateway's socket cannot be created.
    """
    absolute = await to_thread.run_sync(out.absolute)  # container engines accept only absolute paths
    calls_models = any(adapter.protocol != "none" for adapter in agents.adapters.values())
    async with (
        open_sandboxes(sandbox, absolute, out.name, warn) as sandboxes,
        _open_gateway(agents.models, absolute) if calls_models else nullcontext() as gateway,
    ):

        def runner(agent: AgentConfig) -> AgentRunner:
            models = agents.models
            if agent.uses_own_loop:
                return OwnLoopRunner(agent, models.models[agent.model], agents.prompts)
            adapter = agents.adapters[agent.id]
            return CliAgentRunner(
                agent,
                adapter,
                models.configs[agent.model].exposed_name,
                partial(install_agent, adapter, agent.version, cache, warn),
                None if adapter.protocol == "none" else gateway,
            )

        yield AgentServices(
            out=out,
            cache=cache,
            sandboxes=sandboxes,
            sandbox_config=sandbox,
            runners={agent.id: runner(agent) for agent in agents.agents},
            extraction_limiter=CapacityLimiter(_MAX_EXTRACTIONS),
        )


def _open_gateway(models: ModelSet, out: Path) -> AbstractAsyncContextManager[Gateway]:
    from codetaste.gateway.gateway import open_gateway  # noqa: PLC0415 - only for CLI agents
    from codetaste.gateway.upstream import gateway_model  # noqa: PLC0415

    serving = {name: gateway_model(config, models.models[name]) for name, config in models.configs.items()}
    return open_gateway(serving, out)
