"""What rule discovery leaves: for each model a folder in the published layout, made from the results."""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, Any

from anyio import to_thread

from codetaste.benchmark.catalog import rules_path
from codetaste.benchmark.publish import write_product, write_rules
from codetaste.errors import JournalError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from codetaste.flows.discover import Surroundings
    from codetaste.flows.passes import Pass
    from codetaste.orchestration.job import Outcome
    from codetaste.orchestration.storage import Blobs


def product(each: Pass, around: Surroundings) -> Path:
    """Return the folder, in the published layout, that holds all that a pass's model found."""
    return around.out / "discover" / each.model_id


def rules_file(each: Pass, around: Surroundings) -> Path:
    """Return where the rules of a pass are written: in the published layout, a folder for each model."""
    return rules_path(product(each, around), each.instance, each.direction)


async def write_found(each: Pass, around: Surroundings, text: str) -> None:
    """Write the rules of a pass.

    Raises:
        JournalError: they cannot be written; StorageFull among them.
    """
    await write_rules(product(each, around), each.instance, each.direction, text)


async def write_products(
    passes: Sequence[Pass], outcomes: Mapping[str, Outcome], around: Surroundings, blobs: Blobs
) -> None:
    """Make each model's folder a benchmark of its own, whose rules are those of ``outcomes``.

    A file that was removed, or that another config of the same run name has written since, is written again.

    Raises:
        JournalError: something cannot be read or written; StorageFull among them.
        ExceptionGroup: of such, for the rules that could not; all others are there.
    """
    usable = [each for each in passes if outcomes[each.key].usable]
    for model_id in dict.fromkeys(each.model_id for each in usable):
        of_model = [each for each in usable if each.model_id == model_id]
        instances = {each.instance.id: each.instance for each in of_model}
        await write_product(product(of_model[0], around), around.benchmark, list(instances.values()))
    failures: list[JournalError] = []
    for each in usable:
        value: Any = outcomes[each.key].value
        if value and not await to_thread.run_sync(_holds, rules_file(each, around), value["yaml"]):
            try:
                await write_found(each, around, await blobs.fetch(value["yaml"]))
            except JournalError as error:
                failures.append(error)
    if failures:
        raise ExceptionGroup("some rules could not be written", failures)


def _holds(path: Path, digest: str) -> bool:
    try:
        return sha256(path.read_bytes()).hexdigest() == digest
    except OSError:
        return False
