"""Scan a whole tree with the rule engine."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio.to_thread

from codetaste.rules.scan.ignore import IgnoreFile
from codetaste.rules.scan.model import RuleMatcher, ScanResult, with_skipped
from codetaste.rules.scan.overlay import match_in_tree
from codetaste.rules.scan.targets import select_targets

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from codetaste.rules.rule import Rule
    from codetaste.source.tree.overlay import OverlayTree


class FullScanner:
    """A scanner that matches every rule against every file each time.

    ``ignore`` is the text of the benchmark's ignore file (``default.semgrepignore``).
    """

    def __init__(self, engine: RuleMatcher, ignore: str = "") -> None:
        self._engine = engine
        self._ignore = IgnoreFile(ignore) if ignore else None

    async def scan(self, rules: Sequence[Rule], tree: Path | OverlayTree) -> ScanResult:
        """Scan ``tree`` with ``rules``, whose ids are unique.

        Raises:
            EngineError: the engine could not be run at all, or the tree cannot be listed.
        """
        selection = await anyio.to_thread.run_sync(select_targets, tree, self._ignore)
        scan = await match_in_tree(self._engine, rules, tree, selection.files)
        return with_skipped(scan, selection)
