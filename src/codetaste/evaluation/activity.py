"""What an agent did in a trial: how often it ran tests, how often it replaced in bulk (CodeTaste §4.2, §4.4).

The paper tells of both in prose, without rules. Ours are in ``docs/scoring.md``: what runs tests is decided
in ``test_runs.py``, what replaces in bulk in ``bulk_edits.py``, both on commands as a shell reads them
(``shell.py``), never on their text. What is counted is what the model asked for in the trial's *execution*
step, which made the patch; a plan's own work is not in it. Whether a command succeeded is not asked.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any

from codetaste.atomic import write_atomically

if TYPE_CHECKING:
    from pathlib import Path

FILE = "activity.json"
"""Its name in a trial's ``evaluation/`` folder, beside ``scores.json``."""
_MOST_BYTES = 64 * 1024
_MOST = 10**9


@dataclass(frozen=True, slots=True)
class Activity:
    """How often an agent did what; a tool call counts once, whatever it does several times.

    Attributes:
        commands: calls of a shell tool.
        test_runs: of these, the ones that run tests.
        bulk_edits: of these, the ones that replace text in place: ``sed -i`` and the like.
        wide_edits: of the bulk edits, those that can reach several files: globs, lists, ``find``, loops.
        scripted_edits: of the commands, those that rewrite files by a codemod tool or a script of their own.
        edits: edits and whole files written by an edit tool, patches applied by a command among them.
        replace_all: of the edits, the ones that replace every place in a file.
        unread: of the commands, those that could not be read to their end: too long, or no shell's language.
    """

    commands: int = 0
    test_runs: int = 0
    bulk_edits: int = 0
    wide_edits: int = 0
    scripted_edits: int = 0
    edits: int = 0
    replace_all: int = 0
    unread: int = 0

    @property
    def ran_tests(self) -> bool:
        """Whether it ran tests at all."""
        return self.test_runs > 0

    @property
    def replaced_in_bulk(self) -> bool:
        """Whether it replaced in bulk at all."""
        return self.bulk_edits > 0


def write_activity(evaluation: Path, activity: Activity | None) -> None:
    """Write ``activity.json`` into a trial's ``evaluation/`` folder; nothing of what is not known; blocking.

    Raises:
        JournalError: it cannot be written; StorageFull among them.
    """
    if activity is not None:
        write_atomically(evaluation / FILE, f"{json.dumps(asdict(activity), indent=2)}\n")


def read_activity(evaluation: Path) -> Activity | None:
    """Read what ``write_activity`` wrote; None where there is nothing; blocking.

    Raises:
        ValueError: it is damaged.
    """
    path = evaluation / FILE
    try:
        if not path.exists():
            return None
        if not path.is_file():  # a pipe would keep us waiting
            raise ValueError(f"{path}: is no file")
        with path.open("rb") as file:
            text = file.read(_MOST_BYTES + 1)
    except OSError as error:
        raise ValueError(f"{path}: cannot be read: {error.strerror}") from error
    try:
        return _checked(json.loads(text))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path}: holds no counts of what an agent did") from error


def _checked(data: Any) -> Activity:  # noqa: ANN401 - JSON
    """Take whole numbers under the names that are known; names of later versions are passed over."""
    if not isinstance(data, dict):
        raise ValueError("no object")  # noqa: TRY004 - damaged data, whatever its type
    counts = {field.name: data.get(field.name, 0) for field in fields(Activity)}
    if not all(type(count) is int and 0 <= count <= _MOST for count in counts.values()):
        raise ValueError("no counts")
    return Activity(**counts)
