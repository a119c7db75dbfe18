"""Changed and covered lines of published outputs, from the files that the published harness uses (§4.1).

L comes from ``prediction.diff``, C_{Γ⁺}(R∘X̂) from the ``rules_positive.sarif`` of the trial, C_{Γ⁻}(R) from
the null agent's ``rules_negative.sarif``. Only one file is in memory at a time.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pydantic_core import from_json

from codetaste.core.text import printable
from codetaste.errors import SourceError
from codetaste.evaluation.changed_lines import changed_lines
from codetaste.evaluation.output.sarif import path_from_uri
from codetaste.evaluation.trials.records import ProblemKind
from codetaste.evaluation.trials.untrusted_files import FileProblem, json_problem, read_file
from codetaste.source.patch.parse import parse_patch

if TYPE_CHECKING:
    from collections.abc import Container, Iterator
    from pathlib import Path

    from codetaste.evaluation.changed_lines import ChangedLines, CoveredLines

MAX_PATCH_FILE_BYTES = 64 * 1024**2
MAX_SARIF_BYTES = 64 * 1024**2
_MAX_COVERED_LINES = 5_000_000
_ENGINE = re.compile(rb'"semanticVersion"\s*:\s*"([0-9.]{1,30})"')


@dataclass(frozen=True, slots=True)
class RuleCoverage:
    """C_Γ of a SARIF file, and the rule engine's version, "" if the file does not state it."""

    lines: CoveredLines
    engine: str


def read_changed_lines(path: Path, root: str) -> ChangedLines:
    """Return L of the patch in ``path``, with the published exclusions.

    Raises:
        FileProblem: it is missing, cannot be read, is too large, or is not a patch.
    """
    content = read_file(path, root, MAX_PATCH_FILE_BYTES)
    try:
        return changed_lines(parse_patch(content))
    except SourceError as error:
        raise FileProblem(
            ProblemKind.TRUNCATED, f"is not a complete patch: {printable(str(error))}"
        ) from None


def read_coverage(path: Path, root: str, wanted: Container[str] | None = None) -> RuleCoverage:
    """Return the lines that the results in a SARIF file cover, in the ``wanted`` paths; default all.

    Raises:
        FileProblem: it is missing, cannot be read, is too large, truncated, or not SARIF.
    """
    content = read_file(path, root, MAX_SARIF_BYTES)
    document = parse_sarif(content)
    try:
        lines = _lines_covered(document, wanted)
    except (AttributeError, LookupError, OverflowError, TypeError) as error:
        raise FileProblem(ProblemKind.UNREADABLE, f"is not SARIF ({printable(str(error), 80)})") from None
    engine = _ENGINE.search(content)
    return RuleCoverage(lines, engine[1].decode() if engine else "")


def parse_sarif(content: bytes) -> Any:  # noqa: ANN401 - JSON
    """Parse the JSON of a SARIF file.

    Raises:
        FileProblem: it is not JSON.
    """
    try:
        return from_json(content)  # 1.5 times as fast as the standard library's
    except ValueError:
        pass  # damaged, or with paths that are not UTF-8, which it rejects
    try:
        return json.loads(content.decode("utf-8", "surrogateescape"))
    except (ValueError, RecursionError) as error:
        raise json_problem(content, error) from None


def _lines_covered(document: Any, wanted: Container[str] | None) -> CoveredLines:  # noqa: ANN401 - JSON
    """Return the lines that the results in a SARIF document cover (CodeTaste §3.4), first to last included.

    It builds no ``Match`` objects, which would take seconds for many trials.
    """
    covered: CoveredLines = {}
    lines_of_uri: dict[str, set[int] | None] = {}
    left = _MAX_COVERED_LINES
    for uri, start, end in _spans(document):
        if uri not in lines_of_uri:
            path = path_from_uri(uri)
            lines_of_uri[uri] = covered.setdefault(path, set()) if wanted is None or path in wanted else None
        lines = lines_of_uri[uri]
        if lines is None:
            continue
        left -= max(1, end - start)
        if left < 0:
            raise FileProblem(ProblemKind.NUMBER, f"its results span more than {_MAX_COVERED_LINES:,} lines")
        lines.update(range(start, end + 1))
    return covered


def _spans(document: Any) -> Iterator[tuple[str, int, int]]:  # noqa: ANN401 - JSON
    """Yield URI, first and last line of each location of each result with a rule id, as published."""
    if not isinstance(runs := document["runs"], list):
        raise TypeError("runs is not a list")
    for result in (each for run in runs for each in run.get("results") or ()):
        for location in (result.get("locations") or ()) if result.get("ruleId") else ():
            physical = location.get("physicalLocation") or {}
            uri, region = (physical.get("artifactLocation") or {}).get("uri"), physical.get("region") or {}
            start = region.get("startLine")
            if uri is not None and start is not None:
                yield uri, start, region.get("endLine", start)
