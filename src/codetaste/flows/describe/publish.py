"""Write the descriptions of a run as a benchmark folder in the published layout."""

from __future__ import annotations

from typing import TYPE_CHECKING

from codetaste.benchmark.layout import Track, description_path
from codetaste.benchmark.publish import write_benchmark
from codetaste.errors import ConfigError
from codetaste.flows.describe.result import DescriptionResult
from codetaste.orchestration.journal.results import result_from_json

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from codetaste.benchmark.instance import Instance
    from codetaste.flows.describe.context import DescriptionContext
    from codetaste.flows.describe.plan import DescriptionTask
    from codetaste.orchestration.job import Outcome
    from codetaste.orchestration.journal.blobs import Blobs


def published_path(task: DescriptionTask, context: DescriptionContext) -> Path:
    """Return the file of a description in the run's folder."""
    return description_path(context.folder, task.instance, task.track)


async def write_described_benchmark(
    tasks: Sequence[DescriptionTask],
    outcomes: Mapping[str, Outcome],
    context: DescriptionContext,
    blobs: Blobs,
) -> None:
    """Complete the run's descriptions to a benchmark, and give the run's own benchmark their texts.

    An instance without an instructed description is left out. Other descriptions of the instances, such as
    those that were edited in a review, are written as they are.

    Raises:
        JournalError: a file cannot be read or written; StorageFull is one of these.
    """
    for task in tasks:
        outcome = outcomes[task.key]
        if outcome.usable:
            digest = result_from_json(DescriptionResult, outcome.value).text_digest
            context.benchmark.put_description(task.instance, task.track, await blobs.load(digest))
    instances = {task.instance.id: task.instance for task in tasks}
    described = [each for each in instances.values() if _has_instructed(each, context)]
    if described:
        await write_benchmark(context.folder, context.benchmark, described)


def _has_instructed(instance: Instance, context: DescriptionContext) -> bool:
    try:
        return bool(context.benchmark.description(instance, Track.INSTRUCTED).strip())
    except ConfigError:
        return False
