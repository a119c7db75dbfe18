"""Locate the folders of data files: ``prompts/``, ``agents/`` and ``examples/``.

They are at the top of a checkout, and inside the package in an installation from a wheel.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


_PACKAGE = Path(__file__).resolve().parents[1]

_CHECKOUT = _PACKAGE.parent.parent


def resource_dir(name: str) -> Path:
    """Return the folder ``name`` ("prompts", "agents", "examples") of this installation.

    Raises:
        FileNotFoundError: the installation is damaged.
    """
    for candidate in (_PACKAGE / "_data" / name, _CHECKOUT / name):
        if candidate.is_dir():
            return candidate
    message = f"{name}/ is missing from this installation of codetaste ({_PACKAGE}); reinstall codetaste"
    raise FileNotFoundError(message)


def cache_dir(warn: Callable[[str], None]) -> Path:
    """Return the folder that caches trees, archives, clones and matches: ``$XDG_CACHE_HOME/codetaste``.

    If it is not writable, a temporary folder of this user is used instead, and reported through ``warn``.
    """
    xdg = os.environ.get("XDG_CACHE_HOME", "")
    home = os.path.expanduser("~")  # noqa: PTH111 - Path.expanduser fails if the user has no home
    default = (Path(xdg) if Path(xdg).is_absolute() else Path(home) / ".cache") / "codetaste"
    reason = _unwritable(default)
    if not reason or (fallback := private_temporary_folder()) is None or _unwritable(fallback):
        return default
    warn(f"{default}: {reason}, so it cannot be the cache; {fallback} is used instead")
    return fallback


def _unwritable(folder: Path) -> str:
    """Return why ``folder``, which is created, cannot be written; "" if it can."""
    if not folder.is_absolute():
        return "this user has no home"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(b"x")
    except OSError as error:
        return error.strerror or str(error)
    return ""


def private_temporary_folder() -> Path | None:
    """Return a folder that lasts between runs, for users without a cache folder; None if impossible."""
    private = Path(tempfile.gettempdir()) / f"codetaste-{os.getuid()}"
    try:
        private.mkdir(mode=0o700, exist_ok=True)
        state = private.lstat()
    except OSError:
        return None
    safe = state.st_uid == os.getuid() and not private.is_symlink() and not state.st_mode & 0o022
    return private if safe else None
