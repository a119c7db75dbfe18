"""Where a run's environments are written: a folder in the published layout, ``runs/NAME/environment``."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from codetaste.flows.environment.context import EnvironmentContext

ENVIRONMENTS_FOLDER = "environment"


def environments_root(context: EnvironmentContext) -> Path:
    """Return the folder of the run with its environments."""
    return context.out / ENVIRONMENTS_FOLDER
