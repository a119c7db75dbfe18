"""What was read of one hour file: a JSON file beside its records, by which a later run skips the hour."""

from __future__ import annotations

import contextlib
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict, ValidationError

from codetaste.core.files import write_atomically

if TYPE_CHECKING:
    from collections.abc import Iterator

FORMAT = 2
"""Of the records and the summary; raised when either changes, so that earlier ones are made again."""


class HourFault(BaseModel):
    """An unusable line of an hour."""

    model_config = ConfigDict(frozen=True)

    line: int
    reason: str


class HourSummary(BaseModel):
    """What was read of one file.

    Attributes:
        format: ``FORMAT`` of the program that wrote it.
        file: the hour file.
        size: its bytes when it was read.
        changed_ns: when it was last changed, nanoseconds.
        hour: the hour that its name states, if any.
        records: the file of records.
        lines: lines that were read, unusable ones included.
        merged: records.
        trimmed: records of events without title, text and sizes.
        without_hash: records without the hash of the merge commit, trimmed ones included.
        torn: why the file could not be read to its end; "" if it could.
        faults: unusable lines, counted by reason.
        examples: the first of them.
    """

    model_config = ConfigDict(frozen=True)

    format: int = FORMAT
    file: Path
    size: int
    changed_ns: int
    hour: datetime | None
    records: Path
    lines: int = 0
    merged: int = 0
    trimmed: int = 0
    without_hash: int = 0
    torn: str = ""
    faults: dict[str, int] = {}
    examples: tuple[HourFault, ...] = ()

    def fault_lines(self) -> Iterator[str]:
        """Yield what is wrong with the file: one text for each kind of fault, with a line as example."""
        if self.torn:
            yield f"{self.file}: {self.torn}"
        for reason, count in self.faults.items():
            line = next((fault.line for fault in self.examples if fault.reason == reason), None)
            first = "" if line is None else f", first line {line:,}"
            yield f"{self.file}: {count:,} lines skipped: {reason}{first}"


def read_summary(path: Path, file: Path, size: int, changed_ns: int) -> HourSummary | None:
    """Return the summary at ``path`` if it is of ``file`` as it is now and its records are there."""
    with contextlib.suppress(OSError, ValidationError):
        summary = HourSummary.model_validate_json(path.read_bytes())
        state = (summary.format, summary.file, summary.size, summary.changed_ns)
        if state == (FORMAT, file, size, changed_ns) and summary.records.is_file():
            return summary
    return None


def write_summary(path: Path, summary: HourSummary) -> None:
    """Write a summary.

    Raises:
        StorageFull: no space left.
        JournalError: it cannot be written for another reason.
    """
    write_atomically(path, summary.model_dump_json() + "\n")
