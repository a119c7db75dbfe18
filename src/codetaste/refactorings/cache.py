"""Answers of RefactoringMiner on disk: by its release, the shim, and what was compared."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from anyio import to_thread

from codetaste.core.files import read_regular_file, write_atomically
from codetaste.core.hashing import canonical_json, json_digest
from codetaste.refactorings.model import detection_from_json, detection_to_json

if TYPE_CHECKING:
    from pathlib import Path

    from codetaste.refactorings.model import Detection

FOLDER = "refactorings"
"""The folder of the cache with the answers."""


@dataclass(frozen=True, slots=True)
class DetectionCache:
    """The answers below ``folder`` of one program; ``program`` identifies everything that decides them."""

    folder: Path
    program: str

    async def read(self, *parts: Any) -> Detection | None:  # noqa: ANN401 - JSON data
        """Return the answer for what ``parts`` identifies; None if there is none, or it is damaged."""
        return await to_thread.run_sync(self._read, self._path(parts))

    async def write(self, detection: Detection, *parts: Any) -> None:  # noqa: ANN401 - JSON data
        """Store the answer for what ``parts`` identifies.

        Raises:
            StorageFull: no space left.
            JournalError: it cannot be written for another reason.
        """
        text = canonical_json(detection_to_json(detection))
        await to_thread.run_sync(write_atomically, self._path(parts), text)

    def _path(self, parts: tuple[Any, ...]) -> Path:
        digest = json_digest([self.program, *parts])
        return self.folder / digest[:2] / f"{digest[2:]}.json"

    @staticmethod
    def _read(path: Path) -> Detection | None:
        with suppress(OSError, ValueError, LookupError, TypeError, RecursionError):
            return detection_from_json(json.loads(read_regular_file(path)))
        return None
