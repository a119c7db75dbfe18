"""Rows with the counts of the paper's Tables 2 to 5 (SWE-Refactor §4).

``python tests/support/swe_refactor/paper_run.py FOLDER`` writes them as the trials of a run, and
``sample.json`` with the ids of the sample of Table 5.
"""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from codetaste.swe_refactor.dataset.instance import REFACTORING_TYPES
from codetaste.swe_refactor.dataset.layout import FOLDER, TRIALS_FILE
from codetaste.swe_refactor.report.sample.stratified import TYPE_MIX
from codetaste.swe_refactor.report.trials_file import write_trials

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))
from support.swe_refactor.trial_rows import rows_of_counts

if TYPE_CHECKING:
    from codetaste.swe_refactor.report.trial_row import TrialRow

SIZES = dict(zip(REFACTORING_TYPES, (441, 71, 410, 142, 21, 14), strict=True))
MODELS = {
    "DeepSeek-V3": (554, 674, (301, 50, 76, 30, 0, 0), ("50.41", "61.33", "41.58")),
    "gpt-4o-mini": (537, 636, (259, 53, 92, 33, 1, 0), ("48.86", "57.87", "39.85")),
    "gpt-3.5-turbo": (199, 142, (48, 9, 23, 2, 0, 0), ("18.11", "12.92", "7.46")),
    # The paper prints 1.10 for 12 of 1,099, which is 1.0919 %.
    "CodeLLaMa 7B": (41, 48, (12, 0, 0, 0, 0, 0), ("3.73", "4.37", "1.09")),
    "DeepSeek Coder 6.7B": (31, 70, (6, 1, 0, 0, 0, 0), ("2.82", "6.37", "0.64")),
    "Qwen2.5 Coder 14B": (22, 101, (2, 5, 0, 0, 0, 0), ("2.00", "9.19", "0.64")),
    "Qwen2.5 Coder 7B": (20, 142, (5, 1, 0, 0, 0, 0), ("1.82", "12.92", "0.55")),
    "DeepSeek Coder 16B": (23, 101, (1, 1, 0, 1, 0, 0), ("2.09", "9.19", "0.27")),
    "CodeLLaMa 13B": (14, 15, (1, 0, 0, 0, 0, 0), ("1.27", "1.36", "0.09")),
}
"""Compile & test, verified, successes by type (Tables 2 and 3), and the three percentages of Table 2."""
WORKFLOWS = {
    "gpt-4o": ((304, 45, 197, 106, 14, 9), "61.42"),
    "gpt-4o-mini": ((317, 22, 109, 115, 15, 1), "52.68"),
}
"""Table 4; the text has 61.4 % and 52.7 %."""
SAMPLE = {"codex": ((73, 12, 53, 11, 2, 0), "75.50"), "gpt-4o": ((59, 9, 46, 17, 1, 2), "67.00")}
"""Table 5; the text has 75.5 %."""


def by_type(numbers: tuple[int, ...]) -> dict[str, int]:
    """Return numbers in the order of the types by type."""
    return dict(zip(REFACTORING_TYPES, numbers, strict=True))


def simple_rows() -> list[TrialRow]:
    """Return the rows of Tables 2 and 3."""
    return [
        row
        for model, (compiles, verified, successes, _) in MODELS.items()
        for row in rows_of_counts(SIZES, by_type(successes), compiles, verified, model=model)
    ]


def workflow_rows() -> list[TrialRow]:
    """Return the rows of Table 4."""
    return [
        row
        for model, (successes, _) in WORKFLOWS.items()
        for row in rows_of_counts(SIZES, by_type(successes), model=model, strategy="multi-agent")
    ]


def sample_rows() -> list[TrialRow]:
    """Return the rows of Table 5."""
    return [
        row
        for model, (successes, _) in SAMPLE.items()
        for row in rows_of_counts(TYPE_MIX, by_type(successes), model=model, strategy="agent")
    ]


def write_paper_run(folder: Path) -> Path:
    """Write the trials of all tables as those of the run in ``folder``; returns the file with the sample."""
    rows = [*simple_rows(), *workflow_rows(), *sample_rows()]
    write_trials(folder / FOLDER / TRIALS_FILE, [replace(row, run=folder.name) for row in rows])
    path = folder / "sample.json"
    path.write_text(json.dumps(sorted({row.instance for row in sample_rows()})))
    return path


if __name__ == "__main__":
    write_paper_run(Path(sys.argv[1]))
