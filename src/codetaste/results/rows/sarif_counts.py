"""``MatchCounts``: how often each rule matches in a SARIF file, which may be one of another program."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from codetaste.core.text import printable
from codetaste.evaluation.trials.coverage import MAX_SARIF_BYTES, parse_sarif
from codetaste.evaluation.trials.records import ProblemKind
from codetaste.evaluation.trials.untrusted_files import FileProblem, read_file

if TYPE_CHECKING:
    from pathlib import Path

_MAX_LINES = 5_000_000


@dataclass(slots=True)
class MatchCounts:
    """The matches of one rule, and the lines that they cover, by URI."""

    matches: int = 0
    lines: dict[str, set[int]] = field(default_factory=dict)


def read_rule_matches(path: Path, root: str) -> dict[str, MatchCounts]:
    """Return the matches of those rules that have some in a SARIF file, by their ids. Blocking.

    Args:
        path: the file.
        root: the real path of the folder that must contain it.

    Raises:
        FileProblem: it is missing, cannot be read, is too large, truncated, or not SARIF.
    """
    document = parse_sarif(read_file(path, root, MAX_SARIF_BYTES))
    found: dict[str, MatchCounts] = {}
    try:
        _count(document, found)
    except (AttributeError, LookupError, OverflowError, TypeError) as error:
        raise FileProblem(ProblemKind.UNREADABLE, f"is not SARIF ({printable(str(error), 80)})") from None
    return found


def _count(document: Any, found: dict[str, MatchCounts]) -> None:  # noqa: ANN401 - JSON
    left = _MAX_LINES
    for result in (each for run in document["runs"] for each in run.get("results") or ()):
        if not (name := result.get("ruleId")):
            continue
        # Ids have no dots: what is before one is the folder of the rule file.
        rule = found.setdefault(name.rpartition(".")[2], MatchCounts())
        rule.matches += 1
        for location in result.get("locations") or ():
            physical = location.get("physicalLocation") or {}
            uri, region = (physical.get("artifactLocation") or {}).get("uri"), physical.get("region") or {}
            start = region.get("startLine")
            if uri is None or start is None:
                continue
            end = region.get("endLine", start)
            left -= max(1, end - start)
            if left < 0:
                raise FileProblem(ProblemKind.NUMBER, f"its results span more than {_MAX_LINES:,} lines")
            rule.lines.setdefault(uri, set()).update(range(start, end + 1))
