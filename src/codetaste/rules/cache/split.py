"""Split a scan into answers per file, and decide which of them may be cached.

Answers may be cached unless something other than the parsing of the file failed.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from codetaste.rules.cache.entry import NOT_SCANNED, SCANNED_WITHOUT_MATCH, CacheEntry, FileAnswer

if TYPE_CHECKING:
    from collections.abc import Mapping

    from codetaste.rules.cache.entry import Region
    from codetaste.rules.scan.model import ScanProblem, ScanResult


@dataclass(frozen=True, slots=True)
class SplitScan:
    """A scan split into answers per file.

    Attributes:
        entry: the answer for each file.
        other_problems: problems that are not part of the entry.
        broken_rules: ids of rules that could not be parsed; they did not affect the other rules.
        uncacheable_files: files for which another scan may answer differently.
        cacheable: False if no answer may be cached.
    """

    entry: CacheEntry
    other_problems: tuple[ScanProblem, ...]
    broken_rules: frozenset[str]
    uncacheable_files: frozenset[bytes]
    cacheable: bool


def split_scan(scan: ScanResult, rules: Mapping[str, bytes], files: Mapping[str, bytes]) -> SplitScan:
    """Split the ``scan`` of ``files`` (keys by path) with ``rules`` (keys by id)."""
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
        if _is_repeatable(problem, files):
            problems[problem.path].append((problem.message, problem.line))
        else:
            loose.append(problem)
    reported = matches.keys() | problems.keys()
    answers = {}
    for path, name in files.items():
        scanned = path in scan.scanned
        if path in reported:
            found = {key: tuple(regions) for key, regions in matches[path].items()}
            answers[name] = FileAnswer(scanned, found, tuple(problems[path]))
        else:
            answers[name] = SCANNED_WITHOUT_MATCH if scanned else NOT_SCANNED
    broken = frozenset(p.rule_id for p in loose if _breaks_rule(p))
    spoilt = frozenset(files[p.path] for p in loose if _spoils_file(p, files))
    contradicted = any(match.rule_id in broken for match in scan.matches)
    return SplitScan(
        entry=CacheEntry(tuple(sorted(rules.values())), answers),
        other_problems=tuple(loose),
        broken_rules=broken,
        uncacheable_files=spoilt,
        cacheable=not contradicted
        and all(_breaks_rule(p) or _spoils_file(p, files) for p in loose)
        and matches.keys() <= files.keys(),
    )


def _is_repeatable(problem: ScanProblem, files: Mapping[str, bytes]) -> bool:
    """Whether the file alone causes the problem, in every scan."""
    return (
        problem.kind == "parse" and not problem.rule_id and problem.path in files and not _is_timeout(problem)
    )


def _is_timeout(problem: ScanProblem) -> bool:
    """Whether the engine ran into a time limit, which another scan may not."""
    return "timeout" in "".join(problem.message.partition(":")[0].split()).lower()


def _breaks_rule(problem: ScanProblem) -> bool:
    return problem.kind == "rule" and bool(problem.rule_id) and not problem.path


def _spoils_file(problem: ScanProblem, files: Mapping[str, bytes]) -> bool:
    return problem.kind in {"rule", "parse"} and problem.path in files
