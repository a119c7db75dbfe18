"""Write the discovered rules of each model as a benchmark folder in the published layout."""

from __future__ import annotations

from typing import TYPE_CHECKING

from anyio import to_thread

from codetaste.benchmark.layout import rules_path
from codetaste.benchmark.publish import write_benchmark, write_rules
from codetaste.errors import JournalError
from codetaste.flows.discover.result import DiscoveryResult
from codetaste.flows.sources import file_digest
from codetaste.orchestration.journal.results import result_from_json

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from codetaste.flows.discover.context import DiscoveryContext
    from codetaste.flows.discover.plan import DiscoveryPass
    from codetaste.orchestration.job import Outcome
    from codetaste.orchestration.journal.blobs import Blobs


def discovery_folder(each: DiscoveryPass, context: DiscoveryContext) -> Path:
    """Return the folder, in the published layout, for all rules that a pass's model discovers."""
    return context.out / "discover" / each.model_id


def rules_file(each: DiscoveryPass, context: DiscoveryContext) -> Path:
    """Return the path of the rule file of a pass, in its model's folder."""
    return rules_path(discovery_folder(each, context), each.instance, each.direction)


async def write_discovered_benchmarks(
    passes: Sequence[DiscoveryPass], outcomes: Mapping[str, Outcome], context: DiscoveryContext, blobs: Blobs
) -> None:
    """Complete each model's folder to a benchmark of its own with the rules of ``outcomes``.

    A rule file of an earlier session that was removed, or overwritten by another config with the same run
    name, is written again.

    Raises:
        JournalError: a file cannot be read or written; StorageFull is one of these.
        ExceptionGroup: JournalErrors of the rules that could not be written; all others are written.
    """
    usable = [each for each in passes if outcomes[each.key].usable]
    for model_id in dict.fromkeys(each.model_id for each in usable):
        of_model = [each for each in usable if each.model_id == model_id]
        instances = {each.instance.id: each.instance for each in of_model}
        await write_benchmark(
            discovery_folder(of_model[0], context), context.benchmark, list(instances.values())
        )
    failures: list[JournalError] = []
    for each in usable:
        if not outcomes[each.key].resumed:
            continue
        digest = result_from_json(DiscoveryResult, outcomes[each.key].value).rules_digest
        if await to_thread.run_sync(file_digest, rules_file(each, context)) != digest:
            try:
                text = await blobs.load(digest)
                await write_rules(discovery_folder(each, context), each.instance, each.direction, text)
            except JournalError as error:
                failures.append(error)
    if failures:
        raise ExceptionGroup("some rules could not be written", failures)
