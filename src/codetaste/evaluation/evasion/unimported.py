"""Find the new source files of a tree that nothing uses.

A file is used if another file names it (in Go and Java: one of its declarations), in code or in a literal,
unless that file is new and unused itself. Tests and programs need no other file. Languages whose files are
named by no other file, or by a build that lists folders, are not examined.
"""

from __future__ import annotations

import re
from collections import defaultdict
from functools import cached_property
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from codetaste.evaluation.evasion.entry_points import JVM, is_found_by_place, runs_by_itself
from codetaste.evaluation.evasion.hidden_texts import read_file
from codetaste.evaluation.evasion.lexical import suffix_of, without_regions
from codetaste.source.tree.overlay import overlay_path

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from codetaste.source.tree.overlay import OverlayTree

_SCRIPTS = frozenset({"js", "jsx", "mjs", "cjs", "ts", "tsx", "mts", "cts", "vue", "svelte"})
_FAMILIES = (
    frozenset({"py", "pyi"}),
    _SCRIPTS,
    frozenset({"rb"}),
    frozenset({"rs"}),
    frozenset({"go"}),
    JVM,
)
_DECLARED = frozenset({"go"}) | JVM
_CONFIGS = frozenset({"json", "toml", "yaml", "yml", "cfg", "ini", "xml", "html", "gradle", "mod"})
_PROSE = frozenset({"md", "markdown", "rst", "adoc"})
_DECLARATION = re.compile(
    rb"^(?:func|type|var|const)[ \t]+(?:\([ \t]*+(?:\w++[ \t]++)?\*?(\w++)[^)\n]*+\)[ \t]*+)?(\w++)",
    re.MULTILINE,
)
"""In Go, with the type of a method."""
_DECLARATIONS = re.compile(rb"^(?:type|var|const)[ \t]*\(\n((?:[^)\n][^\n]*+\n|\n)*+)\)", re.MULTILINE)
"""In Go, several of them in brackets."""
_IN_BRACKETS = re.compile(rb"^[ \t](\w++)", re.MULTILINE)
_JVM_DECLARATION = re.compile(
    rb"^(?:(?:public|protected|private|internal|static|final|abstract|open|sealed|non-sealed|data|value"
    rb"|case|implicit|inline|suspend|infix|operator|tailrec|external|expect|actual|annotation|const)[ \t]+)*+"
    rb"(?:@?interface|enum[ \t]+class|fun[ \t]+interface|class|enum|record|object|trait|typealias|val|var|def"
    rb"|fun(?:[ \t]+<[^\n(]*>)?)"
    rb"[ \t]+(?:[\w.<>?]+\.)?(\w++)",
    re.MULTILINE,
)
"""In Java, Kotlin, Scala and Groovy; of an extension function the name without its receiver."""
_RUBY_DECLARATION = re.compile(rb"^[ \t]*(?:class|module)[ \t]+(?:\w++::)*+(\w++)", re.MULTILINE)
_NAME = re.compile(rb"[\w\x80-\xff]+(?:-+[\w\x80-\xff]+)*+")
"""A word, or words with hyphens between them."""


class ImportSearch:
    """Finds new files of one tree that nothing uses; ``new`` are all files that R does not have."""

    def __init__(self, tree: OverlayTree, new: frozenset[str], paths: Iterable[str]) -> None:
        """Prepare the search; ``paths`` are the files of the tree."""
        self._tree, self._new, self._paths = tree, new, sorted(paths)

    def is_unused(self, path: str) -> bool:
        """Whether ``path`` is new, is code that other code must name, and nothing names it."""
        return path in self._unused

    @cached_property
    def _unused(self) -> frozenset[str]:
        """All files that nothing uses; each file of the tree is searched once for their names."""
        names = {path: _names(path, content) for path, content in self._dependent_files()}
        by_name: defaultdict[bytes, set[str]] = defaultdict(set)
        for path, found in names.items():
            for name in found:
                by_name[name].add(path)
        unused = set(names)
        # A file is searched once it is known to be used, so files that only name each other never are.
        # Those of the patch come first, because they mostly suffice.
        pending = [path for path in self._paths if self._may_use(path) and path not in names]
        pending.sort(key=self._tree.changed.__contains__)
        while pending and unused:
            user = pending.pop()
            for name in by_name.keys() & _mentioned_names(self._code(user)):
                used = {path for path in by_name[name] & unused if self._can_name(user, path)}
                unused -= used
                pending += used
        return frozenset(unused)

    def _dependent_files(self) -> Iterator[tuple[str, bytes]]:
        """Yield the new files that are code that other code must name, with their contents."""
        for path in sorted(self._new):
            if _family(path) and not is_found_by_place(path, self._tree.base):
                content = read_file(overlay_path(self._tree, path))
                if not runs_by_itself(path, content):
                    yield path, content

    def _may_use(self, path: str) -> bool:
        if path in self._tree.changed:
            return True
        return path not in self._tree.deleted and bool(_family(path) or suffix_of(path) in _CONFIGS)

    def _can_name(self, user: str, path: str) -> bool:
        """Whether a name of ``path`` in ``user`` means ``path``: in all but prose that the patch wrote."""
        suffix = suffix_of(user)
        return suffix in _family(path) | _CONFIGS or (user in self._tree.changed and suffix not in _PROSE)

    def _code(self, path: str) -> bytes:
        """Return a file; one that the patch wrote without its comments."""
        content = read_file(overlay_path(self._tree, path))
        return without_regions(content, path, strings=False) if path in self._tree.changed else content


def _family(path: str) -> frozenset[str]:
    suffix = suffix_of(path)
    return next((each for each in _FAMILIES if suffix in each), frozenset())


def _names(path: str, content: bytes) -> set[bytes]:
    """Return the names by which other files use the file."""
    pure = PurePosixPath(path)
    suffix = suffix_of(path)
    if suffix in _DECLARED:
        declared = _names_in_go(content) if suffix == "go" else set(_JVM_DECLARATION.findall(content))
        return declared or _longest_name(pure.stem)
    stem = pure.name.partition(".")[0]
    names = _longest_name((pure.parent.name if stem in {"__init__", "index", "mod"} else "") or stem)
    if suffix == "rb":
        # Loaders such as that of Rails find mail_queue.rb by MailQueue.
        by_loader = stem.replace("_", "").lower().encode("utf-8", "surrogateescape")
        names |= {name for name in _RUBY_DECLARATION.findall(content) if name.lower() == by_loader}
    return names


def _names_in_go(content: bytes) -> set[bytes]:
    declared = {name for names in _DECLARATION.findall(content) for name in names if name}
    return declared.union(*map(_IN_BRACKETS.findall, _DECLARATIONS.findall(content)))


def _longest_name(text: str) -> set[bytes]:
    found = _NAME.findall(text.encode("utf-8", "surrogateescape"))
    return {max(found, key=len)} if found else set()


def _mentioned_names(content: bytes) -> set[bytes]:
    """Return the words of a text, and what they make up with hyphens."""
    found = set(_NAME.findall(content))
    return found.union(*(name.split(b"-") for name in found if b"-" in name))
