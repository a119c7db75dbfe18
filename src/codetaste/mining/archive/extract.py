"""Hour files to files of records: one process for each core, and hours that were read before are skipped."""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING

import anyio
from anyio import to_process, to_thread

from codetaste.core.concurrency import gather
from codetaste.core.files import remove_stale_files
from codetaste.core.hashing import json_digest
from codetaste.mining.archive.event import UnusableEvent, parse_event
from codetaste.mining.archive.hour import hour_of
from codetaste.mining.archive.hour_summary import HourFault, HourSummary, read_summary, write_summary
from codetaste.mining.archive.lines import HourLines
from codetaste.mining.ranking.record_file import record_writer

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path


def extract_hour(file: Path, folder: Path) -> HourSummary:
    """Write the merged pull requests of an hour file to a file of records in ``folder``; does blocking I/O.

    A file that cannot be read gives an empty hour that says so. A file that was read before and is unchanged
    is not read again.

    Raises:
        StorageFull: no space left in ``folder``.
        SourceError: the records cannot be written.
    """
    file = file.absolute()
    name = f"{file.name.split('.')[0]}-{json_digest(str(file))[:8]}"
    records, summary_path = folder / f"{name}.jsonl", folder / f"{name}.summary.json"
    try:
        status = file.stat()
        size, changed_ns = status.st_size, status.st_mtime_ns
    except OSError:
        size = changed_ns = -1
    if (earlier := read_summary(summary_path, file, size, changed_ns)) is not None:
        return earlier
    lines, source = HourLines(file), f"GH Archive {file.name.split('.')[0]}"
    merged = trimmed = without_hash = 0
    with record_writer(records) as write:
        for line in lines.candidates():
            try:
                change = parse_event(line.text, source)
            except UnusableEvent as error:
                lines.faults.add(line.number, str(error))
                continue
            if change is not None:
                write(change.record)
                merged += 1
                trimmed += change.trimmed
                without_hash += not change.record.golden
    summary = HourSummary(
        file=file,
        size=size,
        changed_ns=changed_ns,
        hour=hour_of(file.name),
        records=records,
        lines=lines.count,
        merged=merged,
        trimmed=trimmed,
        without_hash=without_hash,
        torn=lines.torn,
        faults=dict(lines.faults.counts),
        examples=tuple(HourFault(line=line, reason=reason) for line, reason in lines.faults.examples),
    )
    write_summary(summary_path, summary)
    return summary


async def extract_hours(
    files: Sequence[Path],
    folder: Path,
    *,
    processes: int | None = None,
    on_hour: Callable[[HourSummary], None] = lambda _summary: None,
) -> list[HourSummary]:
    """Return the summaries of hour files, in their order, with all records in ``folder``.

    Args:
        files: the hour files.
        folder: where the records go; a later call with the same folder skips the hours that it has.
        processes: how many hours are read at once; by default as many as there are cores. 0: all in this
            process.
        on_hour: called when an hour is done.

    Raises:
        StorageFull: no space left in ``folder``.
        SourceError: records cannot be written.
    """
    await to_thread.run_sync(remove_stale_files, folder)
    limiter = anyio.CapacityLimiter(processes or os.cpu_count() or 1)

    async def extract_one(file: Path) -> HourSummary:
        if processes == 0:
            summary = await to_thread.run_sync(extract_hour, file, folder, limiter=limiter)
        else:
            summary = await to_process.run_sync(extract_hour, file, folder, limiter=limiter, cancellable=True)
        on_hour(summary)
        return summary

    return await gather([partial(extract_one, file) for file in files])
