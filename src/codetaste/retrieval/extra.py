"""The packages of the extra ``retrieval``, imported when they are needed."""

from __future__ import annotations

from typing import Any

from codetaste.core.imports import import_package


def import_extra(name: str) -> Any:  # noqa: ANN401 - a module
    """Import a package of the extra.

    Raises:
        ToolMissing: it is not installed, or cannot be imported.
    """
    return import_package(name, "retrieval", "codetaste[retrieval]")
