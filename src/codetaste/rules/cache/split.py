"""Split a scan into answers per file, and decide which of them may be cached.

An answer may be cached if another scan would give it again: nothing but the parsing of the file failed.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from codetaste.rules.cache.entry import NOT_SCANNED, SCANNED_WITHOUT_MATCH, CacheEntry, FileAnswer

if TYPE_CHECKING:
    from collections.abc import Mapping

    from codetaste.rules.cache.entry import Region
    from codetaste.rules.scan.model import ScanProblem, ScanResult


def cacheable_answers(
    scan: ScanResult, rules: Mapping[str, bytes], files: Mapping[str, bytes]
) -> CacheEntry | None:
    """Return the answers of ``scan`` that may be cached, None if there are none.

    Args:
        scan: a scan of ``files``.
        rules: keys of its rules, by id.
        files: keys of its files, by path.
    """
    parse_problems: dict[str, list[tuple[str, int]]] = defaultdict(list)
    changing = set()
    for problem in scan.problems:
        if problem.kind not in {"rule", "parse"} or problem.path not in files:
            return None
        if problem.kind == "parse" and not problem.rule_id and not _is_timeout(problem):
            parse_problems[problem.path].append((problem.message, problem.line))
        else:
            changing.add(problem.path)
    matches: dict[str, dict[bytes, list[Region]]] = defaultdict(lambda: defaultdict(list))
    first_ids = {key: name for name, key in reversed([*rules.items()])}
    for match in scan.matches:
        if match.path not in files:
            return None
        key = rules[match.rule_id]
        if first_ids[key] == match.rule_id:
            region = match.start_line, match.end_line, match.start_column, match.end_column
            matches[match.path][key].append(region)
    answers = {}
    for path, name in files.items():
        if path in changing:
            continue
        scanned = path in scan.scanned
        if path in matches or path in parse_problems:
            regions = {key: tuple(found) for key, found in matches[path].items()}
            answers[name] = FileAnswer(scanned, regions, tuple(parse_problems[path]))
        else:
            answers[name] = SCANNED_WITHOUT_MATCH if scanned else NOT_SCANNED
    return CacheEntry(tuple(sorted(rules.values())), answers)


def _is_timeout(problem: ScanProblem) -> bool:
    """Whether the engine ran into a time limit, which another scan may not."""
    return "timeout" in "".join(problem.message.partition(":")[0].split()).lower()
