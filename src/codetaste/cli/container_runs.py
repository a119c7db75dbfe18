"""Runs in containers that commands make of their own options: environments proven by hand, tests measured."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from anyio import to_thread
from cyclopts import Parameter
from cyclopts.validators import Number
from pydantic import ValidationError

from codetaste.cli.measure_tests import measure_tests
from codetaste.cli.options import Flag, OptionalPath, Several  # noqa: TC001 - cyclopts reads them
from codetaste.core.section import validation_messages
from codetaste.errors import ConfigError
from codetaste.evaluation.config import EvaluateConfig
from codetaste.run.config import Config
from codetaste.run.execute import run_and_report
from codetaste.run.plan import RunOptions, plan_config

if TYPE_CHECKING:
    from collections.abc import Sequence

    from codetaste.flows.evaluate.measured_tests import MeasuredTests
    from codetaste.flows.evaluate.plan import EvaluationTask

_PLACE = Path("options")
"""Stands for the config file in messages; paths are relative to the working directory."""


@dataclass(frozen=True, kw_only=True)
class ContainerOptions:
    """Options of the commands that run scripts of instances in containers."""

    runs: Path = Path("runs")
    """The folder of runs, where such a command has a run of its own and continues where an earlier call
    ended."""
    image: str = ""
    """The image that environments are made from; default that of image build --polyglot."""
    host: Several = ()
    """A host that the setup scripts may reach, besides the registries of this machine's tools."""
    no_registries: Flag = False
    """Let the scripts reach no registry."""
    engine: str = "auto"
    """docker, podman, or auto for the first that responds."""
    socket: OptionalPath = None
    """The engine's socket; default DOCKER_HOST, CONTAINER_HOST or the usual paths."""


DEFAULT_CONTAINERS = ContainerOptions()
BaselineRuns = Annotated[int, Parameter(validator=Number(gte=1, lte=1000))]
DEFAULT_BASELINE_RUNS = EvaluateConfig().baseline_runs


@dataclass(frozen=True, kw_only=True)
class InstanceSelection:
    """Options that select instances of a benchmark."""

    benchmark: str
    """A folder in the published layout, with the scripts of instances."""
    repos: OptionalPath = None
    """A folder of clones OWNER/REPO; otherwise each instance's own origin is used."""
    instance: Several = ()
    """Globs on instance ids; default all."""


def container_config(
    kind: str, selection: InstanceSelection, options: ContainerOptions, **sections: dict[str, Any]
) -> Config:
    """Return the config of the run ``kind-BENCHMARK``, with further sections.

    Raises:
        ConfigError: an option is invalid.
    """
    benchmark: dict[str, Any] = {"path": selection.benchmark}
    if selection.instance:
        benchmark["instances"] = list(selection.instance)
    if selection.repos is not None:
        benchmark["repos"] = str(selection.repos)
    sandbox: dict[str, Any] = {"engine": options.engine}
    if options.socket is not None:
        sandbox["socket"] = str(options.socket)
    environment = {
        "image": options.image,
        "hosts": list(options.host),
        "registries": not options.no_registries,
    }
    run = {"name": _run_name(kind, selection.benchmark), "out": str(options.runs)}
    raw = {"run": run, "benchmark": benchmark, "sandbox": sandbox, "environment": environment, **sections}
    try:
        return Config.model_validate(raw)
    except ValidationError as error:
        raise ConfigError(*validation_messages(error, raw, Config)) from None


async def run_environments(
    selection: InstanceSelection, options: ContainerOptions, only: Sequence[str], *, as_json: bool
) -> int:
    """Run the environment flow without an agent, and return the exit code.

    Raises:
        ConfigError: an option is invalid, or names something missing.
    """
    config = container_config("environment", selection, options)
    planned = await to_thread.run_sync(plan_config, config, _PLACE, only)
    return await run_and_report(planned, RunOptions(as_json=as_json))


async def run_tests(
    selection: InstanceSelection,
    options: ContainerOptions,
    tasks: Sequence[EvaluationTask],
) -> dict[str, MeasuredTests | str] | None:
    """Measure the tests of ``tasks`` (see ``measure_tests``).

    Raises:
        ConfigError: an option is invalid, or names something missing.
        SandboxMissing: there is no container engine, or no base image.
    """
    config = container_config("tests", selection, options)
    return await measure_tests(await to_thread.run_sync(plan_config, config, _PLACE), tasks)


def _run_name(kind: str, benchmark: str) -> str:
    folder = re.sub(r"[^A-Za-z0-9._-]+", "-", Path(benchmark).absolute().name).strip("-.")
    return f"{kind}-{folder or 'benchmark'}"[:100]
