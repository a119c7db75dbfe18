"""``GoldenTraces``: by what the golden state R∘X* is recognised in an image, however it got there.

What counts must be found wherever golden code is, and in no honest image: one with R, the packages that R and
R∘X* need, and whatever the setup agent installed. So a trace is one of these:

- *A whole file*: a content that R∘X* has and R has not.
- *A git object*: the id of the golden commit in a text, or the id of that commit or of such a content as the
  name of an object, as that of an object in a pack, or in a table of objects.
- *Lines*: several distinctive lines of one golden file in one file. A single line is no evidence, since a
  library may have it, too. A line of a changed file is distinctive if it is nowhere in R and long enough not
  to be idiomatic, has a word of its own beside those that languages and their protocols prescribe (``def
  __len__(self) -> int:``), and is neither an import nor a comment (licence headers). White space and marks
  of a diff at both ends are ignored, so that a diff in a log or a transcript is found. Fewer lines are
  evidence if they are all that a golden file has.
- *Names*: a compiled file (Python, JVM) keeps no lines, but the path of its source, identifiers and texts. It
  counts if it has the path of a golden file and names of that file that are nowhere in R.

Left out, and named in the report: files that list dependencies, since a lock file's lines are in caches of
honest images; copies of other projects; licences. Files without a distinctive line, such as binary ones and
moved code, are recognised as a whole only.

In 24,000 files (490 MB) of Python and Node packages, no file had more than three of the 3,263 distinctive
lines of fifty commits of three projects, or more than 49 letters in them.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from codetaste.environment.project import is_dependency_list, is_foreign
from codetaste.source.tree.walk import walk_tree

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

STRIPPED = b"+-<> \t\r\f\v"
"""Bytes that are ignored at both ends of a line: white space, and the marks of diffs."""
_MAX_LINE_BYTES = 400
_MIN_LINE_LETTERS, _MIN_LINE_WORDS = 15, 2
_MAX_FILE_BYTES = 16 * 1024**2
"""Of a golden file whose lines are looked at."""
_MIN_WHOLE_BYTES = 64
"""Of a golden file that is recognised as a whole: shorter ones are alike in many projects."""
_WORD = re.compile(rb"[A-Za-z_][A-Za-z0-9_]{2,}")
_LETTERS = re.compile(rb"[^A-Za-z0-9_]+")
_PRESCRIBED = re.compile(rb"__\w+__|[A-Z]\w*(?:Error|Exception)")
_COMMON_WORDS = frozenset(
    b"""
    def self cls class object other return yield async await lambda pass raise try except finally with for
    while else elif not and None True False str int float bool bytes dict list tuple set type len super
    isinstance property args kwargs Any Optional Union List Dict Tuple Iterator Iterable Callable
    Exception function const let var new this null undefined true false typeof instanceof export default
    module exports require strict err error callback done describe expect assert equal length prototype
    Object Array String Number func nil range interface struct string error testing make append map chan
    defer byte rune pub impl mut match where dyn fmt Formatter Result Display Debug Self String Option
    Some Vec Box From into unwrap public private protected static final abstract void boolean long double
    char extends implements throws throw catch switch case break continue equals hashCode toString
    Override Integer List Map obj main
    """.split()
)
"""Words that are no evidence: a line of nothing else is in many projects."""
_MIN_OWN_LETTERS = 6
_COMMENT = (b"#", b"//", b"*", b"/*", b"<!", b";", b"%", b"--", b'"""', b"'''")
_IMPORT = re.compile(
    rb"(?:from|import|use|using|include|require|require_once|package|namespace|extern crate)\b"
    rb"|(?:const|let|var)\s[^=]*=\s*(?:await\s+)?(?:require|import)\s*\(|export\s+(?:\*|\{[^}]*\})\s+from\b"
)
_LICENCE = re.compile(rb"(?:un)?licen[cs]e|copying|notice|copyright|authors", re.IGNORECASE)
_COMPILED = {b".py": b".py", b".java": b"", b".kt": b"", b".scala": b"", b".groovy": b""}
"""Suffixes of sources whose compiled form keeps names; the value is the suffix that its path keeps there."""
_NAME = re.compile(rb"(?!__)[A-Za-z_][A-Za-z0-9_]{7,}")
_TEXT = re.compile(rb"\"([^\"\\\n{}%]{12,})\"|'([^'\\\n{}%]{12,})'")
_CHUNK_BYTES = 1024**2


@dataclass(frozen=True, slots=True)
class GoldenFile:
    """A changed or new file of R∘X*, and its distinctive lines."""

    path: bytes
    lines: frozenset[bytes]
    compiled_path: bytes = b""
    """The end of its path in a compiled file, b"" if it is not compiled to one that keeps it."""
    names: frozenset[bytes] = frozenset()
    """Identifiers and texts that are nowhere in R, and stay in a compiled file."""


@dataclass(frozen=True, slots=True)
class GoldenTraces:
    """The traces of one golden state.

    Attributes:
        commit: the golden commit (hex).
        files: changed and new files that have distinctive lines.
        of_line: the files with a distinctive line, by their number.
        contents: paths of contents that R has not, by size and SHA-1 of the git object.
        left_out: paths that are not searched for, by reason.
    """

    commit: str
    files: tuple[GoldenFile, ...] = ()
    of_line: Mapping[bytes, tuple[int, ...]] = field(default_factory=dict)
    contents: Mapping[int, Mapping[bytes, bytes]] = field(default_factory=dict)
    left_out: Mapping[str, tuple[bytes, ...]] = field(default_factory=dict)

    @property
    def objects(self) -> dict[bytes, str]:
        """What each object is, by its id in bytes: the commit and the contents."""
        blobs = {
            identity: f"content of {path.decode('utf-8', 'backslashreplace')}"
            for found in self.contents.values()
            for identity, path in found.items()
        }
        return {**blobs, bytes.fromhex(self.commit): "commit"}


def letters_of(line: bytes) -> int:
    """Return how much a line says: its letters, digits and underscores."""
    return len(_LETTERS.sub(b"", line))


def golden_traces(
    base: Path, golden: Path, commit: str, check: Callable[[], None] = lambda: None
) -> GoldenTraces:
    """Return the traces of R∘X*; blocking: it reads both trees.

    Args:
        base: the tree R.
        golden: the tree R∘X*.
        commit: the golden commit.
        check: called for every file; it raises to cancel.

    Raises:
        OSError: a tree cannot be read.
    """
    changed = dict(_changed_files(base, golden, check))
    reasons = {path: _why_left_out(path, content) for path, content in changed.items()}
    found = [
        _GoldenContent(
            path,
            content,
            blob_id(content),
            set(filter(is_distinctive, _lines(content))),
            _names(path, content),
        )
        for path, content in changed.items()
        if not reasons[path]
    ]
    known = _known_in_base(base, found, check)
    recognised = [each for each in found if each.identity not in known.contents]
    for each in recognised:
        each.lines -= known.lines
        each.names -= known.names
    left_out = [(why, path) for path, why in reasons.items() if why]
    left_out += [("has no distinctive line", each.path) for each in recognised if not each.lines]
    return _traces(commit, recognised, left_out)


def is_distinctive(line: bytes) -> bool:
    """Whether a stripped line says enough to recognise its file, together with others."""
    words = set(_WORD.findall(line))
    own = (word for word in words - _COMMON_WORDS if not _PRESCRIBED.fullmatch(word))
    return (
        len(line) <= _MAX_LINE_BYTES
        and letters_of(line) >= _MIN_LINE_LETTERS
        and len(words) >= _MIN_LINE_WORDS
        and sum(map(len, own)) >= _MIN_OWN_LETTERS
        and not line.startswith(_COMMENT)
        and not _IMPORT.match(line)
    )


@dataclass(slots=True)
class _GoldenContent:
    path: bytes
    content: bytes
    identity: bytes
    lines: set[bytes]
    names: set[bytes]


@dataclass(frozen=True, slots=True)
class _Known:
    """What R has, of that which was looked for."""

    lines: set[bytes] = field(default_factory=set)
    names: set[bytes] = field(default_factory=set)
    contents: set[bytes] = field(default_factory=set)


def _changed_files(base: Path, golden: Path, check: Callable[[], None]) -> Iterator[tuple[bytes, bytes]]:
    """Yield path and content of each file of R∘X* that R does not have at that path."""
    root, old_root = os.fsencode(golden), os.fsencode(base)
    for path, item in walk_tree(root):
        check()
        if not item.is_file(follow_symlinks=False):
            continue
        content = _read(b"%s/%s" % (root, path))
        old = b"%s/%s" % (old_root, path)
        if os.path.islink(old) or not os.path.isfile(old) or _read(old) != content:  # noqa: PTH113, PTH114
            yield path, content


def blob_id(content: bytes) -> bytes:
    """Return the id of a content in git."""
    return hashlib.sha1(b"blob %d\0%s" % (len(content), content), usedforsecurity=False).digest()


def _why_left_out(path: bytes, content: bytes) -> str:
    if is_dependency_list(path):
        return "lists dependencies"
    if is_foreign(path):
        return "is a copy of another project's"
    if _LICENCE.match(path.rpartition(b"/")[2]):
        return "is a licence"
    return "has more than 16 MiB" if len(content) > _MAX_FILE_BYTES else ""


def _known_in_base(base: Path, wanted: list[_GoldenContent], check: Callable[[], None]) -> _Known:
    """Return which of the lines, names and contents are anywhere in R."""
    lines = frozenset().union(*(each.lines for each in wanted))
    names = frozenset().union(*(each.names for each in wanted))
    sizes = {len(each.content) for each in wanted}
    known, words = _Known(), set[bytes]()
    root = os.fsencode(base)
    for path, item in walk_tree(root):
        check()
        if not item.is_file(follow_symlinks=False):
            continue
        content = _read(b"%s/%s" % (root, path))
        known.lines.update(lines.intersection(_lines(content)))
        if len(content) in sizes:
            known.contents.add(blob_id(content))
        if names:
            words |= _names_in(content)
    # A name may be a part of a longer one of R, with which a compiled file of R has it, too.
    joined = b"\n".join(sorted(words))
    known.names.update(name for name in names if name in joined)
    return known


def _traces(commit: str, recognised: list[_GoldenContent], left_out: list[tuple[str, bytes]]) -> GoldenTraces:
    of_line: defaultdict[bytes, tuple[int, ...]] = defaultdict(tuple)
    contents: defaultdict[int, dict[bytes, bytes]] = defaultdict(dict)
    by_reason: defaultdict[str, tuple[bytes, ...]] = defaultdict(tuple)
    for number, each in enumerate(recognised):
        for line in each.lines:
            of_line[line] += (number,)
        if len(each.content) >= _MIN_WHOLE_BYTES:
            contents[len(each.content)][each.identity] = each.path
    for why, path in sorted(left_out):
        by_reason[why] += (path,)
    files = tuple(
        GoldenFile(each.path, frozenset(each.lines), _compiled_path(each), frozenset(each.names))
        for each in recognised
    )
    return GoldenTraces(commit, files, dict(of_line), dict(contents), dict(by_reason))


def _compiled_path(file: _GoldenContent) -> bytes:
    if not file.names:
        return b""
    suffix = _suffix(file.path)
    return b"/".join(file.path.split(b"/")[-2:]).removesuffix(suffix) + _COMPILED[suffix]


def _names(path: bytes, content: bytes) -> set[bytes]:
    """Return the identifiers and texts that the compiled form of a source keeps."""
    return _names_in(content) if _suffix(path) in _COMPILED else set()


def _names_in(content: bytes) -> set[bytes]:
    texts = {b"".join(groups) for groups in _TEXT.findall(content)}
    return {*_NAME.findall(content), *texts}


def _lines(content: bytes) -> Iterator[bytes]:
    return (line.strip(STRIPPED) for line in content.split(b"\n"))


def _suffix(path: bytes) -> bytes:
    return os.path.splitext(path)[1]  # noqa: PTH122 - bytes


def _read(path: bytes) -> bytes:
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW), "rb", buffering=0) as file:
        return file.readall()
