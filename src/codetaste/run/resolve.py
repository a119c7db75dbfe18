"""Resolve what a config names: benchmark, instances, prompts, tools and agents.

Names in the config that do not exist are reported here, all together, before anything is started.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from codetaste.agent.tool import load_tools
from codetaste.benchmark.benchmark import QUICKSTART, Benchmark, open_benchmark, quickstart_folder
from codetaste.case_study.plan import Examiner, plan_studies
from codetaste.core.files import read_regular_file
from codetaste.errors import ConfigError
from codetaste.harness.adapter import load_adapter
from codetaste.llm.price_table import (
    agent_option_problems,
    budget_problems,
    price_difference,
    price_entry,
)
from codetaste.llm.prompts import Prompts, open_prompts
from codetaste.llm.providers.retirement import retirement_note

if TYPE_CHECKING:
    from collections.abc import Mapping

    from codetaste.agent.tool import Tool
    from codetaste.benchmark.config import BenchmarkConfig
    from codetaste.benchmark.instance import Instance
    from codetaste.case_study.plan import StudyTask
    from codetaste.harness.adapter import Adapter
    from codetaste.harness.config import AgentConfig
    from codetaste.llm.config import ModelConfig
    from codetaste.llm.price_table import PriceEntry
    from codetaste.rules.config import RulesConfig
    from codetaste.run.config import Config
    from codetaste.swe_refactor.trials.plan import StrategyTrial


@dataclass(frozen=True, slots=True)
class ResolvedConfig:
    """A config with everything that it names resolved and checked; nothing is started yet."""

    config: Config
    base_dir: Path
    benchmark: Benchmark
    instances: tuple[Instance, ...]
    tools: tuple[Tool, ...]
    prompts: Prompts
    adapters: Mapping[str, Adapter] = field(default_factory=dict)
    """Adapters of the CLI agents that some track uses, by the agent's id."""
    trials: tuple[StrategyTrial, ...] = ()
    """Those of ``[[swe_refactor.strategies]]``."""
    studies: tuple[StudyTask, ...] = ()
    """Those of ``[case_study]``."""

    def used_models(self) -> tuple[ModelConfig, ...]:
        """Return the models that some flow of the config uses."""
        wanted = set(self.config.discover.models) if self.config.discover else set()
        wanted |= {self.config.describe.model} if self.config.describe else set()
        wanted |= {self.config.mine.scoring.model} if self.config.mine else set()
        wanted |= {agent.model for agent in self.config.used_agents()}
        wanted |= {track.judge for track in self.config.tracks if track.judge is not None}
        for strategy in self.config.strategies():
            wanted |= set(strategy.model_ids([model.id for model in self.config.models]))
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

    def model_fingerprints(self) -> dict[str, str]:
        """Return hashes of what determines the replies of the used models, by id."""
        return {model.id: _model_fingerprint(model, self.base_dir) for model in self.used_models()}

    def release_notes(self) -> tuple[str, ...]:
        """Return which used agents have a release that is not among the tested ones."""
        releases = (
            (agent.id, adapter.manifest.versions, adapter.choose_version(agent.version))
            for agent in self.config.used_agents()
            if (adapter := self.adapters.get(agent.id)) is not None
        )
        return tuple(
            f"agents[{name}].version: {version} is not among the tested releases ({', '.join(tested)}); "
            "it runs, but may send what a budget refuses"
            for name, tested, version in releases
            if version not in tested
        )

    def prices(self) -> dict[str, PriceEntry]:
        """Return the prices of the used models with their sources, by id."""
        return {model.id: price_entry(model) for model in self.used_models()}

    def model_notes(self) -> tuple[str, ...]:
        """Return which used models retire, and whose price is not the known one."""
        notes = []
        for model in self.used_models():
            replayed = model.protocol is None or (model.cassette is not None and model.mode == "replay")
            if not replayed and (note := retirement_note(model.model)):
                notes.append(f"models[{model.id}].model: {note}")
            notes.append(price_difference(model))
        return tuple(filter(None, notes))


def _model_fingerprint(config: ModelConfig, base_dir: Path) -> str:
    """Return a hash of the settings that decide a model's replies, without its address and price."""
    settings = config.model_dump(mode="json", include={"provider", "model", "options", "max_output_tokens"})
    if config.allow:  # what may be sent, without its price
        settings["allow"] = sorted(config.allow)
    path, _, function = config.model.rpartition(":")
    if config.provider == "scripted" and (script := base_dir / path).is_file():
        # The content of the file decides, not its path.
        settings |= {"model": function, "script": sha256(read_regular_file(script)).hexdigest()}
    return sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()


def resolve_config(config: Config, base_dir: Path) -> ResolvedConfig:
    """Resolve what ``config`` names; its paths are relative to ``base_dir``.

    Raises:
        ConfigError: one line for each name that does not exist or is not allowed there.
    """
    problems: list[str] = []
    benchmark: Benchmark | None = None
    instances: tuple[Instance, ...] = ()
    tools: tuple[Tool, ...] = ()
    prompts = Prompts()
    try:
        benchmark, instances = _select_instances(config, base_dir)
    except ConfigError as error:
        problems.extend(error.problems)
    repos = None if benchmark is None else benchmark.repos
    if repos is not None and not repos.is_dir():
        problems.append(f"benchmark.repos: {repos} is not a folder")
    if config.run.prompts is not None:
        try:
            prompts = open_prompts((base_dir / config.run.prompts.expanduser()).absolute())
        except ConfigError as error:
            problems.extend(f"run.prompts: {problem}" for problem in error.problems)
    if config.discover is not None:
        try:
            tools = load_tools(config.discover.tool_paths, base_dir=base_dir)
        except ConfigError as error:
            problems.extend(f"discover.tools: {problem}" for problem in error.problems)
        if config.run.budget_usd is not None or config.discover.budget_usd is not None:
            for name in dict.fromkeys(config.discover.models):
                problems.extend(budget_problems(config.model_by_id(name)))
    problems.extend(_describe_problems(config))
    trials = _resolve_strategies(config, base_dir, problems)
    adapters = _resolve_agents(config, base_dir, problems)
    studies = _resolve_studies(config, base_dir, instances, problems) if benchmark is not None else ()
    if problems or benchmark is None:
        raise ConfigError(*dict.fromkeys(problems))
    return ResolvedConfig(config, base_dir, benchmark, instances, tools, prompts, adapters, trials, studies)


def _resolve_studies(
    config: Config, base_dir: Path, instances: tuple[Instance, ...], problems: list[str]
) -> tuple[StudyTask, ...]:
    """Return the studies of ``[case_study]``, and add a line for each problem."""
    section, agent = config.case_study, config.studying_agent()
    if section is None or agent is None:
        return ()
    run = (base_dir / section.run.expanduser()).absolute()
    examiner = Examiner(agent, config.labels()[agent.model])
    try:
        if section.instances is None:
            return plan_studies(section, run, instances, examiner)
        from codetaste.case_study.method_trials import plan_method_studies  # noqa: PLC0415 - heavy

        return plan_method_studies(section, run, base_dir, examiner)
    except ConfigError as error:
        problems.extend(f"case_study.run: {problem}" for problem in error.problems)
        return ()


def _describe_problems(config: Config) -> list[str]:
    section = config.describe
    if section is None or (config.run.budget_usd is None and section.budget_usd is None):
        return []
    return budget_problems(config.model_by_id(section.model))


def _resolve_strategies(config: Config, base_dir: Path, problems: list[str]) -> tuple[StrategyTrial, ...]:
    """Return the trials of ``[swe_refactor]``, and add a line for each problem."""
    section = config.swe_refactor
    if section is None or section.build is not None:
        return ()
    from codetaste.swe_refactor.trials.plan import ModelNames, resolve_strategies  # noqa: PLC0415 - heavy

    models = [model.id for model in config.models]
    for strategy in section.strategies:
        if config.run.budget_usd is not None or strategy.budget_usd is not None:
            for name in strategy.model_ids(models):
                problems.extend(budget_problems(config.model_by_id(name)))
    names = ModelNames(config.labels(), config.scripted_models())
    try:
        return resolve_strategies(section, base_dir, config.agents, names)
    except ConfigError as error:
        problems.extend(error.problems)
        return ()


def _select_instances(config: Config, base_dir: Path) -> tuple[Benchmark, tuple[Instance, ...]]:
    """Return benchmark and instances; those of SWE-Refactor are no part of a benchmark.

    Raises:
        ConfigError: one line for each problem, with its key.
    """
    studies_methods = config.case_study is not None and config.case_study.instances is not None
    if config.swe_refactor is not None or studies_methods:
        return Benchmark(base_dir / config.benchmark.path, ()), ()
    key = "benchmark.path"
    try:
        benchmark = find_benchmark(config.benchmark, base_dir)
        key = "benchmark.instances"
        return benchmark, benchmark.select(config.benchmark.instances)
    except ConfigError as error:
        raise ConfigError(*(f"{key}: {problem}" for problem in error.problems)) from error


def find_benchmark(config: BenchmarkConfig, base_dir: Path) -> Benchmark:
    """Open the benchmark that ``[benchmark]`` names.

    Raises:
        ConfigError: it does not exist or is invalid.
    """
    repos = None if config.repos is None else (base_dir / config.repos.expanduser()).absolute()
    if config.path == QUICKSTART:
        return open_benchmark(quickstart_folder(), repos=repos)
    return open_benchmark(base_dir / Path(config.path).expanduser(), repos=repos)


_LOCAL_PROVIDERS = frozenset({"scripted", "replay"})
"""Providers without a server: the gateway supports every protocol for them."""


def _resolve_agents(config: Config, base_dir: Path, problems: list[str]) -> dict[str, Adapter]:
    """Load the adapters of the used CLI agents, by agent id, and add a line for each problem.

    Trials have budgets in US dollars, so the models of agents and judges must have a price.
    """
    agents = config.used_agents()
    adapters: dict[str, Adapter] = {}
    for agent in agents:
        try:
            model = config.model_by_id(agent.model)
            if agent.uses_own_loop:
                problems.extend(
                    f"agents[{agent.id}].{problem}" for problem in agent_option_problems(model, agent.options)
                )
            else:
                adapters[agent.id] = _load_checked_adapter(agent, model, base_dir)
        except ConfigError as error:
            for problem in error.problems:
                is_path = problem.startswith(("/", "./", "../"))  # otherwise it begins with a key
                problems.append(f"agents[{agent.id}]{': ' if is_path else '.'}{problem}")
    judges = [track.judge for track in config.tracks if track.judge is not None]
    for name in dict.fromkeys([*(agent.model for agent in agents), *judges]):
        problems.extend(budget_problems(config.model_by_id(name)))
    return adapters


def _load_checked_adapter(agent: AgentConfig, model: ModelConfig, base_dir: Path) -> Adapter:
    adapter = load_adapter(agent.harness, base_dir)
    adapter.choose_version(agent.version)
    adapter.resolve_options(agent.options)
    if adapter.protocol not in {"none", model.provider} and model.provider not in _LOCAL_PROVIDERS:
        raise ConfigError(
            f"model: {agent.harness} speaks the protocol of provider {adapter.protocol!r}, but the "
            f"model {model.id!r} has the provider {model.provider!r}"
        )
    return adapter
