"""Open what a run needs: scanner, models, shell, evaluation context."""

from __future__ import annotations

import os
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import anyio
from anyio import to_thread

from codetaste.console.streams import notify
from codetaste.core.files import remove_tree
from codetaste.core.paths import cache_dir
from codetaste.core.units import format_size
from codetaste.environment.config import EnvironmentConfig
from codetaste.environment.leak_search.secrets import make_secrets
from codetaste.environment.registries import Registries, find_registries, sandbox_archives
from codetaste.errors import ConfigError, SandboxError, ToolMissing
from codetaste.evaluation.config import EvaluateConfig
from codetaste.evaluation.test_runs.suite import SuiteLimits
from codetaste.flows.context import ModelSet, ScanContext
from codetaste.flows.discover.context import RuleToolServices
from codetaste.flows.environment.context import EnvironmentContext
from codetaste.flows.environment.suites import SUITES_FOLDER, SuiteServices
from codetaste.llm.build import build_metered_model
from codetaste.llm.ratelimit.registry import LimiterRegistry
from codetaste.rules.cache.keys import engine_cache_name
from codetaste.rules.cache.scanner import IncrementalScanner
from codetaste.rules.cache.store import MatchStore
from codetaste.rules.engine.install import find_rule_engine
from codetaste.rules.engine.opengrep import OpenGrep, RuleEngineLimits
from codetaste.rules.scan.full import FullScanner
from codetaste.sandbox.base import HOME, Privileges, SandboxSpec
from codetaste.sandbox.containment.engine import choose_engine
from codetaste.sandbox.containment.host_view import find_ripgrep
from codetaste.sandbox.egress import open_allowlist_egress
from codetaste.sandbox.local.shell import read_only_shell

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from codetaste.benchmark.benchmark import Benchmark
    from codetaste.flows.agents.run import AgentServices
    from codetaste.llm.metering.metered import MeteredModel
    from codetaste.rules.config import RulesConfig
    from codetaste.rules.engine.install import RuleEngine
    from codetaste.rules.scan.model import Scanner
    from codetaste.run.resolve import ResolvedConfig
    from codetaste.sandbox.base import SandboxProvider
    from codetaste.sandbox.config import SandboxConfig


async def open_scanner(
    config: RulesConfig, ignore: str, warn: Callable[[str], None], *, cache: Path | None = None
) -> tuple[Scanner, RuleEngine]:
    """Find the rule engine, and return it with a scanner that skips files matching ``ignore`` (file text).

    ``warn`` is called, from any thread, with messages for the user during scans. ``cache`` is the result of
    ``cache_dir``, if it is already known.

    Raises:
        ToolMissing: there is no engine; the message says how to install it.
    """
    engine = await find_rule_engine(config.opengrep)
    processes = anyio.CapacityLimiter(config.processes)
    grep = OpenGrep(engine, limits=RuleEngineLimits(wall_s=config.scan_timeout), processes=processes)
    if config.cache == "off" or not (name := engine_cache_name(engine)):
        return FullScanner(grep, ignore), engine
    if config.cache is not None:
        folder = config.cache.absolute()
    else:
        folder = (await to_thread.run_sync(cache_dir, warn) if cache is None else cache) / "matches"
    store = MatchStore(folder, name, size=config.cache_size, warn=warn)
    return IncrementalScanner(grep, store, ignore), engine


async def open_rule_tools(
    benchmark: Benchmark, scan: ScanContext, sandbox: SandboxConfig
) -> RuleToolServices:
    """Find and try the containment of commands, and return what the rule agent's tools work with.

    Raises:
        ToolMissing: it is not available; the message says how to install it.
    """
    try:
        containment = await to_thread.run_sync(choose_engine, sandbox.shell_engine)
    except SandboxError as error:
        raise ToolMissing(str(error)) from error
    rg = find_ripgrep()
    open_shell = partial(read_only_shell, tools={"rg": rg} if rg else {}, engine=containment)
    return RuleToolServices(benchmark, scan, open_shell, sandbox.shell_memory_bytes)


def _guaranteed_memory(config: EvaluateConfig) -> int:
    """Return the memory that a test run is guaranteed.

    Raises:
        ConfigError: this machine cannot give it to a single one.
    """
    guaranteed, there_is = config.guaranteed_memory, memory_bytes()
    if guaranteed > there_is:
        raise ConfigError(
            f"evaluate.test_memory_reserved: {format_size(guaranteed)} are to be guaranteed to a test run, "
            f"but this machine has {format_size(there_is)} for all of them: lower it, or use a larger machine"
        )
    return guaranteed


@asynccontextmanager
async def open_environment_context(
    resolved: ResolvedConfig, agents: AgentServices, models: ModelSet, note: Callable[[str], None]
) -> AsyncIterator[EnvironmentContext]:
    """Open what environments and test runs share: the proxy to the registries, and where scripts are mounted.

    Args:
        resolved: the config.
        agents: what the runs of agents share.
        models: the open models.
        note: receives each host that is reached or refused, once.

    Raises:
        ConfigError: a host of the config is invalid, or the machine lacks the memory of a test run.
        SandboxError: the proxy cannot be opened.
    """
    config, evaluate = resolved.config, resolved.config.evaluate or EvaluateConfig()
    section = config.environment or EnvironmentConfig()
    registries = await find_registries() if section.registries else Registries(())
    for problem in registries.problems:
        note(problem)
    base_image = await _base_image(section, agents.sandboxes)
    hosts = [*section.hosts, *registries.hosts]
    if config.environment is not None and section.registries:
        hosts += await _archives(agents.sandboxes, base_image)
    folder = (agents.out / SUITES_FOLDER).absolute()
    async with open_allowlist_egress(hosts, note=lambda request: note(str(request))) as egress:
        suites = SuiteServices(
            sandboxes=agents.sandboxes,
            sandbox_config=config.sandbox,
            cache=agents.cache,
            folder=folder,
            network=replace(egress, env={**registries.variables, **egress.env}),
            home={f"{HOME}/{name}": text.encode() for name, text in registries.files.items()},
            limits=SuiteLimits(section.setup_time_limit, section.test_time_limit),
            cpus=min(evaluate.test_cpus, cpu_count()),
            memory_bytes=evaluate.test_memory,
            memory_reserved_bytes=_guaranteed_memory(evaluate),
        )
        try:
            yield EnvironmentContext(
                benchmark=resolved.benchmark,
                config=section,
                base_image=base_image,
                suites=suites,
                hosts=tuple(hosts),
                agents=agents,
                models=models,
                prompts=resolved.prompts,
                secrets=make_secrets({name: os.environ.get(name, "") for name in _key_variables(resolved)}),
            )
        finally:
            with anyio.CancelScope(shield=True):
                await to_thread.run_sync(remove_tree, folder)


def _key_variables(resolved: ResolvedConfig) -> set[str]:
    return {name for model in resolved.config.models if (name := model.provider_key_env)}


async def _base_image(section: EnvironmentConfig, sandboxes: SandboxProvider) -> str:
    from codetaste.environment.images.existing import find_polyglot_image  # noqa: PLC0415 - heavy: aiodocker

    return section.image or await find_polyglot_image(sandboxes)


async def _archives(sandboxes: SandboxProvider, image: str) -> tuple[str, ...]:
    """Return the archives of the image's own apt, which need not be those of this host; () without image."""
    from codetaste.environment.images.existing import find_image  # noqa: PLC0415 - heavy: aiodocker

    if not await find_image(sandboxes, image):
        return ()
    spec = SandboxSpec("environment/apt", image=image, privileges=Privileges.SYSTEM)
    async with sandboxes.open(spec) as sandbox:
        return await sandbox_archives(sandbox)


def cpu_count() -> int:
    """Return the number of CPUs that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def memory_bytes() -> int:
    """Return the memory of this host that jobs may use: nine tenths of it."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") * 9 // 10


async def open_scan_context(benchmark: Benchmark, rules: RulesConfig, cache: Path) -> ScanContext:
    """Find the rule engine.

    Raises:
        ToolMissing: there is no engine; the message says how to install it.
    """
    ignore = benchmark.ignore_text()
    scanner, engine = await open_scanner(rules, ignore, notify, cache=cache)
    return ScanContext(cache, scanner, engine, ignore)


@asynccontextmanager
async def open_models(resolved: ResolvedConfig, record_dir: Path) -> AsyncIterator[ModelSet]:
    """Create the models that the flows use, and close them at the end.

    Raises:
        ConfigError: one line for each model that cannot be created (a missing script or key).
    """
    problems: list[str] = []
    used = resolved.used_models()
    opened: dict[str, MeteredModel] = {}
    limiters, base = LimiterRegistry(), resolved.base_dir
    async with AsyncExitStack() as stack:
        for config in used:
            try:
                model = build_metered_model(config, base_dir=base, record_dir=record_dir, limiters=limiters)
            except ConfigError as error:
                problems.extend(error.problems)
                continue
            stack.push_async_callback(model.aclose)
            opened[config.id] = model
        if problems:
            raise ConfigError(*problems)
        yield ModelSet(opened, {config.id: config for config in used}, resolved.model_fingerprints())
