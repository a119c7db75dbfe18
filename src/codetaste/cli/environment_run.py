"""Runs that commands make of their own options: environments that are proven by hand."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from codetaste.cli.options import Flag, OptionalPath, Several  # noqa: TC001 - cyclopts reads them
from codetaste.core.section import validation_messages
from codetaste.errors import ConfigError
from codetaste.run.config import Config
from codetaste.run.execute import run_and_report
from codetaste.run.plan import RunOptions, plan_config

if TYPE_CHECKING:
    from collections.abc import Sequence

_PLACE = Path("options")
"""Stands for the config file in messages; paths are relative to the working directory."""


@dataclass(frozen=True, kw_only=True)
class EnvironmentOptions:
    """Options of the commands that prove environments."""

    benchmark: str
    """A folder in the published layout, with the scripts of instances."""
    repos: OptionalPath = None
    """A folder of clones OWNER/REPO; otherwise each instance's own origin is used."""
    instance: Several = ()
    """Globs on instance ids; default all."""
    image: str = ""
    """The image that environments are made from; default that of image build --polyglot."""
    host: Several = ()
    """A host that the setup scripts may reach, besides the registries of this machine's tools."""
    no_registries: Flag = False
    """Let the scripts reach no registry."""
    out: Path = Path("runs")
    """Folder of runs; the results are in OUT/environment-BENCHMARK/environment."""
    engine: str = "auto"
    """docker, podman, or auto for the first that responds."""
    socket: OptionalPath = None
    """The engine's socket; default DOCKER_HOST, CONTAINER_HOST or the usual paths."""

    def config(self, name: str) -> dict[str, Any]:
        """Return the config of the run ``name``."""
        benchmark: dict[str, Any] = {"path": self.benchmark, "instances": list(self.instance)}
        if self.repos is not None:
            benchmark["repos"] = str(self.repos)
        sandbox: dict[str, Any] = {"engine": self.engine}
        if self.socket is not None:
            sandbox["socket"] = str(self.socket)
        environment = {
            "image": self.image,
            "hosts": list(self.host),
            "registries": not self.no_registries,
        }
        run = {"name": name, "out": str(self.out)}
        return {"run": run, "benchmark": benchmark, "sandbox": sandbox, "environment": environment}


async def run_environments(options: EnvironmentOptions, only: Sequence[str], *, as_json: bool) -> int:
    """Run the environment flow without an agent, and return the exit code.

    Raises:
        ConfigError: an option is invalid, or names something missing.
    """
    raw = options.config(_run_name(options.benchmark))
    try:
        config = Config.model_validate(raw)
    except ValidationError as error:
        raise ConfigError(*validation_messages(error, raw, Config)) from None
    return await run_and_report(plan_config(config, _PLACE, only), RunOptions(as_json=as_json))


def _run_name(benchmark: str) -> str:
    folder = re.sub(r"[^A-Za-z0-9._-]+", "-", Path(benchmark).absolute().name).strip("-.")
    return f"environment-{folder or 'benchmark'}"[:100]
