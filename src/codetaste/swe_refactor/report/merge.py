"""The rows of several runs as one set, in which each trial occurs once.

The rule is that of other reports: a model in one strategy is the same in several runs, unless two of them
have the same trial of it. Then it is listed once for each run, with the run's name, and a note says so.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from codetaste.benchmark.layout import OUTPUTS_FOLDER
from codetaste.core.text import plural, printable
from codetaste.errors import ConfigError
from codetaste.orchestration.journal.journal import JOURNAL_FILE
from codetaste.swe_refactor.dataset.layout import FOLDER, TRIALS_FILE
from codetaste.swe_refactor.report.trials_file import read_trials

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from codetaste.swe_refactor.report.trial_row import StrategyModel, TrialKey, TrialRow


@dataclass(frozen=True, slots=True)
class MergedRows:
    """Rows with unique keys, and a note for each strategy and model that is listed by run."""

    rows: tuple[TrialRow, ...]
    notes: tuple[str, ...] = ()


def read_runs(folders: Sequence[Path]) -> MergedRows:
    """Read the trials of the runs in some folders. Blocking.

    Raises:
        ConfigError: a folder has no trials of SWE-Refactor, or a file of them is damaged: a line for each
            folder; or the runs do not fit together.
    """
    problems: list[str] = []
    runs: list[list[TrialRow]] = []
    names: set[str] = set()
    for folder in folders:
        try:
            rows = _read_run(folder)
        except ConfigError as error:
            problems += error.problems
            continue
        if names & {row.run for row in rows}:
            rows = [replace(row, run=printable(str(folder))) for row in rows]
        names |= {row.run for row in rows}
        runs.append(rows)
    if problems:
        raise ConfigError(*problems)
    return merge_rows(row for rows in runs for row in rows)


def _read_run(folder: Path) -> list[TrialRow]:
    name = printable(str(folder))
    if not folder.is_dir():
        what = "is no folder" if folder.exists() else "no such folder"
        raise ConfigError(f"{name}: {what}; name the folder of a run")
    path = folder / FOLDER / TRIALS_FILE
    if path.is_file():
        return read_trials(path)
    hint = ""
    if (folder / OUTPUTS_FOLDER).is_dir():
        hint = "; codetaste report reads such a run"
    elif (folder / JOURNAL_FILE).is_file():
        hint = "; a run of strategies writes them when it ends or is stopped: continue it"
    raise ConfigError(f"{name}: has no trials of SWE-Refactor ({FOLDER}/{TRIALS_FILE}){hint}")


def merge_rows(rows: Iterable[TrialRow]) -> MergedRows:
    """Merge the rows of one or more runs, whose names in ``run`` differ.

    Raises:
        ConfigError: an instance has another type or project in another run: the ids are those of different
            files.
    """
    found = tuple(rows)
    _check_instances(found)
    runs: defaultdict[TrialKey, list[TrialRow]] = defaultdict(list)
    scripted: defaultdict[StrategyModel, set[bool]] = defaultdict(set)
    for row in found:
        runs[row.key].append(row)
        scripted[row.by].add(row.scripted)
    repeated: defaultdict[StrategyModel, list[list[TrialRow]]] = defaultdict(list)
    for same in runs.values():
        if len(same) > 1:
            repeated[same[0].by].append(same)
    mixed = {by for by, kinds in scripted.items() if len(kinds) > 1}
    notes = [
        *(_repeated_note(by, cases) for by, cases in repeated.items()),
        *(
            f"{by.title}: scripted in some runs only; it is listed separately for each run"
            for by in scripted
            if by in mixed - repeated.keys()
        ),
    ]
    apart = mixed | repeated.keys()
    named = (replace(row, model=f"{row.model} ({row.run})") if row.by in apart else row for row in found)
    return MergedRows(tuple(named), tuple(printable(note) for note in notes))


def original_key(row: TrialRow) -> TrialKey:
    """Return what identifies a trial in its own run: without the run's name, which merging may have added."""
    return row.key._replace(model=row.model.removesuffix(f" ({row.run})"))


def _repeated_note(by: StrategyModel, cases: Sequence[Sequence[TrialRow]]) -> str:
    runs = " and ".join(dict.fromkeys(row.run for same in cases for row in same))
    trials = plural(len(cases), "trial")
    return f"{by.title}: {runs} have {trials} in common; it is listed separately for each run"


def _check_instances(rows: Iterable[TrialRow]) -> None:
    first: dict[str, TrialRow] = {}
    for row in rows:
        other = first.setdefault(row.instance, row)
        if (other.type, other.project) != (row.type, row.project):
            one, two = (f"{each.type} of {each.project} in {each.run}" for each in (other, row))
            raise ConfigError(
                printable(f"instance {row.instance} is {one}, but {two}: report such runs one by one")
            )
