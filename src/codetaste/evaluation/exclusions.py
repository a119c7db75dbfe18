"""Changed files that do not count for precision: those in folders that tools fill, as published."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from codetaste.source.patch import FileDiff

EXCLUDED_NAMES = frozenset({
    ".venv", "venv", "__pycache__", ".pytest_cache", ".mypy_cache", ".tox", ".ruff_cache", "node_modules",
    "dist", "build", ".next", ".nuxt", "target", ".gradle", "out", "bin", "obj", "vendor", ".cache",
    "coverage", ".cargo-home", "package-lock.json",
})  # fmt: skip
"""Names of folders and files that the published harness leaves out of L⁺, L⁻ and so of precision."""


class Exclusions(StrEnum):
    """Files left out of precision: those that the published harness leaves out, or none."""

    PUBLISHED = "published"
    NONE = "none"


def is_excluded(file: FileDiff, exclusions: Exclusions = Exclusions.PUBLISHED) -> bool:
    """Whether changes of ``file`` do not count: a part of its old or new path is in ``EXCLUDED_NAMES``."""
    if exclusions is Exclusions.NONE:
        return False
    paths = (path.replace("\\", "/") for path in (file.old, file.new) if path is not None)
    return any(not EXCLUDED_NAMES.isdisjoint(path.split("/")) for path in paths)
