"""The diffs of many commits, read by several gits at once."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import anyio
from anyio import from_thread, to_thread

from codetaste.errors import SourceError
from codetaste.mining.clones.commit_diff import DiffReader, DiffTooLarge
from codetaste.mining.clones.complete import complete_record
from codetaste.mining.clones.git.stream import GitTooSlow
from codetaste.mining.clones.resolve import (
    ResolvedCommit,
    check_hashes,
    fetch_commit,
    find_local_clone,
    resolve_in_clone,
)
from codetaste.mining.prefilter.unreachable import Unreachable, UnreachableReason

if TYPE_CHECKING:
    from collections.abc import Sequence

    from codetaste.mining.clones.clone import Clone
    from codetaste.mining.clones.resolve import CommitPlaces
    from codetaste.mining.commit import CommitRecord
    from codetaste.mining.prefilter.diff import CommitDiff

CONCURRENT = 4


async def read_diff(resolved: ResolvedCommit) -> CommitDiff | Unreachable:
    """Return the diff of a commit that was found; its record is complete.

    Raises:
        ToolMissing: git is not installed.
    """
    reader = DiffReader(resolved.git_dir, from_thread.check_cancelled)
    try:
        diff = await to_thread.run_sync(reader.read, resolved.record, resolved.base, resolved.golden)
        return replace(diff, record=await complete_record(resolved.git_dir, diff))
    except DiffTooLarge as error:
        reason, detail = UnreachableReason.TOO_LARGE, str(error)
    except GitTooSlow as error:
        reason, detail = UnreachableReason.TIMEOUT, f"{resolved.record.name}: {error}"
    except SourceError as error:
        reason, detail = UnreachableReason.MISSING_OBJECTS, str(error)
    return Unreachable(resolved.record, reason, detail)


async def find_diff(
    record: CommitRecord, places: CommitPlaces, clone: Clone | None = None
) -> CommitDiff | Unreachable:
    """Find a commit in its clone, or else by a fetch, and return its diff.

    Args:
        record: the commit.
        places: where it is looked for.
        clone: the clone of its repository, if that is open already.

    Raises:
        ToolMissing: git is not installed.
        StorageFull: no space left in the cache.
    """
    if invalid := check_hashes(record):
        return invalid
    clone = clone or await find_local_clone(record.repository, places)
    local = None if clone is None else await _find_in_clone(record, clone)
    if local is not None and (places.cache is None or not _worth_a_fetch(local)):
        return local
    fetched = await fetch_commit(record, places)
    return fetched if isinstance(fetched, Unreachable) else await read_diff(fetched)


async def find_diffs(
    records: Sequence[CommitRecord], places: CommitPlaces, concurrent: int = CONCURRENT
) -> list[CommitDiff | Unreachable]:
    """Return the diffs of ``records``, in their order; their texts are compressed.

    Raises:
        ToolMissing: git is not installed.
        StorageFull: no space left in the cache.
    """
    found: list[CommitDiff | Unreachable | None] = [None] * len(records)
    repositories = sorted({record.repository for record in records})
    clones = {name: await find_local_clone(name, places) for name in repositories}
    indices = iter(range(len(records)))

    async def find() -> None:
        for index in indices:
            record = records[index]
            found[index] = await find_diff(record, places, clones[record.repository])

    async with anyio.create_task_group() as tasks:
        for _ in range(concurrent):
            tasks.start_soon(find)
    return [diff for diff in found if diff is not None]


async def _find_in_clone(record: CommitRecord, clone: Clone) -> CommitDiff | Unreachable:
    """Read the diff at once if both hashes are known; look what is missing only if that fails."""
    if record.base is not None:
        known = ResolvedCommit(record, clone.git_dir, clone.label, record.base, record.golden)
        diff = await read_diff(known)
        if not isinstance(diff, Unreachable) or diff.reason is not UnreachableReason.MISSING_OBJECTS:
            return diff
    resolved = await resolve_in_clone(record, clone)
    return resolved if isinstance(resolved, Unreachable) else await read_diff(resolved)


def _worth_a_fetch(local: CommitDiff | Unreachable) -> bool:
    """Return whether the repository's server may have what its clone lacks."""
    return isinstance(local, Unreachable) and local.reason in {
        UnreachableReason.MISSING_OBJECTS,
        UnreachableReason.NO_COMMIT,
    }
