"""Change precision of published outputs, from the files that the published harness takes it from (§4.1).

L from ``prediction.diff``, C_{Γ⁺}(R∘X̂) from the ``rules_positive.sarif`` beside it, C_{Γ⁻}(R) from the null
agent's ``rules_negative.sarif``. Files are read one after the other; nothing of them is kept.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pydantic_core import from_json

from codetaste.errors import SourceError
from codetaste.evaluation.precision import changed_lines, precision
from codetaste.evaluation.records import ProblemKind
from codetaste.evaluation.sarif_files import sarif_path
from codetaste.evaluation.stray_files import Faulty, no_json, printable, read_file
from codetaste.source.patch import parse_patch

if TYPE_CHECKING:
    from collections.abc import Container, Iterator
    from pathlib import Path

    from codetaste.evaluation.precision import ChangedLines, Covered
    from codetaste.evaluation.score import Precision

PATCH_BYTES = 64 * 1024**2
SARIF_BYTES = 64 * 1024**2
_MOST_LINES = 5_000_000
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


def read_coverage(path: Path, root: str, wanted: Container[str] | None = None) -> Coverage:
    """Return the lines that the results in a SARIF file cover, in files that are ``wanted``; default all.

    Raises:
        FileNotFoundError: there is none.
        Faulty: it cannot be read, is too large, truncated, or no SARIF.
    """
    content = read_file(path, root, SARIF_BYTES)
    document = _document(content)
    try:
        lines = _covered(document, wanted)
    except (AttributeError, LookupError, OverflowError, TypeError) as error:
        raise Faulty(ProblemKind.UNREADABLE, f"is no SARIF ({printable(str(error), 80)})") from None
    engine = _ENGINE.search(content)
    return Coverage(lines, engine[1].decode() if engine else "")


def _document(content: bytes) -> Any:  # noqa: ANN401 - JSON
    try:
        return from_json(content)  # by half faster than Python's own
    except ValueError:
        pass  # damaged, or with paths that are not UTF-8, which it refuses
    try:
        return json.loads(content.decode("utf-8", "surrogateescape"))
    except (ValueError, RecursionError) as error:
        raise no_json(content, error) from None


def _covered(document: Any, wanted: Container[str] | None) -> Covered:  # noqa: ANN401 - JSON
    """Return what the results in a SARIF document cover (CodeTaste §3.4): each line from first to last.

    No match is made of a result: that would be seconds where trials are many.
    """
    covered: Covered = {}
    known: dict[str, set[int] | None] = {}
    left = _MOST_LINES
    for uri, start, end in _spans(document):
        if uri not in known:
            path = sarif_path(uri)
            known[uri] = covered.setdefault(path, set()) if wanted is None or path in wanted else None
        lines = known[uri]
        if lines is None:
            continue
        left -= max(1, end - start)
        if left < 0:
            raise Faulty(ProblemKind.NUMBER, f"its results span more than {_MOST_LINES:,} lines")
        lines.update(range(start, end + 1))
    return covered


def _spans(document: Any) -> Iterator[tuple[str, int, int]]:  # noqa: ANN401 - JSON
    """Give path, first and last line of each place of each result that has a rule, as published."""
    if not isinstance(runs := document["runs"], list):
        raise TypeError("it has no list of runs")
    for result in (each for run in runs for each in run.get("results") or ()):
        for location in (result.get("locations") or ()) if result.get("ruleId") else ():
            place = location.get("physicalLocation") or {}
            uri, region = (place.get("artifactLocation") or {}).get("uri"), place.get("region") or {}
            start = region.get("startLine")
            if uri is not None and start is not None:
                yield uri, start, region.get("endLine", start)


def measure(lines: ChangedLines, positive: Coverage, negative: Coverage) -> Precision:
    """Return PREC's four counts."""
    return precision(lines, positive.lines, negative.lines)
