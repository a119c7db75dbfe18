"""The folders of runs, and which of them a trial is from."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from codetaste.evaluation.trials.records import TrialRecord


def root_of(record: TrialRecord, roots: Mapping[Path, object]) -> Path:
    """Return that of ``roots`` from which a trial was read."""
    if len(roots) == 1:
        return next(iter(roots))
    return next(each for each in (record.folder, *record.folder.parents) if each in roots)
