"""Finds added lines that match a pattern and are not only moved by the patch.

A match has a counterpart, and is no sign, if the patch removes the same text elsewhere: first a line that is
the same, then one with the same match (the rest of the line may have changed with a name). Lines move from
tests to tests, or from other code to other code: an exit that leaves a program and appears in a test is new.

Not found: a mark that the patch takes from one test and gives to another; calls through another name
(``getattr(os, "_ex" + "it")``), code that is put together when it runs.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from typing import TYPE_CHECKING

from codetaste.evaluation.test_runs.cheating.changes import extension_of
from codetaste.evaluation.test_runs.cheating.flags import CheatingFlag, CheatingKind, make_flag
from codetaste.evaluation.test_runs.cheating.patterns import (
    exits,
    processes,
    results,
    runners,
    scripts,
    skips,
)
from codetaste.evaluation.test_runs.cheating.patterns.line_pattern import LinePattern, View, pattern

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from codetaste.evaluation.test_runs.cheating.changes import ChangedFile, PatchChanges

LINE_PATTERNS: tuple[LinePattern, ...] = (
    *skips.PATTERNS,
    *exits.PATTERNS,
    *runners.PATTERNS,
    *results.PATTERNS,
    *scripts.PATTERNS,
    *processes.PATTERNS,
)
_SPACE = re.compile(r"\s+")
_CI = re.compile(
    r"(?:^|/)(?:\.github|\.circleci|\.buildkite)/"
    r"|(?:^|/)[^/]*(?:circleci|travis|gitlab-ci|appveyor|azure-?pipelines)[^/]*$"
)
"""Files that only other machines read."""
_TEMPORARY = re.compile(r"(?<![\w.])/(?:tmp|var/tmp|dev/shm)/[\w./-]{4,100}")
_MAX_NAMES = 100

_Place = tuple["ChangedFile", int, str]
"""A file, the number of a line in it, and the line."""


def find_line_flags(changes: PatchChanges, script_texts: Mapping[str, str]) -> Iterator[CheatingFlag]:
    """Yield a flag for each added line with a match that has no counterpart.

    Args:
        changes: the patch.
        script_texts: texts of the environment's scripts by name: a patch has no reason to name the temporary
            files that they use.
    """
    files = [file for file in changes.files if not (file.is_prose or _CI.search(file.path))]
    patterns = (*LINE_PATTERNS, *_temporary_files(script_texts))
    by_language: defaultdict[str, list[ChangedFile]] = defaultdict(list)
    for file in files:
        by_language[extension_of(file.path)].append(file)
    for each in patterns:
        endings = [ending for ending in by_language if not each.languages or ending in each.languages]
        yield from _unmatched(each, [file for ending in endings for file in by_language[ending]])


def _unmatched(each: LinePattern, files: list[ChangedFile]) -> Iterator[CheatingFlag]:
    for tests in (True,) if each.tests_only else (True, False):
        added: list[tuple[_Place, str]] = []
        lines: Counter[str] = Counter()
        tokens: Counter[str] = Counter()
        for file in files:
            if file.is_test is not tests:
                continue
            for _, line in file.removed_lines:
                if match := each.expression.search(line):
                    lines[_squeeze(line)] += 1
                    tokens[_squeeze(match[0])] += 1
            for number, line in file.added_lines:
                match = each.expression.search(line)
                if match and each.view is not View.WHOLE:
                    match = each.expression.search(
                        file.line_without_comments(number, strings=each.view is View.CODE)
                    )
                if match:
                    added.append(((file, number, line), _squeeze(match[0])))
        for file, number, line in _without_counterparts(added, lines, tokens):
            yield make_flag(each.kind, line, file.path, number)


def _without_counterparts(
    added: list[tuple[_Place, str]], lines: Counter[str], tokens: Counter[str]
) -> Iterator[_Place]:
    left = []
    for place, token in added:
        line = _squeeze(place[2])
        if lines[line]:
            lines[line] -= 1
            tokens[token] -= 1
        else:
            left.append((place, token))
    for place, token in left:
        if tokens[token] > 0:
            tokens[token] -= 1
        else:
            yield place


def _temporary_files(script_texts: Mapping[str, str]) -> list[LinePattern]:
    """Return a pattern of the temporary files that the scripts name, if they name any."""
    found = {name.rstrip(".") for text in script_texts.values() for name in _TEMPORARY.findall(text)}
    names = "|".join(re.escape(name) for name in sorted(found)[:_MAX_NAMES])
    return [pattern(CheatingKind.SCRIPT_ACCESS, frozenset(), names, view=View.CODE)] if names else []


def _squeeze(text: str) -> str:
    return _SPACE.sub(" ", text.strip())
