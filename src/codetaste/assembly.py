"""Resolve what a config names (benchmark, instances, tools, agents), and open models, rule engine and shell.

Names in the config that do not exist are reported here, all together, before anything is started.
"""

from __future__ import annotations

import json
import os
import tempfile
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
from anyio import to_thread

from codetaste.agent.tool import load_tools
from codetaste.benchmark.catalog import QUICKSTART, open_benchmark, quickstart_folder
from codetaste.errors import ConfigError, SandboxError, ToolMissing
from codetaste.flows.casting import resolve_agents
from codetaste.llm.pricing import budget_problems, price_entry

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping

    from codetaste.agent.tool import Tool
    from codetaste.benchmark.catalog import Benchmark
    from codetaste.benchmark.config import BenchmarkConfig
    from codetaste.benchmark.instance import Instance
    from codetaste.config import Config
    from codetaste.flows.discover import DiscoveryContext
    from codetaste.harness.adapter import Adapter
    from codetaste.llm.config import ModelConfig
    from codetaste.llm.metered import MeteredModel
    from codetaste.llm.pricing import PriceEntry
    from codetaste.rules.config import RulesConfig
    from codetaste.rules.engine_install import RuleEngine
    from codetaste.rules.scan import Scanner
    from codetaste.sandbox.config import SandboxConfig
    from codetaste.sandbox.sandbox import Shell


@dataclass(frozen=True, slots=True)
class ResolvedConfig:
    """A config with everything that it names resolved and checked; nothing is started yet."""

    config: Config
    base_dir: Path
    benchmark: Benchmark
    instances: tuple[Instance, ...]
    tools: tuple[Tool, ...]
    adapters: Mapping[str, Adapter] = field(default_factory=dict)
    """Adapters of the CLI agents that some track uses, by the agent's id."""

    def used_models(self) -> tuple[ModelConfig, ...]:
        """Return the models that some flow of the config uses."""
        wanted = set(self.config.discover.models) if self.config.discover else set()
        wanted |= {agent.model for agent in self.config.used_agents()}
        wanted |= {track.judge for track in self.config.tracks if track.judge is not None}
        return tuple(model for model in self.config.models if model.id in wanted)

    def rules(self) -> RulesConfig:
        """Return ``[rules]`` with absolute paths."""
        rules = self.config.rules
        paths = {"opengrep": rules.opengrep, "cache": rules.cache}
        absolute = {
            name: (self.base_dir / path.expanduser()).absolute()
            for name, path in paths.items()
            if isinstance(path, Path)
        }
        return rules.model_copy(update=absolute)

    def prices(self) -> dict[str, PriceEntry]:
        """Return the prices of the used models with their sources, by id."""
        return {model.id: price_entry(model) for model in self.used_models()}


def resolve_config(config: Config, base_dir: Path) -> ResolvedConfig:
    """Resolve what ``config`` names; its paths are relative to ``base_dir``.

    Raises:
        ConfigError: one line for each name that does not exist or is not allowed there.
    """
    problems: list[str] = []
    benchmark: Benchmark | None = None
    instances: tuple[Instance, ...] = ()
    tools: tuple[Tool, ...] = ()
    try:
        benchmark = find_benchmark(config.benchmark, base_dir)
        instances = benchmark.select(config.benchmark.instances)
    except ConfigError as error:
        problems.extend(error.problems)
    if config.discover is not None:
        try:
            tools = load_tools(config.discover.tools, base_dir=base_dir)
        except ConfigError as error:
            problems.extend(f"discover.tools: {problem}" for problem in error.problems)
        if config.run.budget_usd is not None or config.discover.budget_usd is not None:
            for name in dict.fromkeys(config.discover.models):
                problems.extend(budget_problems(config.model_by_id(name)))
    agents = resolve_agents(config.used_agents(), config.tracks, config.models, base_dir)
    problems.extend(agents.problems)
    if problems or benchmark is None:
        raise ConfigError(*dict.fromkeys(problems))
    return ResolvedConfig(config, base_dir, benchmark, instances, tools, agents.adapters)


def find_benchmark(config: BenchmarkConfig, base_dir: Path) -> Benchmark:
    """Open the benchmark that ``[benchmark]`` names.

    Raises:
        ConfigError: it does not exist or is invalid.
    """
    repos: Path | None = None
    if config.repos is not None:
        repos = (base_dir / config.repos.expanduser()).absolute()
        if not repos.is_dir():
            raise ConfigError(f"benchmark.repos: {repos} is not a folder")
    if config.path == QUICKSTART:
        return open_benchmark(quickstart_folder(), repos=repos)
    return open_benchmark(base_dir / Path(config.path).expanduser(), repos=repos)


def cache_dir(warn: Callable[[str], None]) -> Path:
    """Return the folder that caches trees, archives, clones and matches: ``$XDG_CACHE_HOME/codetaste``.

    If it is not writable, a temporary folder of this user is used instead, and reported through ``warn``.
    """
    from codetaste.rules.engine_install import private_temporary_folder  # noqa: PLC0415 - not for a dry run

    xdg = os.environ.get("XDG_CACHE_HOME", "")
    home = os.path.expanduser("~")  # noqa: PTH111 - Path.expanduser fails if the user has no home
    default = (Path(xdg) if Path(xdg).is_absolute() else Path(home) / ".cache") / "codetaste"
    reason = _unwritable(default)
    if not reason or (fallback := private_temporary_folder()) is None or _unwritable(fallback):
        return default
    warn(f"{default}: {reason}, so it cannot be the cache; {fallback} is used instead")
    return fallback


def _unwritable(folder: Path) -> str:
    """Return why ``folder``, which is created, cannot be written; "" if it can."""
    if not folder.is_absolute():
        return "this user has no home"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(b"x")
    except OSError as error:
        return error.strerror or str(error)
    return ""


async def open_scanner(
    config: RulesConfig, ignore: str, warn: Callable[[str], None], *, cache: Path | None = None
) -> tuple[Scanner, RuleEngine]:
    """Find the rule engine, and return it with a scanner that skips files matching ``ignore`` (file text).

    ``warn`` is called, from any thread, with messages for the user during scans. ``cache`` is the result of
    ``cache_dir``, if it is already known.

    Raises:
        ToolMissing: there is no engine; the message says how to install it.
    """
    from codetaste.rules.cache_keys import engine_cache_name  # noqa: PLC0415 - not for a dry run
    from codetaste.rules.cache_store import MatchStore  # noqa: PLC0415
    from codetaste.rules.engine_install import find_rule_engine  # noqa: PLC0415
    from codetaste.rules.incremental import IncrementalScanner  # noqa: PLC0415
    from codetaste.rules.opengrep import OpenGrep, RuleEngineLimits  # noqa: PLC0415
    from codetaste.rules.scan import FullScanner  # noqa: PLC0415

    engine = await find_rule_engine(config.opengrep)
    processes = anyio.CapacityLimiter(config.processes)
    grep = OpenGrep(engine, limits=RuleEngineLimits(wall_s=config.scan_limit), processes=processes)
    if config.cache == "off" or not (name := engine_cache_name(engine)):
        return FullScanner(grep, ignore), engine
    if config.cache is not None:
        folder = config.cache.absolute()
    else:
        folder = (await to_thread.run_sync(cache_dir, warn) if cache is None else cache) / "matches"
    store = MatchStore(folder, name, size=config.cache_size, warn=warn)
    return IncrementalScanner(grep, store, ignore), engine


async def open_discovery_context(
    benchmark: Benchmark,
    out: Path,
    rules: RulesConfig,
    sandbox: SandboxConfig,
    warn: Callable[[str], None],
) -> DiscoveryContext:
    """Find and try the rule engine and the containment of commands for rule discovery.

    ``warn`` is called, from any thread, with later messages for the user.

    Raises:
        ToolMissing: one of them is not available; the message says how to install it.
    """
    from codetaste.flows import discover  # noqa: PLC0415 - not for a dry run
    from codetaste.sandbox.engine import choose_engine  # noqa: PLC0415
    from codetaste.sandbox.local import read_only_shell  # noqa: PLC0415

    ignore = benchmark.ignore_text()
    cache = await to_thread.run_sync(cache_dir, warn)
    scanner, engine = await open_scanner(rules, ignore, warn, cache=cache)
    try:
        containment = await to_thread.run_sync(choose_engine, sandbox.shell_engine)
    except SandboxError as error:
        raise ToolMissing(str(error)) from error
    rg = find_ripgrep()
    programs = {"rg": rg} if rg else {}

    def open_shell(tree: Path) -> Shell:
        return read_only_shell(tree, tools=programs, engine=containment)

    return discover.DiscoveryContext(
        benchmark=benchmark,
        out=out,
        cache=cache,
        scanner=scanner,
        open_shell=open_shell,
        command_memory=sandbox.shell_memory_bytes,
        engine_version=engine.version,
        engine_label=engine.label,
        ignore_text=ignore,
        warnings=tuple(filter(None, [engine.warning])),
    )


def find_ripgrep() -> Path | None:
    """Return the path of the ripgrep installed with codetaste, or of the system's."""
    import shutil  # noqa: PLC0415 - small, but only here
    import sysconfig  # noqa: PLC0415

    packaged = Path(sysconfig.get_path("scripts")) / "rg"
    path = str(packaged) if packaged.is_file() else shutil.which("rg")
    return Path(path) if path else None


@asynccontextmanager
async def open_models(assembly: ResolvedConfig, record_dir: Path) -> AsyncIterator[dict[str, MeteredModel]]:
    """Create the models that the flows use, by id, and close them at the end.

    Raises:
        ConfigError: one line for each model that cannot be created (a missing script or key).
    """
    from codetaste.llm.limiters import LimiterRegistry  # noqa: PLC0415 - not for a dry run
    from codetaste.llm.metered import build_metered_model  # noqa: PLC0415

    problems: list[str] = []
    models: dict[str, MeteredModel] = {}
    limiters = LimiterRegistry()
    async with AsyncExitStack() as stack:
        for config in assembly.used_models():
            try:
                model = build_metered_model(
                    config, base_dir=assembly.base_dir, record_dir=record_dir, limiters=limiters
                )
            except ConfigError as error:
                problems.extend(error.problems)
                continue
            stack.push_async_callback(model.aclose)
            models[config.id] = model
        if problems:
            raise ConfigError(*problems)
        yield models


def model_fingerprint(config: ModelConfig, base_dir: Path) -> str:
    """Return a hash of the settings that decide a model's replies, without its address and price."""
    settings = config.model_dump(mode="json", include={"provider", "model", "options", "max_output_tokens"})
    path, _, function = config.model.rpartition(":")
    if config.provider == "scripted" and (script := base_dir / path).is_file():
        # The content of the file decides, not its path.
        settings |= {"model": function, "script": sha256(script.read_bytes()).hexdigest()}
    return sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()
