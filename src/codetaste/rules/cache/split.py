"""Split a scan into answers per file, and decide which of them may be cached.

An answer may be cached if another scan would give it again: nothing but the parsing of the file failed, or of
other rules.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from codetaste.rules.cache.entry import NOT_SCANNED, SCANNED_WITHOUT_MATCH, CacheEntry, FileAnswer
from codetaste.rules.scan.model import ScanProblemKind

if TYPE_CHECKING:
    from collections.abc import Mapping

    from codetaste.rules.cache.entry import Region
    from codetaste.rules.scan.model import ScanProblem, ScanResult

_OF_ONE_FILE = frozenset({ScanProblemKind.RULE, ScanProblemKind.PARSE, ScanProblemKind.SYMBOLS})


def cacheable_answers(
    scan: ScanResult, rules: Mapping[str, bytes], files: Mapping[str, bytes]
) -> CacheEntry | None:
    """Return the answers of ``scan`` that may be cached, without the broken rules; None if there are none.

    Args:
        scan: a scan of ``files``.
        rules: keys of its rules, by id.
        files: keys of its files, by path.
    """
    broken = {problem.rule_id for problem in scan.problems if breaks_rule(problem)}
    problems = [problem for problem in scan.problems if not breaks_rule(problem)]
    of_files = all(problem.kind in _OF_ONE_FILE and problem.path in files for problem in problems)
    if not of_files or any(match.path not in files or match.rule_id in broken for match in scan.matches):
        return None
    changing = {problem.path for problem in problems if not _is_repeatable(problem)}
    parse_problems: dict[str, list[tuple[str, int]]] = defaultdict(list)
    for problem in problems:
        parse_problems[problem.path].append((problem.message, problem.line))
    matches: dict[str, dict[bytes, list[Region]]] = defaultdict(lambda: defaultdict(list))
    first_ids = {key: name for name, key in reversed([*rules.items()])}
    for match in scan.matches:
        key = rules[match.rule_id]
        if first_ids[key] == match.rule_id:
            region = match.start_line, match.end_line, match.start_column, match.end_column
            matches[match.path][key].append(region)
    answers = {}
    for path in [path for path in files if path not in changing]:
        scanned = path in scan.scanned
        if path in matches or path in parse_problems:
            regions = {key: tuple(found) for key, found in matches[path].items()}
            answers[files[path]] = FileAnswer(scanned, regions, tuple(parse_problems[path]))
        else:
            answers[files[path]] = SCANNED_WITHOUT_MATCH if scanned else NOT_SCANNED
    return CacheEntry(tuple(sorted(key for name, key in rules.items() if name not in broken)), answers)


def breaks_rule(problem: ScanProblem) -> bool:
    """Whether the engine could not read the rule of ``problem``; that does not affect the other rules."""
    return problem.kind is ScanProblemKind.RULE and bool(problem.rule_id) and not problem.path


def _is_repeatable(problem: ScanProblem) -> bool:
    """Whether the file alone causes the problem, in every scan, and no time limit of the engine."""
    return problem.kind is ScanProblemKind.PARSE and not problem.rule_id
