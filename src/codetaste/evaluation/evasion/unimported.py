"""Whether nothing in a tree uses a new source file.

A file is used if another file names it (in Go and Java: one of its declarations), in code or in a literal,
unless that file is new and unused itself. Tests and programs need no other file. Languages whose files are
named by no other file, or by a build that lists folders, are not examined.
"""

from __future__ import annotations

import re
from functools import cached_property
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from codetaste.evaluation.evasion.hidden_texts import read_file
from codetaste.evaluation.evasion.lexical import suffix_of, without_regions
from codetaste.source.tree.overlay import overlay_path

if TYPE_CHECKING:
    from collections.abc import Iterable

    from codetaste.source.tree.overlay import OverlayTree

_SCRIPTS = frozenset({"js", "jsx", "mjs", "cjs", "ts", "tsx", "mts", "cts", "vue", "svelte"})
_JVM = frozenset({"java", "kt", "scala", "groovy"})
_FAMILIES = (
    frozenset({"py", "pyi"}),
    _SCRIPTS,
    frozenset({"rb"}),
    frozenset({"rs"}),
    frozenset({"go"}),
    _JVM,
)
_DECLARED = frozenset({"go"}) | _JVM
_CONFIGS = frozenset({"json", "toml", "yaml", "yml", "cfg", "ini", "xml", "html", "gradle", "mod"})
_TEST = re.compile(r"(?:^|/)(?:test_[^/]*|conftest|[^/]*(?:_test|\.test|\.spec|Tests?|IT|_spec))\.\w+$")
_SCRIPT_TEST = re.compile(r"(?:^|/)(?:tests?|__tests__|spec)/")
_PROGRAM = re.compile(
    r"(?:^|/)(?:__main__|main|setup|manage|build|doc|lib|mod|package-info|\.[^/]*|[^/]*\.config|[^/]*\.d)\.\w+$"
)
_DECLARATION = re.compile(
    rb"^(?:func|type|var|const|(?:(?:public|final|abstract|sealed|data)[ \t]+)*+"
    rb"(?:class|interface|enum|record|object|fun))"
    rb"[ \t]+(?:\([ \t]*(?:\w+[ \t]+)?\*?(\w+)[^)\n]*\)[ \t]*)?(\w+)",
    re.MULTILINE,
)
_MAX_NAMES = 200
_RUNS_BY_ITSELF = re.compile(rb"^func (?:init|main)\(|^#!", re.MULTILINE)


class ImportSearch:
    """Finds new files of one tree that nothing uses; ``new`` are all files that R does not have."""

    def __init__(self, tree: OverlayTree, new: frozenset[str], paths: Iterable[str]) -> None:
        """Prepare the search; ``paths`` are the files of the tree."""
        self._tree, self._new, self._paths = tree, new, sorted(paths)
        self._unused: dict[str, bool] = {}

    def is_unused(self, path: str) -> bool:
        """Whether ``path`` is new, is code that other code must name, and nothing names it."""
        if path not in self._unused:
            self._unused[path] = True  # files that name only each other are unused
            self._unused[path] = path in self._new and self._find_unused(path)
        return self._unused[path]

    def _find_unused(self, path: str) -> bool:
        suffix = suffix_of(path)
        family = next((each for each in _FAMILIES if suffix in each), None)
        if family is None or _TEST.search(path) or _PROGRAM.search(path):
            return False
        content = read_file(overlay_path(self._tree, path))
        if (family is _SCRIPTS and _SCRIPT_TEST.search(path)) or _RUNS_BY_ITSELF.search(content):
            return False
        names = _names(path, content if suffix in _DECLARED else b"")
        mention = re.compile(rb"\b(?:%s)\b" % b"|".join(sorted(map(re.escape, names))[:_MAX_NAMES]))
        users = [other for other, text in self._changed.items() if other != path and mention.search(text)]
        if any(other not in self._new or not self.is_unused(other) for other in users):
            return False
        return not any(
            mention.search(read_file(self._tree.base / other))
            for other in self._paths
            if other not in self._tree.changed and suffix_of(other) in family | _CONFIGS
        )

    @cached_property
    def _changed(self) -> dict[str, bytes]:
        """The changed files without their comments."""
        return {
            path: without_regions(read_file(overlay_path(self._tree, path)), path, strings=False)
            for path in sorted(self._tree.changed)
        }


def _names(path: str, content: bytes) -> set[bytes]:
    """Return the names by which other files use the file."""
    pure = PurePosixPath(path)
    if content:
        declared = {name for names in _DECLARATION.findall(content) for name in names if name}
        return declared or {pure.stem.encode("utf-8", "surrogateescape")}
    stem = pure.name.partition(".")[0]
    name = pure.parent.name if stem in {"__init__", "index"} else stem
    return {(name or stem).encode("utf-8", "surrogateescape")}
