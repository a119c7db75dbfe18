"""The config of a run: one TOML file, typed, with every mistake in it reported at once.

The model of each section stands beside what the section configures; here they come together.
"""

from __future__ import annotations

import difflib
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from pydantic import BaseModel, Field, ValidationError

from codetaste.benchmark.config import BenchmarkConfig
from codetaste.errors import ConfigError
from codetaste.flows.passes import DiscoverConfig
from codetaste.llm.config import ModelConfig
from codetaste.rules.config import RulesConfig
from codetaste.sandbox.config import SandboxConfig
from codetaste.section import Section
from codetaste.units import Seconds, Usd

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

NAME_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$"


class RunConfig(Section):
    """``[run]``: what the run is called, where it goes, and what it may use in all."""

    name: str = Field(pattern=NAME_PATTERN)
    """The folder under ``out``."""
    out: Path = Path("runs")
    """Where runs go; relative to where the command is started."""
    budget_usd: Usd | None = None
    """US dollars for all flows, models and agents together."""
    time_limit: Seconds | None = None
    """Wall time of the whole run."""
    concurrency: int = Field(default=64, ge=1, le=100_000)
    """Jobs in flight."""


class Config(Section):
    """A whole config file. A flow's section that is present is a flow that runs."""

    run: RunConfig
    benchmark: BenchmarkConfig
    sandbox: SandboxConfig = SandboxConfig()
    rules: RulesConfig = RulesConfig()
    models: tuple[ModelConfig, ...] = ()
    discover: DiscoverConfig | None = None

    def model_by_id(self, name: str) -> ModelConfig:
        """Return the model that the file calls ``name``; it was checked to be there."""
        return next(model for model in self.models if model.id == name)

    def labels(self) -> dict[str, str]:
        """What to call each model before people, by id: one that a program plays says so."""
        played = {model.id for model in self.models if model.provider == "scripted"}
        return {
            model.id: f"{model.id}, scripted" if model.id in played - {"scripted"} else model.id
            for model in self.models
        }


def read_config(path: Path, settings: Sequence[str] = ()) -> Config:
    """Read a config file, with ``settings`` like "run.budget_usd=5" laid over it.

    Raises:
        ConfigError: one line for each mistake, with file, key, and the nearest valid name.
    """
    import tomli  # noqa: PLC0415 - only here

    try:
        raw = tomli.loads(path.read_text("utf-8-sig"), parse_float=Decimal)
    except FileNotFoundError:
        raise ConfigError(f"{path}: no such file{_nearest_file(path)}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: cannot be read: {error}") from None
    except (tomli.TOMLDecodeError, RecursionError) as error:
        raise ConfigError(f"{path}: not valid TOML: {error}") from None
    for setting in settings:
        _lay_over(raw, setting)
    try:
        config = Config.model_validate(raw)
    except ValidationError as error:
        raise ConfigError(*(f"{path}: {line}" for line in _problems(error, raw))) from None
    problems = [f"{path}: {line}" for line in _undefined_ids(config)]
    if problems:
        raise ConfigError(*problems)
    return config


def _nearest_file(path: Path) -> str:
    folder = path.parent if path.parent.is_dir() else Path()
    return suggestion(path.name, [each.name for each in folder.glob("*.toml")])


def suggestion(word: str, known: Sequence[str]) -> str:
    """Return " (did you mean 'x'?)" for the nearest of ``known``, or the known names, or nothing."""
    near = difflib.get_close_matches(word, known, n=1, cutoff=0.5)
    if near:
        return f" (did you mean {near[0]!r}?)"
    return f" (known: {', '.join(sorted(known))})" if known else ""


def _lay_over(raw: dict[str, Any], setting: str) -> None:
    """Put ``a.b=c`` into ``raw``; ``models.ID.key`` and ``models.0.key`` reach into lists of tables."""
    key, separator, text = setting.partition("=")
    parts = key.strip().split(".")
    if not separator or not all(parts):
        raise ConfigError(f"--set {_shown(setting)}: write it as section.key=value")
    node: Any = raw
    for part in parts[:-1]:
        node = _step(node, part, setting)
    if not isinstance(node, dict):
        raise ConfigError(f"--set {_shown(setting)}: {'.'.join(parts[:-1])} is not a table")
    node[parts[-1]] = _toml_value(text)


def _step(node: Any, part: str, setting: str) -> Any:  # noqa: ANN401 - TOML data
    if isinstance(node, dict):
        return node.setdefault(part, {})
    if isinstance(node, list):
        tables = {str(index): table for index, table in enumerate(node)}
        tables |= {str(table["id"]): table for table in node if isinstance(table, dict) and "id" in table}
        if part in tables:
            return tables[part]
        raise ConfigError(f"--set {_shown(setting)}: there is no {part!r}{suggestion(part, list(tables))}")
    raise ConfigError(f"--set {_shown(setting)}: {part!r} is not a table")


def _toml_value(text: str) -> Any:  # noqa: ANN401 - TOML data
    """Read ``text`` as a TOML value, and as plain words where it is none."""
    import tomli  # noqa: PLC0415 - only here

    try:
        return tomli.loads(f"value = {text}", parse_float=Decimal)["value"]
    except (tomli.TOMLDecodeError, RecursionError):
        return text


def _problems(error: ValidationError, raw: Mapping[str, Any]) -> Iterator[str]:
    """Say each validation error in one line, by the key as the person wrote it."""
    for fault in error.errors(include_url=False):
        key = _key(fault["loc"], raw)
        if fault["type"] == "extra_forbidden":
            name = str(fault["loc"][-1])
            yield f"{key}: unknown key{suggestion(name, _fields_at(fault['loc'][:-1]))}"
        elif fault["type"] == "missing":
            yield f"{key}: missing"
        else:
            said = fault["msg"].removeprefix("Value error, ")
            given = fault["input"]
            shown = "" if isinstance(given, dict | list) or repr(given) in said else f" (it is {given!r})"
            yield f"{key}: {said}{shown}"


def _key(location: Sequence[int | str], raw: Mapping[str, Any]) -> str:
    """Name a place: ``models[sonnet].price.input``; a table in a list goes by its id where it has one."""
    node: Any = raw
    said = ""
    for part in location:
        try:
            node = node[part]
        except (KeyError, IndexError, TypeError):
            node = None
        if isinstance(part, int):
            name = node.get("id", part) if isinstance(node, dict) else part
            said += f"[{name}]"
        else:
            said += f".{part}" if said else part
    return _shown(said)


def _shown(text: str) -> str:
    """Return ``text`` as it stands, and quoted where it would not stay in its line."""
    return text if text.isprintable() else repr(text)


def _fields_at(location: Sequence[int | str]) -> list[str]:
    """The keys that a table may have."""
    model: Any = Config
    for part in location:
        if isinstance(part, int):
            continue
        fields = getattr(model, "model_fields", {})
        if part not in fields:
            return []
        model = _model_in(fields[part].annotation)
    return list(getattr(model, "model_fields", {}))


def _model_in(annotation: Any) -> Any:  # noqa: ANN401 - a type
    """The pydantic model inside ``tuple[Model, ...]`` or ``Model | None``."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next(filter(None, map(_model_in, get_args(annotation))), None)


def _undefined_ids(config: Config) -> Iterator[str]:
    """What single sections cannot see: ids used twice, and ids that nobody defines."""
    known = [model.id for model in config.models]
    for name in sorted({name for name in known if known.count(name) > 1}):
        yield f"models[{name}].id: used twice"
    for name in config.discover.models if config.discover else ():
        if name not in known:
            yield f"discover.models: no [[models]] has the id {name!r}{suggestion(name, known)}"
