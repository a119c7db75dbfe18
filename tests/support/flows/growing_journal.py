"""The journal of a run that another process writes, for tests that wait until it has reached something."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass
class GrowingJournal:
    """A journal that is looked at many times a second: each of its lines is parsed once.

    It may be cut off at the end of a line, as a resume does, but lines that were read must not change.
    """

    path: Path
    _lines: list[dict[str, Any]] = field(default_factory=list)
    _end: int = 0
    """The number of bytes of the lines."""

    def read(self) -> list[dict[str, Any]]:
        """Return its complete lines so far."""
        if self.path.exists() and self.path.stat().st_size > self._end:
            with self.path.open("rb") as file:
                file.seek(self._end)
                added = file.read()
            whole = added[: added.rfind(b"\n") + 1]
            self._lines += map(json.loads, whole.splitlines())
            self._end += len(whole)
        return self._lines
