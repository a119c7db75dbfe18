"""A lean image from a Debian root file system, for hosts that cannot reach a container registry."""

from __future__ import annotations

from typing import TYPE_CHECKING

from codetaste.sandbox.docker.bootstrap.root_filesystem import RootFilesystem, import_root_filesystem
from codetaste.sandbox.docker.spec import LEAN_KIND

if TYPE_CHECKING:
    from collections.abc import Callable

    from codetaste.sandbox.docker.engine import ContainerEngine

LEAN_IMAGE = "codetaste/lean:bookworm-2"
"""The default image of sandboxes. The number goes up when its contents change."""
_PACKAGES = (
    "ca-certificates",
    "curl",
    "git",
    "jq",
    "less",
    "patch",
    "procps",
    "python-is-python3",
    "python3",
    "ripgrep",
    "unzip",
    "xz-utils",
)


async def build_lean_image(
    engine: ContainerEngine, name: str, notify: Callable[[str], None], *, mirrors: bool = True
) -> str:
    """Build the lean image from the package mirrors of the host, and return its id.

    Takes half a minute.

    Args:
        engine: which gets the image.
        name: of the image.
        notify: receives progress lines.
        mirrors: leave the package mirrors in the image, for installing more into it.

    Raises:
        ToolMissing: mmdebstrap is not installed.
        SandboxError: it failed, or the engine refused the image.
    """
    root = RootFilesystem("bookworm", _PACKAGES, LEAN_KIND, keep_mirrors=mirrors)
    return await import_root_filesystem(engine, root, name, notify)
