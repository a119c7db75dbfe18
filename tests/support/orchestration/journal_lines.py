"""Read a journal without its lock."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from codetaste.orchestration.journal.reading import read_lines

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def read_journal(path: Path) -> Iterator[dict[str, Any]]:
    """Yield all complete lines."""
    return (line for _end, line in read_lines(path))
