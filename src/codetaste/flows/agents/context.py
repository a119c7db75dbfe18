"""The context that all trials of a run share: sandboxes, models, adapters, gateway and installer."""

from __future__ import annotations

from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from anyio import CapacityLimiter, to_thread

from codetaste.errors import ConfigError
from codetaste.harness.install.build import install_agent
from codetaste.sandbox.provider import open_sandboxes

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
    from pathlib import Path

    from codetaste.benchmark.benchmark import Benchmark
    from codetaste.gateway.gateway import Gateway
    from codetaste.harness.adapter import Adapter
    from codetaste.harness.config import AgentConfig
    from codetaste.harness.install.store import InstalledAgent
    from codetaste.llm.config import ModelConfig
    from codetaste.llm.metering.metered import MeteredModel
    from codetaste.sandbox.base import SandboxProvider
    from codetaste.sandbox.config import SandboxConfig

_MAX_EXTRACTIONS = 4


@dataclass(frozen=True, slots=True)
class InferenceContext:
    """The context of a run's trials.

    Attributes:
        benchmark: the source of the tasks.
        out: the run's folder.
        cache: the folder where trees and testbeds are cached between runs.
        sandboxes: opens the sandboxes that agents run in.
        sandbox_fingerprint: the config values that determine a sandbox's content. With the engine "auto", the
            engine that is chosen on a host does not make results differ.
        sandbox_config: the section ``[sandbox]``.
        models: the models by id.
        model_configs: the configs of these models, by id.
        model_fingerprints: hash of what determines each model's replies, by id.
        adapters: the adapters of CLI agents, by agent id.
        gateway: the gateway through which CLI agents call their models; None where no agent needs it.
        install_agent: installs a CLI agent, or finds it in the cache.
        extraction_limiter: limits concurrent patch extractions, because each has a list of R's files in
            memory, and all agents may end at the same moment.
    """

    benchmark: Benchmark
    out: Path
    cache: Path
    sandboxes: SandboxProvider
    sandbox_fingerprint: str
    sandbox_config: SandboxConfig
    models: Mapping[str, MeteredModel]
    model_configs: Mapping[str, ModelConfig]
    model_fingerprints: Mapping[str, str]
    adapters: Mapping[str, Adapter]
    gateway: Gateway | None
    install_agent: Callable[[AgentConfig], Awaitable[InstalledAgent]]
    extraction_limiter: CapacityLimiter

    def version(self, agent: AgentConfig) -> str:
        """Return the version of the agent: codetaste's own, or the CLI agent's release."""
        if agent.uses_own_loop:
            from codetaste import __version__  # noqa: PLC0415 - the package itself

            return __version__
        return self.adapters[agent.id].choose_version(agent.version)

    def require_gateway(self) -> Gateway:
        """Return the gateway.

        Raises:
            ConfigError: none is open, which is a bug.
        """
        if self.gateway is None:
            raise ConfigError("internal error: an agent needs a model, but no gateway is open")
        return self.gateway


@dataclass(frozen=True, slots=True)
class ModelSet:
    """The open models of a run by id, their configs, and hashes of what determines their replies."""

    models: Mapping[str, MeteredModel]
    configs: Sequence[ModelConfig]
    fingerprints: Mapping[str, str]
    adapters: Mapping[str, Adapter]
    """The adapters of CLI agents, by agent id."""


@asynccontextmanager
async def open_inference_context(
    benchmark: Benchmark,
    out: Path,
    cache: Path,
    sandbox: SandboxConfig,
    model_set: ModelSet,
    warn: Callable[[str], None],
) -> AsyncIterator[InferenceContext]:
    """Open the sandbox provider, and a gateway if a CLI agent calls a model.

    Args:
        benchmark: the source of the tasks.
        out: the run's folder.
        cache: the folder of data that is cached between runs.
        sandbox: the section ``[sandbox]``.
        model_set: the models and adapters of the run.
        warn: receives messages for the user.

    Raises:
        SandboxError: no sandbox provider works on this host.
        JournalError: the gateway's socket cannot be created.
    """
    absolute = await to_thread.run_sync(out.absolute)  # container engines accept only absolute paths
    async with AsyncExitStack() as stack:
        sandboxes = await stack.enter_async_context(open_sandboxes(sandbox, absolute, out.name, warn))
        gateway: Gateway | None = None
        if any(adapter.protocol != "none" for adapter in model_set.adapters.values()):
            from codetaste.gateway.gateway import open_gateway  # noqa: PLC0415 - only for CLI agents
            from codetaste.gateway.upstream import gateway_model  # noqa: PLC0415

            serving = {
                model.id: gateway_model(model, model_set.models[model.id]) for model in model_set.configs
            }
            gateway = await stack.enter_async_context(open_gateway(serving, absolute))

        async def install(agent: AgentConfig) -> InstalledAgent:
            return await install_agent(model_set.adapters[agent.id], agent.version, cache, warn)

        yield InferenceContext(
            benchmark=benchmark,
            out=out,
            cache=cache,
            sandboxes=sandboxes,
            sandbox_fingerprint=f"{sandbox.engine} {sandbox.image}",
            sandbox_config=sandbox,
            models=model_set.models,
            model_configs={model.id: model for model in model_set.configs},
            model_fingerprints=model_set.fingerprints,
            adapters=model_set.adapters,
            gateway=gateway,
            install_agent=install,
            extraction_limiter=CapacityLimiter(_MAX_EXTRACTIONS),
        )
