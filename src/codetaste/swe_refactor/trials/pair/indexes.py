"""The indexes of source trees before the instances' commits, each made once and shared by trials and runs."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import anyio
from anyio import to_thread
from pydantic import ValidationError

from codetaste.core.files import locked, make_locked_folder, remove_abandoned, remove_tree, write_atomically
from codetaste.core.hashing import json_digest
from codetaste.java.jdt.service import jdt_digests
from codetaste.java.jdt.source_index import SourceIndex
from codetaste.swe_refactor.enrich.sources import export_java_files

if TYPE_CHECKING:
    from pathlib import Path

    from codetaste.java.jdt.service import JdtService
    from codetaste.swe_refactor.trials.sources import InstanceSource

_TREE = "tree-"
_IN_MEMORY = 8


@dataclass(frozen=True, slots=True)
class SourceIndexes:
    """Opens indexes; the last ones stay in memory.

    Attributes:
        jdt: Eclipse JDT.
        folder: where they are stored, which may be shared by processes.
    """

    jdt: JdtService
    folder: Path
    _opened: dict[str, SourceIndex] = field(default_factory=dict)

    async def open(self, source: InstanceSource, path: str) -> SourceIndex:
        """Return the index of the tree before an instance's commit.

        Args:
            source: where the instance is from.
            path: its file: of files with one package and name the nearest to its module counts.

        Raises:
            JavaError: Eclipse JDT gave no answer.
            SourceError: the commit cannot be read.
            StorageFull: no space left.
        """
        module = path.partition("/src/")[0] if "/src/" in path else ""
        name = json_digest([*jdt_digests(), source.base_commit, module])
        if name in self._opened:
            return self._opened[name]
        file = self.folder / f"{name}.json"
        async with locked(file.with_suffix(".lock")):
            index = self._opened.get(name) or await to_thread.run_sync(_read, file)
            if index is None:
                index = await self._make(source, module)
                text = await to_thread.run_sync(index.to_text)
                await to_thread.run_sync(write_atomically, file, text)
        self._opened[name] = index
        while len(self._opened) > _IN_MEMORY:
            del self._opened[next(iter(self._opened))]
        return index

    async def _make(self, source: InstanceSource, module: str) -> SourceIndex:
        """Write the Java files of the tree to a folder for as long as JDT reads them."""
        await to_thread.run_sync(remove_abandoned, self.folder, _TREE)
        scratch, lock = await to_thread.run_sync(make_locked_folder, self.folder, _TREE)
        try:
            tree = scratch / "files"
            await export_java_files(source.repository, source.base_commit, tree)
            return await self.jdt.index(tree, module)
        finally:
            with anyio.CancelScope(shield=True):
                await to_thread.run_sync(remove_tree, scratch)
            os.close(lock)


def _read(file: Path) -> SourceIndex | None:
    try:
        return SourceIndex.from_text(file.read_bytes())
    except (OSError, ValidationError):
        return None
