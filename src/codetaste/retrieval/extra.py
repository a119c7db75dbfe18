"""The packages of the extra ``retrieval``, imported when they are needed."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from codetaste.errors import ToolMissing


def import_extra(name: str) -> Any:  # noqa: ANN401 - a module
    """Import a package of the extra.

    Raises:
        ToolMissing: it is not installed, or cannot be imported.
    """
    try:
        return import_module(name)
    except ImportError as error:
        raise ToolMissing(
            f"retrieval needs the Python package {name} ({error}); install codetaste[retrieval]"
        ) from error
