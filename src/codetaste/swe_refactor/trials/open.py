"""Open what the trials of a run share: clones, sandboxes, RefactoringMiner, JDT, examples."""

from __future__ import annotations

from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from anyio import to_thread

from codetaste.flows.agents.services import open_agent_services
from codetaste.refactorings.service import refactoring_service
from codetaste.swe_refactor.config import StrategyKind
from codetaste.swe_refactor.dataset.layout import FOLDER
from codetaste.swe_refactor.examples.find import open_example_finder
from codetaste.swe_refactor.java_image import java_sandbox
from codetaste.swe_refactor.trials.context import TrialContext
from codetaste.swe_refactor.trials.pair.services import open_pair_services
from codetaste.swe_refactor.trials.sources import BaseBuilds, find_sources
from codetaste.swe_refactor.verify.open import check_build_tool, open_verification

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from codetaste.flows.agents.services import AgentSet
    from codetaste.sandbox.config import SandboxConfig
    from codetaste.swe_refactor.config import SweRefactorConfig
    from codetaste.swe_refactor.trials.plan import StrategyTrial

_PROJECTS, _BASES = "verify", "swe-refactor-bases"


@dataclass(frozen=True, slots=True)
class TrialOpening:
    """What is opened.

    Attributes:
        trials: those of the run.
        section: ``[swe_refactor]``.
        sandbox: ``[sandbox]``.
        base_dir: paths of the config are relative to it.
        out: the run's folder.
        cache: folder of data that is shared by runs.
        agents: the agents of the run, with models and prompts.
    """

    trials: tuple[StrategyTrial, ...]
    section: SweRefactorConfig
    sandbox: SandboxConfig
    base_dir: Path
    out: Path
    cache: Path
    agents: AgentSet


@asynccontextmanager
async def open_trials(
    opening: TrialOpening, cpus: int, warn: Callable[[str], None]
) -> AsyncIterator[TrialContext]:
    """Open the context of trials, and close it at the end.

    Args:
        opening: what is opened.
        cpus: of this machine.
        warn: receives messages for the user.

    Raises:
        ConfigError: no clone has the commits of an instance, or the examples cannot be used.
        SourceError: a path is no clone, or jars cannot be fetched.
        ToolMissing: a JDK or the jars of RefactoringMiner are not installed.
        SandboxError: no sandbox works on this machine.
    """
    section, out, cache = opening.section, opening.out, opening.cache
    instances = {trial.instance.unique_id: trial.instance for trial in opening.trials}
    kinds = {trial.strategy.kind for trial in opening.trials}
    clones = [opening.base_dir / path.expanduser() for path in section.repositories]
    sources = await find_sources(instances.values(), clones)
    sandbox = java_sandbox(opening.sandbox, section.java)
    java = section.java
    async with AsyncExitStack() as stack:
        services = open_agent_services(opening.agents, sandbox, out, cache, warn)
        agents = await stack.enter_async_context(services)
        check_build_tool(agents.sandboxes)
        miner = await stack.enter_async_context(refactoring_service(java.refactoring_miner, cache))
        pair = None
        if StrategyKind.MULTI_AGENT in kinds:
            pair = await stack.enter_async_context(open_pair_services(cache, java, cpus))
        finders = {
            strategy.title: await stack.enter_async_context(
                open_example_finder(
                    strategy.retrieval,
                    name=strategy.title,
                    base_dir=opening.base_dir,
                    cache=cache,
                    instances=[*instances.values()],
                    prompts=opening.agents.prompts,
                    models=opening.agents.models,
                )
            )
            for strategy in {trial.strategy.title: trial.strategy for trial in opening.trials}.values()
            if strategy.retrieval is not None
        }
        folder = await to_thread.run_sync((out / FOLDER / _PROJECTS).absolute)
        contexts = {
            name: await open_verification(agents.sandboxes, sandbox, java, folder / name, cache)
            for name in dict.fromkeys(source.project for source in sources.values())
        }
        yield TrialContext(
            out=out,
            cache=cache,
            config=section,
            models=opening.agents.models,
            prompts=opening.agents.prompts,
            sources=sources,
            bases=BaseBuilds(sources, contexts, cache / _BASES),
            miner=miner,
            finders=finders,
            pair=pair,
            agents=agents,
            adapters=opening.agents.adapters,
            sandbox_memory=sandbox.memory,
        )
