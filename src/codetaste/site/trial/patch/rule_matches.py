"""The matches of rules of one direction in one tree, read from SARIF, with the rules' messages."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pydantic_core import from_json

from codetaste.core.text import printable
from codetaste.evaluation.output.sarif import path_from_uri
from codetaste.evaluation.trials.coverage import MAX_SARIF_BYTES
from codetaste.evaluation.trials.untrusted_files import FileProblem, read_file
from codetaste.rules.scan.model import Match

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

_MAX_LINE = 10**9
_MAX_COVERED_LINES = 5_000_000


@dataclass(frozen=True, slots=True)
class RuleMatches:
    """Matches of the rules of a direction.

    Attributes:
        matches: in the order of the file, under the rules' ids.
        messages: the message of each rule that the file lists, also of rules without a match.
        problem: why there are none, or not all; "" if there are.
    """

    matches: tuple[Match, ...] = ()
    messages: Mapping[str, str] = field(default_factory=dict)
    problem: str = ""


def read_rule_matches(path: Path, root: str) -> RuleMatches:
    """Return the matches in a SARIF file; one that cannot be read has a problem. Blocking.

    Args:
        path: the file.
        root: real path of the folder that must contain it.
    """
    try:
        document = _parse(read_file(path, root, MAX_SARIF_BYTES))
    except FileProblem as problem:
        return RuleMatches(problem=f"{path.name} {problem}")
    except (ValueError, RecursionError) as error:
        return RuleMatches(problem=f"{path.name} is not complete: {printable(str(error), 80)}")
    runs = _listed(document, "runs")
    messages = {
        name: message
        for run in runs
        for rule in _listed(_get(_get(run, "tool"), "driver"), "rules")
        if (name := _rule_id(_get(rule, "id")))
        for message in [_text(_get(_get(rule, "fullDescription"), "text"))]
    }
    matches: list[Match] = []
    left = _MAX_COVERED_LINES
    for match in _matches(runs, messages):
        left -= match.end_line - match.start_line + 1
        if left < 0:
            cut = f"{path.name}: its results span more than {_MAX_COVERED_LINES:,} lines; not all are shown"
            return RuleMatches(tuple(matches), messages, cut)
        matches.append(match)
    return RuleMatches(tuple(matches), messages)


def _parse(content: bytes) -> Any:  # noqa: ANN401 - JSON
    try:
        return from_json(content)
    except ValueError:  # damaged, or with paths that are not UTF-8, which it rejects
        return json.loads(content.decode("utf-8", "surrogateescape"))


def _matches(runs: list[Any], messages: dict[str, str]) -> Iterator[Match]:
    for result in (each for run in runs for each in _listed(run, "results")):
        name = _rule_id(_get(result, "ruleId"))
        if not name:
            continue
        if name not in messages:
            messages[name] = _text(_get(_get(result, "message"), "text"))
        for location in _listed(result, "locations"):
            physical = _get(location, "physicalLocation")
            uri, region = _get(_get(physical, "artifactLocation"), "uri"), _get(physical, "region")
            start, end = _get(region, "startLine"), _get(region, "endLine")
            if isinstance(uri, str) and _is_line(start):
                yield Match(name, path_from_uri(uri), start, end if _is_line(end) and end >= start else start)


def _rule_id(name: object) -> str:
    """Return a rule's id without the folders that the engine puts before it."""
    return name.rpartition(".")[2] if isinstance(name, str) else ""


def _is_line(value: object) -> bool:
    return type(value) is int and 0 < value < _MAX_LINE


def _get(value: object, key: str) -> Any:  # noqa: ANN401 - JSON
    return value.get(key) if isinstance(value, dict) else None


def _listed(value: object, key: str) -> list[Any]:
    found = _get(value, key)
    return found if isinstance(found, list) else []


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
