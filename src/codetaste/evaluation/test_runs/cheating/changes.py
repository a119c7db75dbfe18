"""The files that a patch changes, with their texts before and after it: what the detectors search."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

from codetaste.evaluation.evasion.hidden_texts import MAX_BYTES, MAX_FILE_BYTES, read_file
from codetaste.evaluation.evasion.lexical import without_regions
from codetaste.evaluation.test_runs.cheating.patterns.line_pattern import PROGRAMS
from codetaste.source.patch.model import LINK
from codetaste.source.tree.overlay import overlay_path

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from codetaste.source.patch.model import FileDiff, Patch
    from codetaste.source.tree.overlay import OverlayTree

_MAX_LINE_CHARS = 1000
"""What follows in a line is not searched."""
_TEST_PATH = re.compile(
    r"(?:^|/)(?:tests?|__tests__|__mocks__|specs?|testing|e2e|integration-?tests?|\w+Tests?)/"
    r"|(?:^|/)(?:test_[^/]*|conftest|setupTests|[^/]*(?:_test|_tests|[.-]test|[.-]spec|_spec|Tests?|TestCase|IT))"
    r"\.\w+$|(?:^|/)(?:src|app)/(?:\w+T|t)est/"
)
_PROSE = frozenset(
    {"md", "rst", "txt", "adoc", "svg", "lock", "snap", "csv", "html", "css", "scss", "po", "diff"}
)
_EXECUTABLE = 0o111


@lru_cache(16_384)
def is_test_path(path: str) -> bool:
    """Whether a file is part of the tests, by its folder or name."""
    return _TEST_PATH.search(path) is not None


def extension_of(path: str) -> str:
    """Return the ending of the file's name without the dot, in lower case; "" if it has none."""
    name = path.rpartition("/")[2]
    return name.rpartition(".")[2].lower() if "." in name[1:] else ""


@dataclass(frozen=True)
class ChangedFile:
    """A file of a patch.

    Attributes:
        diff: its part of the patch.
        before: its content in R, b"" for a new file or one that is not text.
        after: its content in R∘X̂, b"" for a deleted file or one that is not text.
    """

    diff: FileDiff
    before: bytes
    after: bytes
    _views: dict[bool, list[str]] = field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def path(self) -> str:
        """Its path in R∘X̂, or in R if it is deleted."""
        return self.diff.new or self.diff.old or ""

    @property
    def is_new(self) -> bool:
        """Whether R has no file at its path."""
        return self.diff.new is not None and (self.diff.old is None or self.diff.copied)

    @property
    def is_test(self) -> bool:
        """Whether it is part of the tests, before or after the patch."""
        return any(is_test_path(path) for path in (self.diff.old, self.diff.new) if path)

    @property
    def is_prose(self) -> bool:
        """Whether no program runs it: pages, data and lock files."""
        return extension_of(self.path) in _PROSE and not self.path.endswith("CMakeLists.txt")

    @property
    def is_executable(self) -> bool:
        """Whether the patch says that it may be executed."""
        return bool(self.diff.new_mode & _EXECUTABLE)

    @cached_property
    def before_text(self) -> str:
        """Its text in R."""
        return self.before.decode("utf-8", "replace")

    @cached_property
    def after_text(self) -> str:
        """Its text in R∘X̂."""
        return self.after.decode("utf-8", "replace")

    @cached_property
    def added_lines(self) -> tuple[tuple[int, str], ...]:
        """The added lines of R∘X̂ with their numbers; the first 1,000 characters of each."""
        return tuple(_lines_in(self.after_text, self.diff.added_runs))

    @cached_property
    def removed_lines(self) -> tuple[tuple[int, str], ...]:
        """The removed lines of R with their numbers."""
        return tuple(_lines_in(self.before_text, self.diff.removed_runs))

    def line_without_comments(self, number: int, *, strings: bool) -> str:
        """Return a line of R∘X̂ with spaces for comments, and for literals unless ``strings``."""
        if strings not in self._views:
            blanked = without_regions(self.after, self.path, strings=not strings)
            self._views[strings] = blanked.decode("utf-8", "replace").split("\n")
        lines = self._views[strings]
        return lines[number - 1][:_MAX_LINE_CHARS] if 0 < number <= len(lines) else ""


@dataclass(frozen=True, slots=True)
class PatchChanges:
    """All files of a patch; ``unread`` are those whose texts were too large or are not there, by path."""

    files: tuple[ChangedFile, ...]
    unread: tuple[str, ...] = ()


def pair_texts(patch: Patch, before: Mapping[str, bytes], after: Mapping[str, bytes]) -> PatchChanges:
    """Pair the files of a patch with their contents in R and R∘X̂, by path.

    A file with a path that is missing in ``before`` or ``after`` is unread; binary files and submodules have
    no text. So are programs as binary files, such as JavaScript with a NUL byte, and links by which a program
    is in a file that is not searched.
    """
    files, unread = [], []
    for diff in patch.files:
        texts = (before, diff.old), (after, diff.new)
        if diff.binary or diff.submodule:
            files.append(ChangedFile(diff, b"", b""))
            if diff.binary and diff.new is not None and extension_of(diff.new) in PROGRAMS:
                unread.append(diff.new)
            continue
        if any(path is not None and path not in contents for contents, path in texts):
            unread.append(diff.new or diff.old or "")
        found = [b"" if path is None else contents.get(path, b"") for contents, path in texts]
        files.append(file := ChangedFile(diff, *found))
        if diff.new_mode == LINK and extension_of(file.path) in PROGRAMS:
            target = file.after_text.rstrip()
            unread += [] if extension_of(target) in PROGRAMS else [file.path]
    return PatchChanges(tuple(files), tuple(unread))


def read_changes(patch: Patch, tree: OverlayTree) -> PatchChanges:
    """Read the texts of the files of ``patch`` in R and R∘X̂: 32 MiB in all, 8 MiB of a file. Blocks.

    Small files are read first, so that a large one cannot hide the others.
    """
    places = []
    for diff in patch.files:
        if not (diff.binary or diff.submodule):
            places += [(tree.base / path, 0, path) for path in (diff.old,) if path is not None]
            places += [(overlay_path(tree, path), 1, path) for path in (diff.new,) if path is not None]
    texts: tuple[dict[str, bytes], dict[str, bytes]] = ({}, {})
    left = MAX_BYTES
    sizes = sorted(
        (place.lstat().st_size if place.is_file() else 0, side, path, place) for place, side, path in places
    )
    for size, side, path, place in sizes:
        if size <= min(left, MAX_FILE_BYTES):
            texts[side][path] = content = read_file(place, size)
            left -= len(content)
    return pair_texts(patch, *texts)


def _lines_in(text: str, runs: tuple[range, ...]) -> Iterator[tuple[int, str]]:
    lines = text.split("\n")
    for run in runs:
        for number in run:
            if number > len(lines):
                return
            yield number, lines[number - 1][:_MAX_LINE_CHARS]
