"""Runs that commands make of their own options: environments by hand, baselines, one patch's tests."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from codetaste.core.section import validation_messages
from codetaste.errors import ConfigError
from codetaste.run.config import Config
from codetaste.run.execute import run_and_report
from codetaste.run.plan import RunOptions, plan_config

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, slots=True)
class EnvironmentOptions:
    """The options of the commands that prove environments; see their help."""

    benchmark: str
    repos: Path | None
    instances: Sequence[str]
    image: str
    hosts: Sequence[str]
    registries: bool
    out: Path
    engine: str
    socket: Path | None
    as_json: bool

    def config(self) -> dict[str, Any]:
        """Return the config of the run, but for its name and flows."""
        benchmark: dict[str, Any] = {"path": self.benchmark, "instances": list(self.instances)}
        if self.repos is not None:
            benchmark["repos"] = str(self.repos)
        sandbox: dict[str, Any] = {"engine": self.engine}
        if self.socket is not None:
            sandbox["socket"] = str(self.socket)
        return {"benchmark": benchmark, "sandbox": sandbox, "run": {"out": str(self.out)}}


async def run_environments(options: EnvironmentOptions, only: Sequence[str]) -> int:
    """Run the environment flow without an agent, and return the exit code.

    Raises:
        ConfigError: an option is invalid.
    """
    raw = options.config()
    raw["run"]["name"] = run_name("environment", options.benchmark)
    raw["environment"] = {
        "image": options.image,
        "hosts": list(options.hosts),
        "registries": options.registries,
    }
    return await run_config(raw, only, as_json=options.as_json)


def run_name(what: str, benchmark: str) -> str:
    """Return the name of the run that a command makes for a benchmark."""
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", Path(benchmark).absolute().name).strip("-.") or "benchmark"
    return f"{what}-{name}"[:100]


async def run_config(raw: dict[str, Any], only: Sequence[str], *, as_json: bool) -> int:
    """Plan and run the config ``raw``, whose paths are relative to the working directory.

    Raises:
        ConfigError: it is invalid, or names something missing.
    """
    try:
        config = Config.model_validate(raw)
    except ValidationError as error:
        raise ConfigError(*validation_messages(error, raw, Config)) from None
    planned = plan_config(config, Path(), only)
    return await run_and_report(planned, RunOptions(as_json=as_json))
