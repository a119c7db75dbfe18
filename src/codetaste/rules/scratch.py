"""The private folder of one call of the engine, and those that killed runs have left behind."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from functools import lru_cache
from pathlib import Path

_PREFIX = "codetaste-scan-"
_STALE_S = 3600.0


def new_folder(parent: Path | None) -> Path:
    """Make a folder below ``parent``, by default the system's temporary one. Blocks."""
    place = Path(parent or tempfile.gettempdir())
    _sweep(place)
    return Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-", dir=place))


@lru_cache(maxsize=8)
def _sweep(place: Path) -> None:
    """Remove, once in a process, what processes that are no more left in ``place``."""
    for left in place.glob(f"{_PREFIX}*"):
        try:
            # Old too, for a process of that number may live where we cannot see it.
            if time.time() - left.stat().st_mtime > _STALE_S and not _alive(left.name):
                shutil.rmtree(left, ignore_errors=True)
        except OSError:
            continue


def _alive(name: str) -> bool:
    number = name.removeprefix(_PREFIX).partition("-")[0]
    return number.isdigit() and Path(f"/proc/{number}").exists()
