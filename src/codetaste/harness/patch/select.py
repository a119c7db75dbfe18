"""``PatchSelection``: which differences from R make the patch, and which are left out and why."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from anyio import to_thread

from codetaste.core.text import printable_name
from codetaste.errors import SourceError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping

    from codetaste.harness.patch.git import PrivateRepository
    from codetaste.harness.patch.snapshot import TreeEntry, TreeSnapshot

_MAX_SHOWN_NAMES = 3


@dataclass(frozen=True, slots=True)
class PatchSelection:
    """The changes of R: changed and new files, and deleted files.

    ``missing`` are contents (SHA-1) that did not fit into the spool.
    """

    changed: Mapping[bytes, TreeEntry]
    deleted: frozenset[bytes]
    missing: frozenset[bytes]
    problems: tuple[str, ...]
    notes: tuple[str, ...]

    def without(self, unreadable: Collection[bytes]) -> PatchSelection:
        """Return the selection without the contents ``unreadable``, which could not be read again."""
        changed = {name: entry for name, entry in self.changed.items() if entry.identity not in unreadable}
        names = self.changed.keys() - changed.keys()
        problems = (
            [*self.problems, f"{_describe_names(names)} could not be read again"] if names else self.problems
        )
        return replace(self, changed=changed, problems=tuple(problems))


async def select_changes(
    snapshot: TreeSnapshot,
    repository: PrivateRepository,
    content_bytes: int,
    *,
    whole: bool,
    left_out: Collection[str] = (),
    counts: Callable[[str], bool] | None = None,
) -> PatchSelection:
    """Select the changes of ``snapshot`` that make the patch.

    Args:
        snapshot: the tree as it was read; its contents are in ``repository``.
        repository: the repository in which git finds ignored files.
        content_bytes: limit on all contents together; the smallest are selected first.
        whole: the tree was read to its end, so that files that were not seen are deleted.
        left_out: new files, and folders with a slash at their end, that are no changes.
        counts: returns whether a new file is a change; None: each is.

    Raises:
        SourceError: git failed.
    """
    new = snapshot.changed.keys() - snapshot.base.entries.keys()
    problems, notes = [], _notes(snapshot)
    before = _at_or_below(new, left_out)
    if before:
        notes.append(f"{_describe_names(before)} left out: there before the agent")
    new -= before
    by_products = set() if counts is None else {name for name in new if not counts(os.fsdecode(name))}
    if by_products:
        notes.append(f"{_describe_names(by_products)} left out: no part of such a change")
    new -= by_products
    try:
        ignored = await _ignored(snapshot, new, repository, notes)
    except SourceError as error:
        ignored = set[bytes]()
        problems.append(f"git cannot list the ignored files, so none is left out: {error}")

    def chosen() -> PatchSelection:
        changed = _fitting(snapshot, ignored | before | by_products, content_bytes, problems)
        deleted = set(snapshot.unseen) if whole else set()
        deleted |= _replaced_files(changed, snapshot, deleted, problems)
        missing = frozenset(
            one.identity for one in changed.values() if not snapshot.has_content(one.identity)
        )
        return PatchSelection(changed, frozenset(deleted), missing, tuple(problems), tuple(notes))

    return await to_thread.run_sync(chosen)


def _at_or_below(names: Collection[bytes], left_out: Collection[str]) -> set[bytes]:
    """Return the names that are, or are below, one of ``left_out``."""
    encoded = [each.encode("utf-8", "surrogateescape") for each in left_out]
    folders = tuple(each for each in encoded if each.endswith(b"/"))
    return {name for name in names if name in encoded or name.startswith(folders)}


async def _ignored(
    snapshot: TreeSnapshot, new: set[bytes], repository: PrivateRepository, notes: list[str]
) -> set[bytes]:
    """Return the new files that git ignores, and note those that only the agent's .gitignore files ignore."""
    before = _gitignores(snapshot.base.entries)
    unchanged = {name: entry for name, entry in before.items() if snapshot.unchanged(name)}
    changed = _gitignores(snapshot.changed)
    now = unchanged | {name: entry for name, entry in changed.items() if snapshot.has_content(entry.identity)}
    ignored = await repository.ignored_names(new, now)
    if ignored and before != now:
        hidden = ignored - await repository.ignored_names(ignored, before)
        if hidden:
            notes.append(f"{_describe_names(hidden)} left out: ignored only by the agent's .gitignore files")
    return ignored


def _gitignores(entries: Mapping[bytes, TreeEntry]) -> dict[bytes, TreeEntry]:
    return {
        name: entry
        for name, entry in entries.items()
        if name.endswith(b".gitignore")
        and name.rpartition(b"/")[2] == b".gitignore"
        and stat.S_ISREG(entry.mode)
    }


def _fitting(
    snapshot: TreeSnapshot, ignored: Collection[bytes], content_bytes: int, problems: list[str]
) -> dict[bytes, TreeEntry]:
    """Return the changes within the limit, sorted by name; files of R and small files are taken first."""
    base = snapshot.base.entries
    found = {name: entry for name, entry in snapshot.changed.items() if name not in ignored}
    if snapshot.over_limit:
        limit = snapshot.limits.new_files
        problems.append(f"only {limit:,} of {snapshot.over_limit + limit:,} new files are considered")
    fitting, large, left = [], [], content_bytes
    for name in sorted(found, key=lambda name: (name not in base, found[name].size, name)):
        if found[name].identity and found[name].size <= left:
            left -= found[name].size
            fitting.append(name)
        else:
            large.append(name)
    if large:
        size = sum(found[name].size for name in large)
        problems.append(f"{_describe_names(large)} ({size:,} bytes) left out: too large for a patch")
    return {name: found[name] for name in sorted(fitting)}


def _replaced_files(
    changed: dict[bytes, TreeEntry],
    snapshot: TreeSnapshot,
    deleted: Collection[bytes],
    problems: list[str],
) -> set[bytes]:
    """Return files of R that are replaced by a folder, or whose folder is replaced by a file.

    If a name is both a file and a folder in the archive, the files below it are left out.
    """
    base = snapshot.base.entries
    also, both, fine = set[bytes](), set[bytes](), set[bytes]()
    for name in list(changed):
        for above in _parents(name):
            if above in fine:
                break
            if above in changed or snapshot.unchanged(above):
                both.add(above)
                del changed[name]
                break
            if above in base and above not in deleted:
                also.add(above)
        else:
            fine.add(name.rpartition(b"/")[0])
    if both:
        problems.append(f"everything below {_describe_names(both)} is left out")
    also.update(
        name
        for name in base.keys() - deleted - changed.keys()
        if any(above in changed for above in _parents(name))
    )
    return also


def _parents(name: bytes) -> Iterator[bytes]:
    at = name.rfind(b"/")
    while at > 0:
        yield name[:at]
        at = name.rfind(b"/", 0, at)


def _notes(snapshot: TreeSnapshot) -> list[str]:
    notes = [
        f"{printable_name(snapshot.examples[why])} {why}: left out"
        + (f", as are {count - 1:,} more" if count > 1 else "")
        for why, count in snapshot.left_out.items()
    ]
    if snapshot.nested_repositories:
        notes.append(
            f"{_describe_names(snapshot.nested_repositories, 'folder')} with a git repository of their own: "
            "only their files are taken"
        )
    return notes


def _describe_names(names: Collection[bytes], what: str = "file") -> str:
    """Return e.g. "4 files ('a', 'b', 'c', …)"."""
    shown = ", ".join(map(printable_name, sorted(names)[:_MAX_SHOWN_NAMES]))
    return (
        f"{len(names):,} {what}{'s' * (len(names) != 1)} ({shown}{', …' * (len(names) > _MAX_SHOWN_NAMES)})"
    )
