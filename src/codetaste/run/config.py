"""The config of a run: one typed TOML file, whose errors are all reported together.

The model of each section is defined next to the code that it configures; this module combines them.
"""

from __future__ import annotations

import os
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ConfigDict, Field, ValidationError, model_validator

from codetaste.benchmark.config import BenchmarkConfig
from codetaste.benchmark.layout import GOLDEN, NULL
from codetaste.case_study.config import CaseStudyConfig, name_studied_benchmark
from codetaste.core.section import FilePath, Section, read_toml, validation_messages
from codetaste.core.text import did_you_mean, quoted
from codetaste.core.units import Seconds, Usd
from codetaste.environment.config import EnvironmentConfig
from codetaste.errors import ConfigError
from codetaste.evaluation.config import EvaluateConfig
from codetaste.flows.describe.plan import DescribeConfig
from codetaste.flows.discover.plan import DiscoverConfig
from codetaste.flows.infer.plan import TrackConfig
from codetaste.flows.mine.plan import MineConfig
from codetaste.harness.config import AgentConfig
from codetaste.llm.config import ModelConfig
from codetaste.rules.config import RulesConfig
from codetaste.sandbox.config import SandboxConfig
from codetaste.swe_refactor.config import StrategyConfig, SweRefactorConfig

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

MINED_BENCHMARK = "benchmark"
"""The folder of a run with the benchmark that it mines."""
NAME_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$"


class RunConfig(Section):
    """``[run]``: name and location of the run, and its limits."""

    name: str = Field(pattern=NAME_PATTERN)
    """The folder under ``out``."""
    out: FilePath = Path("runs")
    """Folder of all runs, relative to the config file."""
    budget_usd: Usd | None = None
    """US dollars for all flows, models and agents together."""
    time_limit: Seconds | None = None
    """Wall time of the whole run."""
    concurrency: int = Field(default=64, ge=1, le=100_000)
    """Jobs in flight."""
    prompts: FilePath | None = None
    """A folder with prompts of your own, relative to the config file: each ``NAME.md`` in it replaces the one
    of that name in ``prompts/``."""


FLOW_SECTIONS = (
    *("mine", "describe", "discover", "environment", "evaluate", "tracks"),
    *("swe_refactor", "case_study"),
)
"""The sections that enable flows."""
_MAKES_BENCHMARK = ("mine", "swe_refactor")
"""Sections of runs that make their own benchmark."""


def _may_mine(schema: dict[str, Any]) -> None:
    """A run that mines its benchmark, builds instances of SWE-Refactor or studies another run names none."""
    schema["required"] = [name for name in schema["required"] if name != "benchmark"]
    schema["anyOf"] = [{"required": [name]} for name in ("benchmark", *_MAKES_BENCHMARK, "case_study")]


class Config(Section):
    """A whole config file. Each section of a flow that is present enables the flow; tracks are inference."""

    model_config = ConfigDict(json_schema_extra=_may_mine)

    run: RunConfig
    benchmark: BenchmarkConfig
    sandbox: SandboxConfig = SandboxConfig()
    rules: RulesConfig = RulesConfig()
    models: tuple[ModelConfig, ...] = ()
    agents: tuple[AgentConfig, ...] = ()
    tracks: tuple[TrackConfig, ...] = ()
    describe: DescribeConfig | None = None
    mine: MineConfig | None = None
    discover: DiscoverConfig | None = None
    environment: EnvironmentConfig | None = None
    evaluate: EvaluateConfig | None = None
    swe_refactor: SweRefactorConfig | None = None
    case_study: CaseStudyConfig | None = None

    @model_validator(mode="before")
    @classmethod
    def _mined_benchmark(cls, data: Any) -> Any:  # noqa: ANN401 - TOML data
        """A run that mines has its own benchmark, in its folder."""
        makes = isinstance(data, dict) and any(name in data for name in _MAKES_BENCHMARK)
        if makes and isinstance(run := data.get("run"), dict):
            folder = Path(str(run.get("out", "runs"))) / str(run.get("name", "")) / MINED_BENCHMARK
            return {**data, "benchmark": data.get("benchmark", {"path": str(folder)})}
        return data

    def model_by_id(self, name: str) -> ModelConfig:
        """Return the model with the id ``name``, which was checked to exist."""
        return next(model for model in self.models if model.id == name)

    def used_agents(self) -> list[AgentConfig]:
        """Return the agents that some flow uses."""
        return [
            agent
            for agent in self.agents
            if agent in (self.setup_agent(), self.studying_agent())
            or any(track.includes(agent.id) for track in self.tracks)
            or any(strategy.includes(agent.id) for strategy in self.strategies())
        ]

    def strategies(self) -> tuple[StrategyConfig, ...]:
        """Return the strategies of ``[swe_refactor]``."""
        return () if self.swe_refactor is None else self.swe_refactor.strategies

    def setup_agent(self) -> AgentConfig | None:
        """Return the agent that sets up environments, which was checked to exist; None for no agent."""
        wanted = None if self.environment is None else self.environment.agent
        return next((agent for agent in self.agents if agent.id == wanted), None)

    def studying_agent(self) -> AgentConfig | None:
        """Return the agent that makes case studies, which was checked to exist; None without any."""
        wanted = None if self.case_study is None else self.case_study.agent
        return next((agent for agent in self.agents if agent.id == wanted), None)

    @property
    def makes_benchmark(self) -> bool:
        """Whether its jobs are not known before it runs: it mines a benchmark, or builds instances."""
        return self.mine is not None or (
            self.swe_refactor is not None and self.swe_refactor.build is not None
        )

    def scripted_models(self) -> list[str]:
        """Return the ids of the scripted models."""
        return [model.id for model in self.models if model.provider == "scripted"]

    def labels(self) -> dict[str, str]:
        """Return the display name of each model, by id: scripted models are marked as such."""
        shown = {name: f"{name}, scripted" for name in self.scripted_models() if name != "scripted"}
        return {model.id: shown.get(model.id, model.id) for model in self.models}


def read_config(path: Path, settings: Sequence[str] = ()) -> Config:
    """Read a config file; ``settings`` like "run.budget_usd=5" override its values.

    Raises:
        ConfigError: one line for each problem, with file, key, and the closest valid name.
    """
    return check_config(read_data(path, settings), path)


def read_data(path: Path, settings: Sequence[str] = ()) -> dict[str, Any]:
    """Read the data of a config file; ``settings`` override its values.

    Raises:
        ConfigError: the file cannot be read, or a setting names no place in it.
    """
    try:
        raw = read_toml(path, Decimal)
    except FileNotFoundError:
        folder = path.parent if path.parent.is_dir() else Path()
        near = did_you_mean(path.name, [each.name for each in folder.glob("*.toml")])
        raise ConfigError(f"{path}: no such file{near}") from None
    for setting in settings:
        _override(raw, setting)
    return raw


def check_config(raw: dict[str, Any], path: Path) -> Config:
    """Return the config with the data ``raw``, which was read from ``path``.

    Raises:
        ConfigError: one line for each problem, with file, key, and the closest valid name.
    """
    name_studied_benchmark(raw, path)
    try:
        config = Config.model_validate(raw)
    except ValidationError as error:
        raise ConfigError(*(f"{path}: {line}" for line in validation_messages(error, raw, Config))) from None
    problems = [f"{path}: {line}" for line in _cross_section_problems(config)]
    if problems:
        raise ConfigError(*problems)
    return config


def runs_folder(config_file: Path, out: Path) -> Path:
    """Return the folder ``[run] out`` of a config file, relative to the working directory if below it."""
    out = out.expanduser()
    # With "..", the folder above is that of the file, not that of a link to its folder.
    parent = Path(os.path.realpath(config_file.parent)) if ".." in out.parts else config_file.parent
    folder = Path(os.path.normpath(parent.absolute() / out))
    try:
        here = Path.cwd()
    except FileNotFoundError:  # it was removed
        return folder
    for place in (here, Path(os.path.realpath(here))):
        if folder.is_relative_to(place):
            return folder.relative_to(place)
    return folder


def _override(raw: dict[str, Any], setting: str) -> None:
    """Apply ``a.b=c`` to ``raw``; ``models.ID.key`` and ``models.0.key`` address tables in lists."""
    key, separator, text = setting.partition("=")
    parts = key.strip().split(".")
    if not separator or not all(parts):
        raise ConfigError(f"--set {quoted(setting)}: write it as section.key=value")
    node: Any = raw
    for part in parts[:-1]:
        node = _child(node, part, setting)
    if not isinstance(node, dict):
        raise ConfigError(f"--set {quoted(setting)}: {'.'.join(parts[:-1])} is not a table")
    node[parts[-1]] = _toml_value(text)


def _child(node: Any, part: str, setting: str) -> Any:  # noqa: ANN401 - TOML data
    if isinstance(node, dict):
        return node.setdefault(part, {})
    if isinstance(node, list):
        tables = {str(index): table for index, table in enumerate(node)}
        tables |= {str(table["id"]): table for table in node if isinstance(table, dict) and "id" in table}
        if part in tables:
            return tables[part]
        raise ConfigError(f"--set {quoted(setting)}: no table {part!r}{did_you_mean(part, list(tables))}")
    raise ConfigError(f"--set {quoted(setting)}: {part!r} is not a table")


def _toml_value(text: str) -> Any:  # noqa: ANN401 - TOML data
    """Parse ``text`` as a TOML value; text that is not TOML is a string."""
    import tomli  # noqa: PLC0415 - only here

    try:
        return tomli.loads(f"value = {text}", parse_float=Decimal)["value"]
    except (tomli.TOMLDecodeError, RecursionError):
        return text


def _cross_section_problems(config: Config) -> Iterator[str]:
    """Find problems between sections: ids that are used twice or not defined."""
    known = [model.id for model in config.models]
    for name in _duplicates(known):
        yield f"models[{name}].id: used twice"
    yield from _unknown_models(config, known)
    for name in _duplicates([agent.id for agent in config.agents]):
        yield f"agents[{name}].id: used twice"
    for agent in config.agents:
        if agent.model not in known:
            yield (
                f"agents[{agent.id}].model: no [[models]] has the id {agent.model!r}"
                f"{did_you_mean(agent.model, known)}"
            )
    yield from _agent_problems(config)
    for number, track in enumerate(config.tracks):
        for problem in _track_problems(track, config):
            yield f"tracks[{number}]{problem}"
    yield from _duplicate_tracks(config)
    yield from _evaluation_problems(config)
    yield from _construction_problems(config)
    yield from _strategy_problems(config)


def _construction_problems(config: Config) -> Iterator[str]:
    """Check that no other flow is beside one that works on another run, or on instances of its own kind."""
    for section in ("swe_refactor", "case_study"):
        for name in FLOW_SECTIONS if getattr(config, section) is not None else ():
            if name != section and getattr(config, name):
                yield f"{name}: [{section}] is for a config of its own; remove one of both"


def _strategy_problems(config: Config) -> Iterator[str]:
    """Check the models and agents of strategies, and that a flow has any."""
    models = [model.id for model in config.models]
    agents = [agent.id for agent in config.agents]
    for number, strategy in enumerate(config.strategies()):
        key = f"swe_refactor.strategies[{number}]"
        retrieval = strategy.retrieval
        named = [("models", name) for name in strategy.models or ()]
        named += [("reviewer", strategy.reviewer)] if strategy.reviewer is not None else []
        if retrieval is not None:
            named += [(f"retrieval.{place}", name) for place, name in retrieval.models()]
        for place, name in named:
            if name not in models:
                yield f"{key}.{place}: no [[models]] has the id {name!r}{did_you_mean(name, models)}"
        for name in strategy.agents or ():
            if name not in agents:
                yield f"{key}.agents: no [[agents]] has the id {name!r}{did_you_mean(name, agents)}"
        if strategy.uses_agents and not agents:
            yield f"{key}: no [[agents]] are configured"
        if not strategy.uses_agents and not models:
            yield f"{key}: no [[models]] are configured"


def _unknown_models(config: Config, known: Sequence[str]) -> Iterator[str]:
    """Find models of the flows that are not defined."""
    named = [("discover.models", name) for name in (config.discover.models if config.discover else ())]
    if config.describe is not None:
        named.append(("describe.model", config.describe.model))
    if config.mine is not None:
        named.append(("mine.scoring.model", config.mine.scoring.model))
    for key, name in named:
        if name not in known:
            yield f"{key}: no [[models]] has the id {name!r}{did_you_mean(name, known)}"


def _agent_problems(config: Config) -> Iterator[str]:
    """Find agents of the flows that are not defined."""
    agents = [agent.id for agent in config.agents]
    named = [("environment", None if config.environment is None else config.environment.agent)]
    named += [("case_study", None if config.case_study is None else config.case_study.agent)]
    for section, wanted in named:
        if wanted is not None and wanted not in agents:
            yield f"{section}.agent: no [[agents]] has the id {wanted!r}{did_you_mean(wanted, agents)}"


def _duplicates(names: Sequence[str]) -> list[str]:
    return sorted({name for name in names if names.count(name) > 1})


def _track_problems(track: TrackConfig, config: Config) -> Iterator[str]:
    known = [model.id for model in config.models]
    if track.judge is not None and track.judge not in known:
        yield f".judge: no [[models]] has the id {track.judge!r}{did_you_mean(track.judge, known)}"
    agents = list(dict.fromkeys(agent.id for agent in config.agents))
    for name in track.agents or ():
        if name not in agents:
            yield f".agents: no [[agents]] has the id {name!r}{did_you_mean(name, agents)}"
    if not agents:
        yield ": no [[agents]] are configured"


def _evaluation_problems(config: Config) -> Iterator[str]:
    """Check that agent ids do not clash with the pseudo agents and that ``evaluate.rules`` names a finder."""
    if config.evaluate is None:
        return
    for agent in config.agents:
        if agent.id in {GOLDEN, NULL}:
            yield f"agents[{agent.id}].id: [evaluate] adds a pseudo agent of this id; use another id"
    by = config.evaluate.discovery_model
    if by is None:
        return
    finders = config.discover.models if config.discover else ()
    if by not in finders:
        yield (
            f"evaluate.rules: [discover] has no model {by!r}{did_you_mean(by, finders)}; "
            'write "benchmark" for the benchmark\'s own rules'
        )


def _duplicate_tracks(config: Config) -> Iterator[str]:
    """Find tables that define the same trials: these would use the same folders."""
    numbers: dict[tuple[str, str], int] = {}
    for number, track in enumerate(config.tracks):
        for name in dict.fromkeys(agent.id for agent in config.agents):
            if not track.includes(name):
                continue
            first = numbers.setdefault((track.name, name), number)
            if first != number:
                yield (
                    f"tracks[{number}]: tracks[{first}] already has {track.name} for the agent {name!r}; "
                    "to run more trials set attempts"
                )
