"""``MarkedPatch``: a patch, and which of its lines rules match, as PREC counts them (CodeTaste §4.1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from codetaste.core.files import open_regular_file
from codetaste.core.text import printable
from codetaste.errors import SourceError
from codetaste.evaluation.changed_lines import (
    Exclusions,
    changed_lines,
    covered_lines,
    is_excluded,
    precision_counts,
)
from codetaste.evaluation.metrics import PrecisionCounts
from codetaste.evaluation.trials.untrusted_files import FileProblem, file_size, read_file
from codetaste.source.patch.model import Patch
from codetaste.source.patch.parse import parse_patch

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from codetaste.rules.scan.model import Match
    from codetaste.source.patch.model import FileDiff

MAX_READ_BYTES = 64 * 1024**2
"""A larger patch is not read: the page has its beginning."""
_BEGINNING_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class PatchMatches:
    """Matches of the rules that a patch was scored with, by what they say about its lines.

    Attributes:
        additive: Γ⁺ in R∘X̂: added lines that they cover count for PREC⁺.
        reductive: Γ⁻ in R: removed lines that they cover count for PREC⁻.
        remaining: Γ⁻ in R∘X̂: what the patch has left, or brought.
    """

    additive: tuple[Match, ...] = ()
    reductive: tuple[Match, ...] = ()
    remaining: tuple[Match, ...] = ()


_NO_MATCHES = PatchMatches()


@dataclass(frozen=True, slots=True)
class MarkedFile:
    """The changes of one file, with the matches in it and what they cover.

    Attributes:
        file: its changes.
        excluded: PREC does not count it.
        matches: those in this file, ``reductive`` in its old version, the others in its new one.
        counts: its own changed lines, and how many of them matches cover; as if it were not excluded.
    """

    file: FileDiff
    excluded: bool
    matches: PatchMatches
    counts: PrecisionCounts

    @property
    def path(self) -> str:
        """Its path after the patch, or before it if it is deleted."""
        return self.file.new or self.file.old or ""


@dataclass(frozen=True, slots=True)
class MarkedPatch:
    """A patch and its marks.

    Attributes:
        content: its text; the beginning if it was not read as a whole.
        size: size of the patch file, bytes.
        files: in the order of the text; none if the patch cannot be parsed.
        counts: behind PREC, of all files that are not excluded.
        problem: why it is not shown file by file, "" if it is.
    """

    content: bytes = b""
    size: int = 0
    files: tuple[MarkedFile, ...] = ()
    counts: PrecisionCounts | None = None
    problem: str = ""

    @property
    def whole(self) -> bool:
        """Whether ``content`` is all of it."""
        return len(self.content) == self.size


def read_marked_patch(path: Path, root: str, matches: PatchMatches) -> MarkedPatch:
    """Read a patch file and mark it; one that cannot be read or parsed has a problem. Blocking.

    Args:
        path: the file.
        root: real path of the folder that must contain it.
        matches: of the rules.
    """
    size = file_size(path) or 0
    try:
        if size > MAX_READ_BYTES:
            content = _beginning(path)
            why = f"it has {size:,} bytes; more than {MAX_READ_BYTES:,} are not shown line by line"
            return MarkedPatch(content, size, problem=why)
        content = read_file(path, root, MAX_READ_BYTES)
    except (FileProblem, OSError) as problem:
        return MarkedPatch(problem=f"{path.name} {problem}")
    return mark_patch(content, matches)


def mark_patch(content: bytes, matches: PatchMatches) -> MarkedPatch:
    """Return the patch ``content`` with its marks."""
    try:
        patch = parse_patch(content)
    except SourceError as error:
        return MarkedPatch(content, len(content), problem=printable(str(error)))
    additive, reductive, remaining = (
        _by_path(each) for each in (matches.additive, matches.reductive, matches.remaining)
    )
    files = []
    for file in patch.files:
        of_file = (
            additive.get(file.new or "", ()),
            reductive.get(file.old or "", ()),
            remaining.get(file.new or "", ()),
        )
        found = PatchMatches(*of_file) if any(of_file) else _NO_MATCHES
        files.append(MarkedFile(file, is_excluded(file), found, _counts_of_file(file, found)))
    counted = Patch(tuple(each.file for each in files if not each.excluded))
    return MarkedPatch(content, len(content), tuple(files), _counts(counted, matches))


def _counts_of_file(file: FileDiff, found: PatchMatches) -> PrecisionCounts:
    if not (found.additive or found.reductive):
        return PrecisionCounts(0, file.added_count, 0, file.removed_count)
    return _counts(Patch((file,)), found)


def _counts(patch: Patch, matches: PatchMatches) -> PrecisionCounts:
    """Return the counts behind PREC of all files of a patch."""
    lines = changed_lines(patch, Exclusions.NONE)
    positive = covered_lines(each for each in matches.additive if each.path in lines.added)
    negative = covered_lines(each for each in matches.reductive if each.path in lines.removed)
    return precision_counts(lines, positive, negative)


def _by_path(matches: Iterable[Match]) -> dict[str, tuple[Match, ...]]:
    found: dict[str, list[Match]] = {}
    for match in matches:
        found.setdefault(match.path, []).append(match)
    return {path: tuple(each) for path, each in found.items()}


def _beginning(path: Path) -> bytes:
    with open_regular_file(path) as file:
        content = file.read(_BEGINNING_BYTES)
    return content[: content.rfind(b"\n") + 1] or content
