"""Which files RefactoringMiner reads, by release, and the names under which it gets them.

JavaScript is read as TypeScript, which includes it: such files get a further ``.ts`` in requests by content.
"""

from __future__ import annotations

from pathlib import PurePosixPath

_SUFFIXES = {
    "3.0.10": {".java": "Java"},
    "3.1.4": {".java": "Java", ".py": "Python", ".kt": "Kotlin", ".ts": "TypeScript"},
}
_JAVASCRIPT = {".js", ".mjs", ".cjs"}
_ADDED = ".ts"


def language_of(path: str, version: str) -> str:
    """Return the language in which release ``version`` reads a file given by content, "" for none."""
    suffix, suffixes = PurePosixPath(path).suffix, _SUFFIXES[version]
    if suffix in _JAVASCRIPT and _ADDED in suffixes:
        return "JavaScript"
    return suffixes.get(suffix, "")


def languages_of(version: str) -> tuple[str, ...]:
    """Return the languages that release ``version`` reads."""
    found = _SUFFIXES[version]
    return (*found.values(), *(["JavaScript"] if _ADDED in found else []))


def sent_path(path: str) -> str:
    """Return the path under which a file is given to RefactoringMiner."""
    return path + _ADDED if PurePosixPath(path).suffix in _JAVASCRIPT else path
