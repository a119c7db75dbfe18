"""What of a scan may be kept, file by file: all in which nothing went wrong but the parsing of a file."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from codetaste.rules.cache_sheet import LEFT_ALONE, LOOKED_AT, Said, Sheet

if TYPE_CHECKING:
    from collections.abc import Mapping

    from codetaste.rules.cache_sheet import Region
    from codetaste.rules.scan import Problem, Scan


@dataclass(frozen=True, slots=True)
class Reading:
    """A scan, taken apart.

    Attributes:
        sheet: what it says of each file.
        loose: problems that are not part of the sheet.
        broken: ids of rules that could not be read; all others have answered as if these were not there.
        spoilt: files whose answers another scan may not repeat.
        whole: False when nothing of it may be kept.
    """

    sheet: Sheet
    loose: tuple[Problem, ...]
    broken: frozenset[str]
    spoilt: frozenset[bytes]
    whole: bool


def read_scan(scan: Scan, rules: Mapping[str, bytes], files: Mapping[str, bytes]) -> Reading:
    """Take apart the ``scan`` of ``files`` with ``rules``: keys by path and by id."""
    firsts = {key: name for name, key in reversed([*rules.items()])}
    matches: dict[str, dict[bytes, list[Region]]] = defaultdict(lambda: defaultdict(list))
    for match in scan.matches:
        key = rules[match.rule_id]
        if firsts[key] == match.rule_id:
            region = match.start_line, match.end_line, match.start_column, match.end_column
            matches[match.path][key].append(region)
    problems: dict[str, list[tuple[str, int]]] = defaultdict(list)
    loose = []
    for problem in scan.problems:
        if _repeatable(problem, files):
            problems[problem.path].append((problem.message, problem.line))
        else:
            loose.append(problem)
    told = matches.keys() | problems.keys()
    answers = {}
    for path, name in files.items():
        scanned = path in scan.scanned
        if path in told:
            found = {key: tuple(regions) for key, regions in matches[path].items()}
            answers[name] = Said(scanned, found, tuple(problems[path]))
        else:
            answers[name] = LOOKED_AT if scanned else LEFT_ALONE
    broken = frozenset(p.rule_id for p in loose if _breaks(p))
    spoilt = frozenset(files[p.path] for p in loose if _spoils(p, files))
    contradicted = any(match.rule_id in broken for match in scan.matches)
    return Reading(
        sheet=Sheet(tuple(sorted(rules.values())), answers),
        loose=tuple(loose),
        broken=broken,
        spoilt=spoilt,
        whole=not contradicted
        and all(_breaks(p) or _spoils(p, files) for p in loose)
        and matches.keys() <= files.keys(),
    )


def _repeatable(problem: Problem, files: Mapping[str, bytes]) -> bool:
    """Whether the file alone is the reason, always."""
    return problem.kind == "parse" and not problem.rule_id and problem.path in files and not _hurried(problem)


def _hurried(problem: Problem) -> bool:
    """Whether the engine gave up part of its work after some time: on another day it may not."""
    return "timeout" in "".join(problem.message.partition(":")[0].split()).lower()


def _breaks(problem: Problem) -> bool:
    return problem.kind == "rule" and bool(problem.rule_id) and not problem.path


def _spoils(problem: Problem, files: Mapping[str, bytes]) -> bool:
    return problem.kind in {"rule", "parse"} and problem.path in files
