"""Problems with the files of runs, made of error messages and placed in the folders that were read."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from codetaste.core.text import printable
from codetaste.evaluation.trials.records import ProblemKind, ReadProblem

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


def make_problem(message: str) -> ReadProblem:
    """Return the problem of a message such as "FILE: is no JSON"."""
    location, _, text = message.partition(": ")
    return ReadProblem(ProblemKind.UNREADABLE, printable(location), printable(text or message))


def place_problem(problem: ReadProblem, root: Path, roots: Sequence[Path]) -> ReadProblem:
    """Return a problem in one of ``roots``, with this folder in its location if there are several."""
    if len(roots) == 1:
        return problem
    return replace(problem, location=f"{printable(str(root))}: {problem.location}")
