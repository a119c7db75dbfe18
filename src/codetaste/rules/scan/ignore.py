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
_CLASS = re.compile(r"\[(!|\^)?(\](?:\\.|[^\]\\])*|(?:\\.|[^\]\\])+)\]")

_ESCAPED = re.compile(r"\\.", re.DOTALL)
_NOTHING = "(?!)"
"""Matches nothing, as do a character class without an end and a backslash at the end."""


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
    pattern = pattern.removesuffix("/")
    anchored = "/" in pattern
    # An escaped slash is a slash.
    pattern = _ESCAPED.sub(lambda match: "/" if match[0] == "\\/" else match[0], pattern.removeprefix("/"))
    segments = pattern.split("/")
    prefix = "" if anchored else "(?:.*/)?"
    return prefix + _join(segments) + ("/" if only_folders else "/?")


def _join(segments: list[str]) -> str:
    # A group is what follows one "**". Its first match is the best, as the next "**" can match the rest.
    # So it is never tried again (an atomic group), and many of them do not take exponential time.
    to_end = segments[-1] == "**"
    groups: list[list[str]] = [[]]
    for segment in segments[:-1] if to_end else segments:
        if segment == "**":
            groups.append([])
        else:
            groups[-1].append(_segment(segment) + "/")
    first, *others = ("".join(group) for group in groups)
    if to_end:
        return first + "".join(f"(?>(?:.*?/)??{group})" for group in others if group) + ".+"
    if not others:
        return first.removesuffix("/")
    middle = "".join(f"(?>(?:.*?/)??{group})" for group in others[:-1] if group)
    return first + middle + "(?:.*/)?" + others[-1].removesuffix("/")


def _segment(segment: str) -> str:
    # What stands between two stars is an atomic group too, for the same reason.
    first, *others = _between_stars(segment)
    if not others:
        return first
    # A name is never empty: "dir/*" must not match "dir/", the folder itself.
    first = first if segment.strip("*") else "(?=[^/])"
    return first + "".join(f"(?>[^/]*?{part})" for part in others[:-1]) + "[^/]*" + others[-1]


def _between_stars(segment: str) -> list[str]:
    """Return the regular expressions of the parts of a pattern between its stars."""
    parts, position = [""], 0
    while position < len(segment):
        char = segment[position]
        if char == "*":
            while segment[position + 1 : position + 2] == "*":
                position += 1
            parts.append("")
        elif char == "?":
            parts[-1] += "[^/]"
        elif char == "[":
            match = _CLASS.match(segment, position)
            parts[-1] += _class(match[2], negated=bool(match[1])) if match else _NOTHING
            position = match.end() - 1 if match else len(segment)
        elif char == "\\":
            position += 1
            parts[-1] += re.escape(segment[position]) if position < len(segment) else _NOTHING
        else:
            parts[-1] += re.escape(char)
        position += 1
    return parts


def _class(inner: str, *, negated: bool) -> str:
    """Return the regular expression of a character class; a backward range is only its first character."""
    chars = re.findall(r"\\.|.", inner, re.DOTALL)
    regex, position = "", 0
    while position < len(chars):
        first = last = chars[position][-1]
        if chars[position + 1 : position + 2] == ["-"] and position + 2 < len(chars):
            last = chars[position + 2][-1]
            position += 2
        regex += f"{re.escape(first)}-{re.escape(last)}" if first <= last else re.escape(first)
        position += 1
    return f"(?!/)[{'^' if negated else ''}{regex}]"
