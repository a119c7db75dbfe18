"""Change precision of published outputs, from the files that the published harness takes it from (§4.1).

L from ``prediction.diff``, C_{Γ⁺}(R∘X̂) from the ``rules_positive.sarif`` beside it, C_{Γ⁻}(R) from the null
agent's ``rules_negative.sarif``. Files are read one after the other; nothing of them is kept.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from codetaste.errors import SourceError
from codetaste.evaluation.precision import changed_lines, covered_lines, precision
from codetaste.evaluation.records import ProblemKind
from codetaste.evaluation.sarif_files import read_sarif
from codetaste.evaluation.stray_files import Faulty, printable, read_file
from codetaste.source.patch import parse_patch

if TYPE_CHECKING:
    from pathlib import Path

    from codetaste.evaluation.precision import ChangedLines, Covered
    from codetaste.evaluation.score import Precision

PATCH_BYTES = 64 * 1024**2
SARIF_BYTES = 64 * 1024**2
_MOST_LINES = 5_000_000
_TAIL = 4096
_ENGINE = re.compile(rb'"semanticVersion"\s*:\s*"([0-9.]{1,30})"')


@dataclass(frozen=True, slots=True)
class Coverage:
    """C_Γ as a SARIF file tells it, and the rule engine's version, "" where it does not say."""

    lines: Covered
    engine: str


def read_lines(path: Path, root: str) -> ChangedLines:
    """Return L of the patch in ``path``, with the published exclusions.

    Raises:
        FileNotFoundError: there is none.
        Faulty: it cannot be read, is too large, or is no patch.
    """
    content = read_file(path, root, PATCH_BYTES)
    try:
        return changed_lines(parse_patch(content))
    except SourceError as error:
        raise Faulty(ProblemKind.TRUNCATED, f"is no whole patch: {printable(str(error))}") from None


def read_coverage(path: Path, root: str) -> Coverage:
    """Return the lines that the results in a SARIF file cover.

    Raises:
        FileNotFoundError: there is none.
        Faulty: it cannot be read, is too large, truncated, or no SARIF.
    """
    content = read_file(path, root, SARIF_BYTES)
    try:
        matches = read_sarif(content)
    except ValueError as error:
        whole = content.rstrip().endswith(b"}")
        kind = ProblemKind.UNREADABLE if whole else ProblemKind.TRUNCATED
        raise Faulty(kind, f"is {'unreadable' if whole else 'truncated'}: {printable(str(error))}") from None
    if sum(max(0, match.end_line - match.start_line) for match in matches) > _MOST_LINES:
        raise Faulty(ProblemKind.NUMBER, f"its results span more than {_MOST_LINES:,} lines")
    engine = _ENGINE.search(content)
    return Coverage(covered_lines(matches), engine[1].decode() if engine else "")


def sarif_fault(path: Path) -> str:
    """Return "missing", "truncated", or "" for a SARIF file that is whole by the looks of its end."""
    try:
        with os.fdopen(
            os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW), "rb"
        ) as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - _TAIL))
            return "" if file.read(_TAIL).rstrip().endswith(b"}") else "truncated"
    except (OSError, ValueError):
        return "missing"


def measure(lines: ChangedLines, positive: Coverage, negative: Coverage) -> Precision:
    """Return PREC's four counts."""
    return precision(lines, positive.lines, negative.lines)
