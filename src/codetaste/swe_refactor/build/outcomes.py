"""The outcome of each commit and candidate: in which step it ended, and why."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from codetaste.core.files import read_text_file
from codetaste.errors import ConfigError
from codetaste.report.statistics.measures import Unit
from codetaste.report.table import Column, Row, Table

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

MINED, ENRICHED, VERIFIED = "mined", "enriched", "verified"
NOT_DONE = "not_done"
"""The run was stopped before the step ended, or its job failed; the next session continues."""
OUTCOMES_FILE = "outcomes.json"
_MAX_BYTES = 1024**3
_EXAMPLE = 12


class BuildStep(StrEnum):
    """The step that gave the outcome."""

    MINE = "1 mine"
    PURITY = "2 purity"
    ENRICH = "3 enrich"
    VERIFY = "4 verify"


@dataclass(frozen=True, slots=True)
class CandidateOutcome:
    """How a commit or one of its refactorings ended.

    Attributes:
        project: ``OWNER/REPO``.
        commit: its full hash.
        step: the last step that it reached.
        outcome: its name.
        detail: the reason in one line.
        type: of the refactoring; "" for a commit without a candidate.
        description: of the refactoring.
        unique_id: of its instance; "" before step 3.
        is_instance: whether it became an instance.
    """

    project: str
    commit: str
    step: str
    outcome: str
    detail: str = ""
    type: str = ""
    description: str = ""
    unique_id: str = ""
    is_instance: bool = False


def outcome_table(outcomes: Sequence[CandidateOutcome]) -> Table:
    """Return the number of commits and candidates by step and outcome, each with an example."""
    counts = Counter((each.step, each.outcome) for each in outcomes)
    first = {(each.step, each.outcome): each for each in reversed(outcomes)}
    columns = (
        Column("step", "Step"),
        Column("outcome", "Outcome"),
        Column("number", "Number", Unit.COUNT),
        Column("commit", "commit", heading="example"),
        Column("detail", "reason", heading="example"),
    )
    rows = []
    for key in sorted(counts, key=lambda each: (each[0], -counts[each], each[1])):
        example = first[key]
        rows.append(Row((*key, counts[key], example.commit[:_EXAMPLE], example.detail)))
    return Table("outcomes", "commits and candidates by outcome", columns, tuple(rows))


def rows_table(outcomes: Sequence[CandidateOutcome]) -> Table:
    """Return a row for each commit that has no candidate, and for each candidate."""
    names = [name for name in CandidateOutcome.__slots__ if name != "is_instance"]
    columns = tuple(Column(name, name) for name in names)
    rows = tuple(Row(tuple(str(getattr(each, name)) for name in names)) for each in outcomes)
    return Table("candidates", "commits and candidates", columns, rows)


def outcomes_to_json(outcomes: Sequence[CandidateOutcome]) -> str:
    """Return the text of the file with the outcomes of a run."""
    return json.dumps([asdict(each) for each in outcomes], indent=1) + "\n"


def read_outcomes(path: Path) -> tuple[CandidateOutcome, ...]:
    """Read the file with the outcomes of a run. Blocking.

    Raises:
        ConfigError: it cannot be read, or is not such a file.
    """
    try:
        return tuple(CandidateOutcome(**each) for each in json.loads(read_text_file(path, _MAX_BYTES)))
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror or error}") from None
    except (ValueError, TypeError) as error:
        raise ConfigError(f"{path}: no file of outcomes: {error}") from None
