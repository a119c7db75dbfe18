"""Which differences from R make the patch, and which are left out and why."""

from __future__ import annotations

import stat
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from anyio import to_thread

from codetaste.errors import SourceError
from codetaste.source.writing import show

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from codetaste.harness.harvest_git import PrivateRepository
    from codetaste.harness.harvest_tree import Entry, Snapshot

_SHOWN = 3


@dataclass(frozen=True, slots=True)
class Choice:
    """What becomes of R: files that change or appear, and files that go.

    ``missing`` are contents (SHA-1) that the spool had no room for.
    """

    changed: Mapping[bytes, Entry]
    deleted: frozenset[bytes]
    missing: frozenset[bytes]
    problems: tuple[str, ...]
    notes: tuple[str, ...]

    def without(self, lost: Collection[bytes]) -> Choice:
        """Leave out the contents ``lost``, which could not be read again."""
        kept = {name: entry for name, entry in self.changed.items() if entry.identity not in lost}
        names = self.changed.keys() - kept.keys()
        problems = [*self.problems, f"{_some(names)} could not be read again"] if names else self.problems
        return replace(self, changed=kept, problems=tuple(problems))


async def choose(
    snapshot: Snapshot, repository: PrivateRepository, content_bytes: int, *, whole: bool
) -> Choice:
    """Choose what of ``snapshot`` makes the patch.

    Args:
        snapshot: the tree as it was read; its contents are in ``repository``.
        repository: where git says what is ignored.
        content_bytes: all contents together may not be larger; then the smallest are kept.
        whole: the tree was read to its end, so that what was not seen is gone.

    Raises:
        SourceError: git failed.
    """
    new = snapshot.changed.keys() - snapshot.base.entries.keys()
    problems, notes = [], _notes(snapshot)
    try:
        ignored = await _ignored(snapshot, new, repository, notes)
    except SourceError as error:
        ignored = set()
        problems.append(f"what is ignored cannot be told, so that everything counts: {error}")

    def chosen() -> Choice:
        changed = _fitting(snapshot, ignored, content_bytes, problems)
        deleted = set(snapshot.unseen) if whole else set()
        deleted |= _in_the_way(changed, snapshot, deleted, problems)
        missing = frozenset(one.identity for one in changed.values() if not snapshot.has(one.identity))
        return Choice(changed, frozenset(deleted), missing, tuple(problems), tuple(notes))

    return await to_thread.run_sync(chosen)


async def _ignored(
    snapshot: Snapshot, new: set[bytes], repository: PrivateRepository, notes: list[str]
) -> set[bytes]:
    """Return which new files git ignores, and note those that only a .gitignore of the agent's hides."""
    before = _gitignores(snapshot.base.entries)
    unchanged = {name: entry for name, entry in before.items() if snapshot.unchanged(name)}
    changed = _gitignores(snapshot.changed)
    now = unchanged | {name: entry for name, entry in changed.items() if snapshot.has(entry.identity)}
    ignored = await repository.ignored(new, now)
    if ignored and before != now:
        hidden = ignored - await repository.ignored(ignored, before)
        if hidden:
            notes.append(f"{_some(hidden)} left out: only the agent's .gitignore files ignore that")
    return ignored


def _gitignores(entries: Mapping[bytes, Entry]) -> dict[bytes, Entry]:
    return {
        name: entry
        for name, entry in entries.items()
        if name.endswith(b".gitignore")
        and name.rpartition(b"/")[2] == b".gitignore"
        and stat.S_ISREG(entry.mode)
    }


def _fitting(
    snapshot: Snapshot, ignored: Collection[bytes], content_bytes: int, problems: list[str]
) -> dict[bytes, Entry]:
    """Return what fits, files of R before new ones and small ones before large ones, sorted by name."""
    base = snapshot.base.entries
    found = {name: entry for name, entry in snapshot.changed.items() if name not in ignored}
    if snapshot.overlooked:
        most = snapshot.limits.new_files
        problems.append(f"of {snapshot.overlooked + most:,} new files no more than {most:,} are looked at")
    kept, large, left = [], [], content_bytes
    for name in sorted(found, key=lambda name: (name not in base, found[name].size, name)):
        if found[name].identity and found[name].size <= left:
            left -= found[name].size
            kept.append(name)
        else:
            large.append(name)
    if large:
        size = sum(found[name].size for name in large)
        problems.append(f"{_some(large)} ({size:,} bytes) left out: too large for a patch")
    return {name: found[name] for name in sorted(kept)}


def _in_the_way(
    changed: dict[bytes, Entry],
    snapshot: Snapshot,
    deleted: Collection[bytes],
    problems: list[str],
) -> set[bytes]:
    """Return files of R in whose place a folder is now, or below what is a file now.

    An archive in which something is a file and a folder at once loses what is below the file.
    """
    base = snapshot.base.entries
    also, both, fine = set[bytes](), set[bytes](), set[bytes]()
    for name in list(changed):
        for above in _above(name):
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
        problems.append(f"what lies below {_some(both)} is left out")
    also.update(
        name
        for name in base.keys() - deleted - changed.keys()
        if any(above in changed for above in _above(name))
    )
    return also


def _above(name: bytes) -> Iterator[bytes]:
    at = name.rfind(b"/")
    while at > 0:
        yield name[:at]
        at = name.rfind(b"/", 0, at)


def _notes(snapshot: Snapshot) -> list[str]:
    notes = [
        f"{show(snapshot.example[why])} {why}: left out"
        + (f", as are {count - 1:,} more" if count > 1 else "")
        for why, count in snapshot.left_out.items()
    ]
    if snapshot.repositories:
        notes.append(
            f"{_some(snapshot.repositories, 'folder')} with a git repository of their own: files only"
        )
    return notes


def _some(names: Collection[bytes], what: str = "file") -> str:
    """Return e.g. "4 files, such as 'a', 'b', 'c',"."""
    shown = ", ".join(map(show, sorted(names)[:_SHOWN]))
    return f"{len(names):,} {what}{'s' * (len(names) != 1)} ({shown}{', …' * (len(names) > _SHOWN)})"
