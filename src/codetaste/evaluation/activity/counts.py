"""Activity counts of a trial, e.g. test runs and bulk edits (CodeTaste §4.2, §4.4), and ``activity.json``.

The paper reports both in prose, without exact rules; our rules are in ``docs/scoring.md``.
``test_commands.py`` decides which commands run tests, ``bulk_edits.py`` which edit in bulk, both on commands
parsed by ``shell_parser.py``, never on raw text. Only tool calls of the trial's *execution* step, which makes
the patch, are counted, not those of the plan step, and whether or not the command succeeded.
"""

from __future__ import annotations

import json
from dataclasses import asdict, astuple, dataclass, fields
from typing import TYPE_CHECKING, Any

from codetaste.benchmark.layout import ACTIVITY_FILE
from codetaste.core.files import write_atomically

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_MAX_COUNT = 10**9


@dataclass(frozen=True, slots=True)
class Activity:
    """Counts of an agent's tool calls by kind; one call adds at most one to each count.

    Attributes:
        commands: calls of a shell tool.
        test_runs: commands that run tests.
        bulk_edits: commands that replace text in place: ``sed -i`` and the like.
        wide_edits: bulk edits that can reach several files: globs, lists, ``find``, loops.
        scripted_edits: commands that rewrite files by a codemod tool or an inline script.
        edits: edits and whole files written by an edit tool, plus commands that apply a patch.
        replace_all: edits that replace all occurrences in a file.
        unparsed: commands that could not be parsed completely: too long, or not shell syntax.
    """

    commands: int = 0
    test_runs: int = 0
    bulk_edits: int = 0
    wide_edits: int = 0
    scripted_edits: int = 0
    edits: int = 0
    replace_all: int = 0
    unparsed: int = 0

    def __add__(self, other: Activity) -> Activity:
        """Add up both counts."""
        return Activity(*(one + more for one, more in zip(astuple(self), astuple(other), strict=True)))

    @property
    def ran_tests(self) -> bool:
        """Whether the agent ran tests at least once."""
        return self.test_runs > 0

    @property
    def made_bulk_edits(self) -> bool:
        """Whether the agent made at least one bulk edit."""
        return self.bulk_edits > 0


def write_activity(evaluation: Path, activity: Activity | None) -> None:
    """Write ``activity.json`` into a trial's ``evaluation/`` folder; None writes nothing.

    Raises:
        JournalError: the file cannot be written; StorageFull is a subclass.
    """
    if activity is not None:
        write_atomically(evaluation / ACTIVITY_FILE, f"{json.dumps(asdict(activity), indent=2)}\n")


def activity_from_json(data: Mapping[str, Any]) -> Activity | None:
    """Return the counts that ``write_activity`` wrote, None if any is invalid; other names are ignored."""
    counts = {field.name: data.get(field.name, 0) for field in fields(Activity)}
    valid = all(type(count) is int and 0 <= count <= _MAX_COUNT for count in counts.values())
    return Activity(**counts) if valid else None
