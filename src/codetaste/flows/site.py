"""What all trials of a run share: where agents work, who they ask, and what is known of both."""

from __future__ import annotations

from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from anyio import CapacityLimiter, to_thread

from codetaste.errors import ConfigError
from codetaste.harness.install import installed
from codetaste.sandbox.boxes import open_boxes

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
    from pathlib import Path

    from codetaste.benchmark.catalog import Benchmark
    from codetaste.gateway.gateway import Gateway
    from codetaste.harness.adapter import Adapter
    from codetaste.harness.config import AgentConfig
    from codetaste.harness.install import Installed
    from codetaste.llm.config import ModelConfig
    from codetaste.llm.metered import MeteredModel
    from codetaste.sandbox.box import Boxes
    from codetaste.sandbox.config import SandboxConfig

_HARVESTS_AT_ONCE = 4


@dataclass(frozen=True, slots=True)
class Site:
    """Where trials take place.

    Attributes:
        benchmark: where the tasks come from.
        out: the run's folder.
        cache: where trees and testbeds are kept between runs.
        boxes: opens the boxes that agents work in.
        box_facts: what decides what a box has inside, as far as the config says it: which of several engines
            was there does not make a result another one.
        sandbox: how large a box is.
        models: by id.
        settings: of these models, by id.
        digests: what decides each model's replies (a hash), by id.
        adapters: of agents that are programs, by the agent's id.
        gateway: what such programs call their models through; None where there are none.
        install: brings an agent's program; found in the cache once it is there.
        harvests: patches are taken a few at once: each holds a list of R's files in memory, and all agents
            may end at the same moment.
    """

    benchmark: Benchmark
    out: Path
    cache: Path
    boxes: Boxes
    box_facts: str
    sandbox: SandboxConfig
    models: Mapping[str, MeteredModel]
    settings: Mapping[str, ModelConfig]
    digests: Mapping[str, str]
    adapters: Mapping[str, Adapter]
    gateway: Gateway | None
    install: Callable[[AgentConfig], Awaitable[Installed]]
    harvests: CapacityLimiter

    def version(self, agent: AgentConfig) -> str:
        """Return the release of the agent's program."""
        if agent.own:
            from codetaste import __version__  # noqa: PLC0415 - the package itself

            return __version__
        return self.adapters[agent.id].version(agent.version)

    def require_gateway(self) -> Gateway:
        """Return the gateway.

        Raises:
            ConfigError: nobody opened one, which is a fault of whoever made this site.
        """
        if self.gateway is None:
            raise ConfigError("an agent asks for a model, and no gateway is open")
        return self.gateway


@dataclass(frozen=True, slots=True)
class Cast:
    """Who takes part: models by id, ready to be asked, with their settings and what decides their replies."""

    models: Mapping[str, MeteredModel]
    settings: Sequence[ModelConfig]
    digests: Mapping[str, str]
    adapters: Mapping[str, Adapter]
    """Of the agents that are programs, by the agent's id."""


@asynccontextmanager
async def open_site(
    benchmark: Benchmark,
    out: Path,
    cache: Path,
    sandbox: SandboxConfig,
    cast: Cast,
    warn: Callable[[str], None],
) -> AsyncIterator[Site]:
    """Find what contains agents, and open a gateway if an agent is a program that asks for a model.

    Args:
        benchmark: where the tasks come from.
        out: the run's folder.
        cache: where things are kept between runs.
        sandbox: the section.
        cast: who takes part.
        warn: is told what a person should know.

    Raises:
        SandboxError: nothing here can contain an agent.
        JournalError: the gateway's socket cannot be made.
    """
    whole = await to_thread.run_sync(out.absolute)  # container engines take no other
    async with AsyncExitStack() as stack:
        boxes = await stack.enter_async_context(open_boxes(sandbox, cache, whole, out.name, warn))
        gateway: Gateway | None = None
        if any(adapter.protocol != "none" for adapter in cast.adapters.values()):
            from codetaste.gateway.gateway import open_gateway  # noqa: PLC0415 - only where it is needed
            from codetaste.gateway.served import served  # noqa: PLC0415

            serving = {model.id: served(model, cast.models[model.id]) for model in cast.settings}
            gateway = await stack.enter_async_context(open_gateway(serving, whole))

        async def install(agent: AgentConfig) -> Installed:
            return await installed(cast.adapters[agent.id], agent.version, cache, warn)

        yield Site(
            benchmark=benchmark,
            out=out,
            cache=cache,
            boxes=boxes,
            box_facts=f"{sandbox.engine} {sandbox.image}",
            sandbox=sandbox,
            models=cast.models,
            settings={model.id: model for model in cast.settings},
            digests=cast.digests,
            adapters=cast.adapters,
            gateway=gateway,
            install=install,
            harvests=CapacityLimiter(_HARVESTS_AT_ONCE),
        )
