"""The folders of runs, and which of them a trial is from."""

from __future__ import annotations

import difflib
import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

from codetaste.core.text import printable
from codetaste.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from codetaste.evaluation.trials.records import TrialRecord


RUNS_FOLDER: Final = Path("runs")
"""Where runs are, unless a config names another folder."""


def run_folders(runs: Sequence[Path]) -> list[Path]:
    """Return the folder of each run once: paths as given, or names below ``runs/``."""
    folders: dict[Path, Path] = {}
    for run in runs:
        folder = run if run.is_dir() or not (RUNS_FOLDER / run).is_dir() else RUNS_FOLDER / run
        folders.setdefault(Path(os.path.realpath(folder)), folder)
    return list(folders.values())


def existing_run_folders(runs: Sequence[Path]) -> list[Path]:
    """Return ``run_folders``.

    Raises:
        ConfigError: one does not exist; names the one that may be meant.
    """
    folders = run_folders(runs)
    problems = [describe_missing_run(folder) for folder in folders if not folder.is_dir()]
    if problems:
        raise ConfigError(*problems)
    return folders


def describe_missing_run(run: Path) -> str:
    """Say that there is no folder ``run``, and which one may be meant."""
    what = "is no folder" if run.exists() else "no such folder"
    hint = ""
    if run.suffix == ".toml":
        hint = f"; this looks like a config: name the run that it makes, such as {RUNS_FOLDER}/NAME"
    elif near := _similar_folder(run):
        hint = f"; did you mean {near}?"
    return printable(f"{run}: {what}{hint}", 1000)


def _similar_folder(run: Path) -> Path | None:
    """Return the folder beside ``run``, of a name alone first one below ``runs/``, that is named like it."""
    for place in (RUNS_FOLDER, run.parent) if len(run.parts) == 1 else (run.parent,):
        try:
            names = [entry.name for entry in os.scandir(place) if entry.is_dir()]
        except OSError:
            continue
        if near := difflib.get_close_matches(run.name, names, n=1, cutoff=0.7):
            return place / near[0]
    return None


def check_outside(target: Path, roots: Sequence[Path], option: str) -> None:
    """Check that what the value of ``option`` names is in none of the runs.

    Raises:
        ConfigError: it is.
    """
    place = Path(os.path.realpath(target))
    for root in roots:
        if place.is_relative_to(root.resolve()):
            raise ConfigError(f"{option}: {target} is inside the run {root}, which a report does not change")


def root_of(record: TrialRecord, roots: Collection[Path]) -> Path:
    """Return that of ``roots`` from which a trial was read."""
    if len(roots) == 1:
        return next(iter(roots))
    return next(each for each in (record.folder, *record.folder.parents) if each in roots)


def roots_by_run(roots: Sequence[Path]) -> dict[str, Path]:
    """Return the folders of runs by the names that rows of SWE-Refactor give them; the first one wins."""
    return {name: root for root in reversed(roots) for name in (root.name, printable(str(root)))}
