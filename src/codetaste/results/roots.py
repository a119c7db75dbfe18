"""The folders of runs, and which of them a trial is from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from codetaste.core.text import printable

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from pathlib import Path

    from codetaste.evaluation.trials.records import TrialRecord


def root_of(record: TrialRecord, roots: Collection[Path]) -> Path:
    """Return that of ``roots`` from which a trial was read."""
    if len(roots) == 1:
        return next(iter(roots))
    return next(each for each in (record.folder, *record.folder.parents) if each in roots)


def roots_by_run(roots: Sequence[Path]) -> dict[str, Path]:
    """Return the folders of runs by the names that rows of SWE-Refactor give them; the first one wins."""
    return {name: root for root in reversed(roots) for name in (root.name, printable(str(root)))}
