"""Private temporary folder of one call of the engine, and removal of folders left by killed runs."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from functools import lru_cache
from pathlib import Path

_FOLDER_PREFIX = "codetaste-scan-"
_STALE_S = 3600.0


def make_scratch_folder(parent: Path | None) -> Path:
    """Make a folder below ``parent``, by default the system's temporary folder."""
    folder = Path(parent or tempfile.gettempdir())
    _sweep(folder)
    return Path(tempfile.mkdtemp(prefix=f"{_FOLDER_PREFIX}{os.getpid()}-", dir=folder))


@lru_cache(maxsize=8)
def _sweep(folder: Path) -> None:
    """Remove folders of ended processes from ``folder``, once per process."""
    for left in folder.glob(f"{_FOLDER_PREFIX}*"):
        try:
            # Only old folders: the process may exist in another PID namespace.
            if time.time() - left.stat().st_mtime > _STALE_S and not _is_alive(left.name):
                shutil.rmtree(left, ignore_errors=True)
        except OSError:
            continue


def _is_alive(name: str) -> bool:
    number = name.removeprefix(_FOLDER_PREFIX).partition("-")[0]
    return number.isdigit() and Path(f"/proc/{number}").exists()
