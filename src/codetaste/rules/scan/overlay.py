"""Match files of an overlay tree (``source/tree/overlay.py``): the engine needs them in one folder.

Usually all of them are files that a patch changed, which are in the overlay folder already.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
from anyio import from_thread, to_thread

from codetaste.core.files import storage_error
from codetaste.errors import SourceError
from codetaste.source.tree.overlay import OverlayTree

if TYPE_CHECKING:
    from collections.abc import Sequence

    from codetaste.rules.rule import Rule
    from codetaste.rules.scan.model import RuleMatcher, ScanResult

_SWEEP_S = 60.0


async def match_in_tree(
    engine: RuleMatcher, rules: Sequence[Rule], tree: Path | OverlayTree, files: Sequence[str]
) -> ScanResult:
    """Match ``rules`` against ``files`` of ``tree`` in one call of ``engine``.

    Raises:
        EngineError: the engine could not be run at all.
        SourceError: a file cannot be copied.
        StorageFull: no space left for copies.
    """
    if not isinstance(tree, OverlayTree):
        return await engine.match(rules, tree, files)
    changed = sum(path in tree.changed for path in files)
    if changed in {0, len(files)}:  # all in one folder
        return await engine.match(rules, tree.overlay if changed else tree.base, files)
    gathered = await to_thread.run_sync(_new_folder, tree)
    try:
        await to_thread.run_sync(_gather, tree, files, gathered)
        return await engine.match(rules, gathered, files)
    finally:
        with anyio.move_on_after(_SWEEP_S, shield=True):
            await to_thread.run_sync(lambda: shutil.rmtree(gathered, ignore_errors=True))


def _new_folder(tree: OverlayTree) -> Path:
    try:
        return Path(tempfile.mkdtemp(prefix="overlay-", dir=tree.overlay.parent))
    except OSError as error:
        raise storage_error(error, f"cannot write below {tree.overlay.parent}", SourceError) from error


def _gather(tree: OverlayTree, files: Sequence[str], into: Path) -> None:
    """Copy ``files`` with their modes; hard links would give access to R and change its files' times."""
    made: set[Path] = set()
    for path in files:
        from_thread.check_cancelled()
        target = into / path
        try:
            if target.parent not in made:
                target.parent.mkdir(parents=True, exist_ok=True)
                made.add(target.parent)
            shutil.copy(tree.folder(path) / path, target, follow_symlinks=False)
        except OSError as error:
            raise storage_error(error, f"cannot copy {path} of the patched tree", SourceError) from error
