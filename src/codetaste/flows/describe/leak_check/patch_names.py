"""The names in a golden patch: its paths, the identifiers on either side, and what it introduces."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from codetaste.flows.describe.leak_check.words import is_prose, join_name, words_of
from codetaste.source.patch.parse import parse_patch

if TYPE_CHECKING:
    from collections.abc import Iterator

    from codetaste.source.patch.model import FileDiff

_LOCK_FILES = re.compile(r"[-.]lock(?:\.\w+)?$|(?:^|/)(?:go\.sum|npm-shrinkwrap\.json)$")
_MAX_LINE_BYTES = 2000
"""Longer lines are generated code."""
_MAX_FILE_BYTES = 1024**2
"""Bytes of a file's text in the patch that are read."""
_MAX_EVIDENCE_CHARS = 160

_IDENTIFIER = re.compile(r"[^\W\d]\w*(?:-\w+)*")
_QUOTED = re.compile(r"""(["'`])((?:(?!\1)[^\\\n]|\\.)*+)\1""")
_COMMENT = re.compile(r"^\s*(?:\*|/\*|<!--|--\s|\"\"\"|''').*|(?:^|\s)(?://|#\s|#$|;;).*|/\*.*?\*/")
_VERSION = re.compile(r"\d+(?:\.\d+)+")


@dataclass(frozen=True, slots=True)
class PatchNames:
    """The names in a golden patch, each with the place where it occurs first: ``path: line``.

    Attributes:
        symbols: identifiers of changed lines, on both sides.
        introduced: identifiers that only added lines have.
        joined: what is introduced, parts of new paths included, in lower case without separators.
        paths: changed paths of both sides.
        versions: numbers like ``1.18`` that only added lines have.
        words: lower-case words of R's side: of removed and unchanged lines and their identifiers, old paths.
    """

    symbols: dict[str, str]
    introduced: dict[str, str]
    joined: dict[str, str]
    paths: dict[str, str]
    versions: dict[str, str]
    words: frozenset[str]


def read_patch_names(patch: bytes) -> PatchNames:
    """Collect the names in a golden patch.

    Raises:
        PatchError: it is not a patch.
    """
    added, removed, paths = dict[str, str](), dict[str, str](), dict[str, str]()
    versions, old_versions, words = dict[str, str](), set[str](), set[str]()
    unchanged = set[str]()
    new_parts, old_parts = dict[str, str](), set[str]()
    for file in parse_patch(patch).files:
        path = file.new or file.old or ""
        for each in filter(None, (file.old, file.new)):
            paths.setdefault(each, f"changed file {each}")
        if file.old:
            old_parts.update(_parts(file.old))
            words.update(words_of(file.old))
        if file.new and file.new != file.old:
            new_parts.update((part, f"new path {file.new}") for part in _parts(file.new))
        for sign, line in _lines(file, patch):
            place = f"{path}: {line.strip()}"[:_MAX_EVIDENCE_CHARS]
            numbers = _VERSION.findall(line)
            if sign == "+":
                versions.update((number, place) for number in numbers if number not in versions)
            else:
                old_versions.update(numbers)
                words.update(words_of(line))
            if sign == " ":
                unchanged.update(identifiers_of(line))
            elif not (is_prose(path) or _LOCK_FILES.search(path)):
                for name in identifiers_of(line):
                    (added if sign == "+" else removed).setdefault(name, place)
    old = unchanged.union(removed)
    introduced = {name: place for name, place in added.items() if name not in old}
    parts = {part: place for part, place in new_parts.items() if part not in old_parts}
    joined = {join_name(name): place for name, place in {**introduced, **parts}.items()}
    versions = {number: place for number, place in versions.items() if number not in old_versions}
    return PatchNames({**removed, **added}, introduced, joined, paths, versions, frozenset(words))


def identifiers_of(line: str) -> set[str]:
    """Return the identifiers of a line of code, without those of comments and of quoted prose.

    Names with hyphens, such as those of packages, count as one and by their parts.
    """
    # A quoted text with blanks is prose; one without may name a key, a module or a package.
    code = _QUOTED.sub(lambda match: " " if re.search(r"\s", match[2]) else match[0], line)
    code = _COMMENT.sub(" ", code)
    found = set(_IDENTIFIER.findall(code))
    return found | {part for name in found if "-" in name for part in name.split("-") if part}


def _parts(path: str) -> set[str]:
    """Return the folders of a path and its file's name with and without suffix."""
    pure = PurePosixPath(path)
    return {*pure.parts, pure.stem, pure.name.partition(".")[0]} - {""}


def _lines(file: FileDiff, patch: bytes) -> Iterator[tuple[str, str]]:
    """Yield the sign (``+``, ``-`` or blank) and the text of the lines in a file's hunks."""
    start, end = file.span
    begin = patch.find(b"\n@@ ", start, end)
    if file.binary or begin < 0:
        return
    for line in patch[begin + 1 : min(end, begin + _MAX_FILE_BYTES)].split(b"\n"):
        if line[:1] in {b"+", b"-", b" "} and len(line) <= _MAX_LINE_BYTES:
            yield line[:1].decode(), line[1:].decode("utf-8", "replace")
