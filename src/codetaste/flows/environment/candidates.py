"""What is tried before a setup agent is called: existing scripts, and environments of neighbours."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from anyio import to_thread

from codetaste.benchmark.layout import scripts_folder
from codetaste.environment.existing import find_image
from codetaste.environment.record import read_record
from codetaste.environment.scripts import EnvironmentScripts, read_scripts
from codetaste.errors import ConfigError
from codetaste.flows.environment.publish import environments_root

if TYPE_CHECKING:
    from pathlib import Path

    from codetaste.benchmark.instance import Instance
    from codetaste.flows.environment.context import EnvironmentContext
    from codetaste.flows.environment.plan import EnvironmentTask

BENCHMARK = "benchmark"
"""The source of scripts that the benchmark has for the instance itself."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """Scripts and the image that they run in, to be tried by the gates.

    ``source`` says where they come from: "benchmark", "neighbour ID", "agent ID".
    """

    source: str
    image: str
    scripts: EnvironmentScripts


async def find_candidates(task: EnvironmentTask, context: EnvironmentContext) -> list[Candidate]:
    """Return the candidates for an instance, the most likely ones first.

    Raises:
        ConfigError: the instance has scripts that cannot be used; the message says why.
    """
    root, found = context.benchmark.root, list[Candidate]()
    if await to_thread.run_sync(scripts_folder(root, task.instance).is_dir):
        found.append(await _candidate(root, task.instance, BENCHMARK, context))
    if context.config.neighbours and task.proves:
        for folder, neighbour in await to_thread.run_sync(_neighbours, task.instance, context):
            try:
                found.append(await _candidate(folder, neighbour, f"neighbour {neighbour.id}", context))
            except ConfigError:
                continue  # the instance's own scripts are not concerned
    return found


async def _candidate(root: Path, instance: Instance, source: str, context: EnvironmentContext) -> Candidate:
    """Return the environment that a folder in the published layout has for an instance.

    The setup image that the record names is taken if it is there, the base image otherwise: then only what
    the scripts install is in it.
    """
    scripts = await to_thread.run_sync(read_scripts, scripts_folder(root, instance))
    record = await to_thread.run_sync(read_record, root, instance)
    image = context.base_image
    if record is not None:
        named = record.details.setup_image.id if record.details and record.details.setup_image else ""
        for name in filter(None, (named, record.metadata.setup_image)):
            if await find_image(context.suites.sandboxes, name):
                image = name
                break
    return Candidate(source, image, scripts)


def _neighbours(instance: Instance, context: EnvironmentContext) -> list[tuple[Path, Instance]]:
    """Return instances of the same repository that have scripts, those that this run has proven first."""
    repository = (instance.owner.lower(), instance.repo.lower())
    others = [
        each
        for each in context.benchmark.instances
        if (each.owner.lower(), each.repo.lower()) == repository and each.id != instance.id
    ]
    roots = (environments_root(context), context.benchmark.root)
    found: dict[str, tuple[Path, Instance]] = {}
    for root in roots:
        for each in others:
            if each.id not in found and scripts_folder(root, each).is_dir():
                found[each.id] = (root, each)
    return list(found.values())
