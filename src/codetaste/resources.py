"""Locate the folders of data files: ``prompts/``, ``agents/`` and ``examples/``.

They are at the top of a checkout, and inside the package in an installation from a wheel.
"""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent
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
