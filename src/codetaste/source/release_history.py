"""A git repository with one commit for each release of a package, made from its source distributions."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from anyio import to_thread

from codetaste.core.files import locked
from codetaste.core.hashing import json_digest
from codetaste.source.checkout import checkout_trees
from codetaste.source.origin import SdistOrigin
from codetaste.source.scratch_repository import make_scratch_repository
from codetaste.source.tree.walk import walk_tree

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

_TIMEOUT_S = 600.0
_FIRST_S, _DAY_S = 1_500_000_000, 24 * 3600
"""The time of the first commit, and what is between two; git takes no short number for a date."""


@dataclass(frozen=True, slots=True)
class PackageRelease:
    """One release: its version, the sha256 (hex) of its archive, and the message of its commit."""

    version: str
    sha256: str
    message: str


async def release_history(package: str, releases: Sequence[PackageRelease], cache: Path) -> Path:
    """Return the folder of a bare repository whose branch ``main`` has the releases in their order.

    Names and dates of the commits are fixed, so that equal releases give equal commits.

    Raises:
        SourceError: an archive cannot be had or read.
        StorageFull: no space left.
        ToolMissing: git is not installed.
    """
    rows = [[each.version, each.sha256, each.message] for each in releases]
    key = json_digest([package, rows])[:24]
    folder = await to_thread.run_sync((cache / "histories" / key).absolute)
    async with locked(cache / "locks" / f"history-{key}.lock"):
        if not await to_thread.run_sync((folder / "git").is_dir):
            partial_folder = folder.with_name(f".{key}")
            await to_thread.run_sync(partial(shutil.rmtree, partial_folder, ignore_errors=True))
            await _write_history(package, releases, cache, partial_folder)
            await to_thread.run_sync(partial_folder.rename, folder)
    return folder / "git"


async def _write_history(package: str, releases: Sequence[PackageRelease], cache: Path, folder: Path) -> None:
    repository = await to_thread.run_sync(make_scratch_repository, folder, _TIMEOUT_S)
    parent = ""
    for number, each in enumerate(releases):
        origin = SdistOrigin(package, each.version, each.version, each.sha256, each.sha256)
        trees = await checkout_trees(origin, cache)
        names = await to_thread.run_sync(_names, trees.base)
        tree = await repository.write_tree(trees.base, names)
        parents = ("-p", parent) if parent else ()
        words = ("commit-tree", tree, *parents, "-m", each.message)
        parent = (await repository.git(*words, env=_person(number))).output.decode().strip()
    await repository.git("update-ref", "refs/heads/main", parent)
    await repository.git("symbolic-ref", "HEAD", "refs/heads/main")


def _names(tree: Path) -> list[bytes]:
    return sorted(name for name, _ in walk_tree(os.fsencode(tree)))


def _person(number: int) -> dict[str, str]:
    """Return author and committer of the commit ``number``, with a date of its own."""
    facts = {
        "NAME": "codetaste",
        "EMAIL": "codetaste@example.org",
        "DATE": f"{_FIRST_S + number * _DAY_S} +0000",
    }
    return {f"GIT_{who}_{what}": value for who in ("AUTHOR", "COMMITTER") for what, value in facts.items()}
