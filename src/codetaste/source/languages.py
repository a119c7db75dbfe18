"""Programming languages by the suffixes of their files, and the main language of a change."""

from __future__ import annotations

from collections import Counter
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

_SUFFIXES = {
    "apex": ".cls",
    "bash": ".bash .sh",
    "c": ".c",
    "cairo": ".cairo",
    "clojure": ".clj .cljc .cljs",
    "cpp": ".c++ .cc .cpp .cxx .h++ .hh .hpp .hxx .inl .ipp",
    "csharp": ".cs",
    "dart": ".dart",
    "elixir": ".ex .exs",
    "go": ".go",
    "java": ".java",
    "javascript": ".cjs .js .jsx .mjs",
    "julia": ".jl",
    "kotlin": ".kt .kts",
    "lua": ".lua",
    "ocaml": ".ml .mli",
    "php": ".php",
    "python": ".py .pyi .pyx",
    "r": ".r",
    "ruby": ".rb",
    "rust": ".rs",
    "scala": ".sc .scala",
    "solidity": ".sol",
    "swift": ".swift",
    "typescript": ".cts .mts .ts .tsx",
    "vb": ".vb",
    "vue": ".vue",
}
_HEADER, _C_FAMILY, _SHELL = ".h", ("c", "cpp"), "bash"
LANGUAGE_OF_SUFFIX = {suffix: name for name, suffixes in _SUFFIXES.items() for suffix in suffixes.split()} | {
    _HEADER: "c"
}
"""Names as in a benchmark's table. A header is C here; ``main_language`` gives it to C or C++."""


def language_of(path: str) -> str | None:
    """Return the language of a file by its suffix, whatever its case; None if it is not known as code."""
    return LANGUAGE_OF_SUFFIX.get(PurePosixPath(path).suffix.lower())


def main_language(paths: Iterable[str]) -> str | None:
    """Return the language of most of the files ``paths``; None if no path is of a known language.

    ``.h`` files count for C or C++, whichever has more other files (C if equal). Shell scripts count only if
    there is nothing else. Of languages with equally many files the first in the alphabet is taken.
    """
    counts, headers = Counter[str](), 0
    for path in paths:
        language = language_of(path)
        if PurePosixPath(path).suffix.lower() == _HEADER:
            headers += 1
        elif language is not None:
            counts[language] += 1
    if headers:
        counts[max(_C_FAMILY, key=lambda each: counts[each])] += headers
    scripts = counts.pop(_SHELL, 0)
    return min(counts, key=lambda each: (-counts[each], each), default=_SHELL if scripts else None)
