"""Open what a run needs: scanner, models, shell, evaluation context."""

from __future__ import annotations

from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING

import anyio
from anyio import to_thread

from codetaste.console.streams import notify
from codetaste.core.paths import cache_dir
from codetaste.errors import ConfigError, SandboxError, ToolMissing
from codetaste.flows.context import ModelSet, ScanContext
from codetaste.flows.discover.context import RuleToolServices
from codetaste.llm.build import build_metered_model
from codetaste.llm.ratelimit.registry import LimiterRegistry
from codetaste.rules.cache.keys import engine_cache_name
from codetaste.rules.cache.scanner import IncrementalScanner
from codetaste.rules.cache.store import MatchStore
from codetaste.rules.engine.install import find_rule_engine
from codetaste.rules.engine.opengrep import OpenGrep, RuleEngineLimits
from codetaste.rules.scan.full import FullScanner
from codetaste.sandbox.containment.engine import choose_engine
from codetaste.sandbox.containment.host_view import find_ripgrep
from codetaste.sandbox.local.shell import read_only_shell

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from codetaste.benchmark.benchmark import Benchmark
    from codetaste.llm.metering.metered import MeteredModel
    from codetaste.rules.config import RulesConfig
    from codetaste.rules.engine.install import RuleEngine
    from codetaste.rules.scan.model import Scanner
    from codetaste.run.resolve import ResolvedConfig
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
