"""Packages that only some users need, imported when they are used."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from codetaste.errors import ToolMissing


def import_package(name: str, use: str, install: str = "") -> Any:  # noqa: ANN401 - a module
    """Import a package that may be missing.

    Args:
        name: of the module.
        use: what needs it, as the subject of the message.
        install: what to install; default the package itself.

    Raises:
        ToolMissing: it is not installed, or cannot be imported.
    """
    try:
        return import_module(name)
    except ImportError as error:
        package = name.partition(".")[0]
        raise ToolMissing(
            f"{use} needs the Python package {package} ({error}); install {install or package}"
        ) from error
