"""What is tried before a setup agent is called: existing scripts, and environments of neighbours."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from anyio import to_thread

from codetaste.benchmark.layout import scripts_folder
from codetaste.environment.images.existing import find_image
from codetaste.environment.neighbours import KnownEnvironment, neighbours, read_environments
from codetaste.environment.project import dependencies_digest
from codetaste.environment.record import EnvironmentRecord, read_record
from codetaste.environment.scripts import EnvironmentScripts, read_scripts
from codetaste.flows.environment.publish import environments_root
from codetaste.source.checkout import checkout_trees

if TYPE_CHECKING:
    from codetaste.benchmark.instance import Instance
    from codetaste.flows.environment.context import EnvironmentContext
    from codetaste.flows.environment.plan import EnvironmentTask

BENCHMARK = "benchmark"
"""The source of scripts that the benchmark has for the instance itself."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """Scripts and the image that they run in, to be tried by the gates.

    ``source`` says where they come from: "benchmark", "neighbour ID", "agent ID". ``published`` tells that
    their record says that they make an environment of this very instance.
    """

    source: str
    image: str
    scripts: EnvironmentScripts
    published: bool = False


async def find_candidates(task: EnvironmentTask, context: EnvironmentContext) -> list[Candidate]:
    """Return the candidates for an instance, the most likely ones first.

    Raises:
        ConfigError: the instance has scripts that cannot be used; the message says why.
        SourceError: the trees cannot be checked out.
    """
    root, found = context.benchmark.root, list[Candidate]()
    folder = scripts_folder(root, task.instance)
    if await to_thread.run_sync(folder.is_dir):
        scripts = await to_thread.run_sync(read_scripts, folder)
        record = await to_thread.run_sync(read_record, root, task.instance)
        image = await _setup_image(record, context)
        published = record is not None and bool(record.metadata.has_execution_environment)
        found.append(Candidate(BENCHMARK, image, scripts, published))
    if context.config.neighbours and task.proves:
        for each in await _neighbours(task.instance, context):
            image = await _setup_image(each.record, context)
            found.append(Candidate(f"neighbour {each.instance.id}", image, each.scripts))
    return found


async def _setup_image(record: EnvironmentRecord | None, context: EnvironmentContext) -> str:
    """Return the setup image of a record if it is there, else the base image.

    In the base image only what the scripts themselves install is there.
    """
    details = None if record is None else record.details
    ident = details.setup_image.id if details is not None and details.setup_image is not None else ""
    named = "" if record is None else record.metadata.setup_image or ""
    for name in filter(None, (ident, named)):
        if await find_image(context.suites.sandboxes, name):
            return name
    return context.base_image


async def _neighbours(instance: Instance, context: EnvironmentContext) -> tuple[KnownEnvironment, ...]:
    """Return the proven environments of the same repository, of this run and of the benchmark."""
    others = [each for each in context.benchmark.instances if each.id != instance.id]
    known: dict[str, KnownEnvironment] = {}
    for root in (context.benchmark.root, environments_root(context)):
        environments, _ = await to_thread.run_sync(read_environments, root, others)
        known |= {each.instance.id: each for each in environments}
    if not known:
        return ()
    trees = await checkout_trees(context.benchmark.origin(instance), context.suites.cache)
    digest = await to_thread.run_sync(dependencies_digest, trees.base)
    return neighbours(instance, known.values(), dependencies=digest, order=context.benchmark.instances)
