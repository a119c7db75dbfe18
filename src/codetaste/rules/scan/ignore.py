"""Matcher of an ignore file in gitignore syntax, as the engine reads ``.semgrepignore``.

The engine's own matching of a long ignore file is slow (three quarters of a scan of ten thousand files).
Here all patterns are compiled to few regular expressions, tried once for each file and folder.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

_CACHED_PATHS = 65_536
_CLASS = re.compile(r"\[(!|\^)?(\]?(?:\\.|[^\]\\])*)\]")


class IgnoreFile:
    """The patterns of an ignore file at the root of a tree; the last matching pattern decides."""

    def __init__(self, text: str) -> None:
        groups: list[tuple[bool, list[str]]] = []
        for line in text.splitlines():
            pattern, negated = _strip(line)
            if not pattern:
                continue
            if not groups or groups[-1][0] != negated:
                groups.append((negated, []))
            groups[-1][1].append(_translate(pattern))
        self._patterns = tuple(
            (re.compile("|".join(dict.fromkeys(regexes)), re.DOTALL), negated)
            for negated, regexes in reversed(groups)
        )
        # The trees of a run share most of their paths, and a long file is slow to match.
        self._decide_cached = lru_cache(_CACHED_PATHS)(self._decide)

    def ignores(self, path: str, *, folder: bool) -> bool:
        """True when a pattern ignores ``path`` (POSIX, below the root); parent folders are not checked."""
        return self._decide_cached(path + "/" if folder else path)

    def _decide(self, subject: str) -> bool:
        return next((not negated for regex, negated in self._patterns if regex.fullmatch(subject)), False)

    def not_ignored(self, paths: Iterable[str]) -> list[str]:
        """Return the files of ``paths`` that are not ignored, and in no ignored folder."""
        folders: dict[str, bool] = {"": False}

        def inside_ignored(folder: str) -> bool:
            if folder not in folders:
                above = folder.rpartition("/")[0]
                folders[folder] = inside_ignored(above) or self.ignores(folder, folder=True)
            return folders[folder]

        return [
            path
            for path in paths
            if not inside_ignored(path.rpartition("/")[0]) and not self.ignores(path, folder=False)
        ]


def _strip(line: str) -> tuple[str, bool]:
    """Return the pattern of a line ("" for none), and whether it is negated."""
    while line.endswith(" ") and not line.endswith("\\ "):
        line = line[:-1]
    if not line or line.startswith("#"):
        return "", False
    if line.startswith("!"):
        return line[1:], True
    return line, False


def _translate(pattern: str) -> str:
    """Return the regular expression of one pattern; the paths of folders end in a slash."""
    only_folders = pattern.endswith("/")
    pattern = pattern.rstrip("/")
    anchored = "/" in pattern
    segments = pattern.lstrip("/").split("/")
    prefix = "" if anchored else "(?:.*/)?"
    return prefix + _join(segments) + ("/" if only_folders else "/?")


def _join(segments: list[str]) -> str:
    regex = ""
    for number, segment in enumerate(segments):
        last = number == len(segments) - 1
        if segment == "**" and not last and segments[number + 1] == "**":
            continue  # the next one matches as much; two would take quadratic time
        if segment == "**":
            regex += ".+" if last else "(?:.*/)?"
        else:
            regex += _segment(segment) + ("" if last else "/")
    return regex


def _segment(segment: str) -> str:
    # A name is never empty: "dir/*" must not match "dir/", the folder itself.
    regex, position = "" if segment.strip("*") else "(?=[^/])", 0
    while position < len(segment):
        char = segment[position]
        if char == "*":
            while segment[position + 1 : position + 2] == "*":
                position += 1
            regex += "[^/]*"
        elif char == "?":
            regex += "[^/]"
        elif char == "[" and (match := _CLASS.match(segment, position)):
            inner = (
                match[2].replace("[", r"\[").replace("&&", r"&\&").replace("||", r"|\|").replace("~~", r"~\~")
            )
            regex += f"(?!/)[{'^' if match[1] else ''}{_bracket(inner)}]"
            position = match.end() - 1
        elif char == "\\" and position + 1 < len(segment):
            position += 1
            regex += re.escape(segment[position])
        else:
            regex += re.escape(char)
        position += 1
    return regex


def _bracket(inner: str) -> str:
    return "\\" + inner if inner.startswith(("]", "^")) else inner
