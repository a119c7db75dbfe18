"""Put the products of a run into a benchmark folder: an instance whole, or not at all.

A file that is there with other content is a conflict, which keeps the whole instance out unless it is to be
replaced. Every file is written atomically and the table last, so that an interrupted adoption is completed by
the next.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from anyio import to_thread

from codetaste.assembly.products import Part, part_folder
from codetaste.benchmark.benchmark import open_benchmark
from codetaste.benchmark.instances_csv import format_table, read_table
from codetaste.benchmark.layout import (
    IGNORE_FILE,
    INSTANCES_FILE,
    Track,
    description_path,
    rules_path,
    scripts_folder,
)
from codetaste.core.files import (
    locked,
    read_regular_file,
    remove_stale_files,
    storage_error,
    write_atomically,
)
from codetaste.errors import ConfigError, JournalError
from codetaste.rules.registration import Direction

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from codetaste.assembly.products import InstanceProducts
    from codetaste.benchmark.instance import Instance

_EXECUTABLE, _FILE = 0o755, 0o644


class AdoptionState(StrEnum):
    """What was done with an instance."""

    ADOPTED = "adopted"
    UNCHANGED = "unchanged"
    """The benchmark has all of it already."""
    LEFT_OUT = "left_out"


@dataclass(frozen=True, slots=True)
class Adoption:
    """What was done with an instance of a run.

    Attributes:
        instance: its id.
        state: the result.
        reasons: why it is left out, a line each.
        written: paths of the files that were written, below the benchmark's folder.
        removed: paths of files that were removed, as the run's scripts have none of this name.
        conflicts: a line for each file that differs from the run's.
        notes: what is missing, and what of the run is left out, a line each.
        parts: where each part comes from, by its name.
    """

    instance: str
    state: AdoptionState
    reasons: tuple[str, ...] = ()
    written: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    conflicts: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    parts: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class AdoptedRun:
    """The result for all instances, and for the ignore file: its conflict, "" without one."""

    adoptions: tuple[Adoption, ...]
    instances: int
    ignore_conflict: str = ""

    @property
    def has_conflicts(self) -> bool:
        """Whether something was left out because the benchmark has another version of it."""
        return bool(self.ignore_conflict) or any(
            each.conflicts and each.state is AdoptionState.LEFT_OUT for each in self.adoptions
        )


async def adopt_products(
    into: Path,
    products: Sequence[InstanceProducts],
    *,
    ignore_file: Path | None = None,
    rejected: Mapping[str, tuple[str, ...]] | None = None,
    replace: bool = False,
) -> AdoptedRun:
    """Put ``products`` into the benchmark folder ``into``, which is created as needed.

    Args:
        into: the folder.
        products: of a run.
        ignore_file: the ignore file that the run's rules were made with, None without one.
        rejected: reasons by instance id for which instances are left out.
        replace: take the run's version of what differs.

    Raises:
        ConfigError: the folder's table has errors, or a file cannot be read.
        StorageFull: no space left.
        JournalError: a file cannot be written.
    """
    await to_thread.run_sync(_make_folder, into)
    async with locked(into):
        return await to_thread.run_sync(_adopt, into, products, ignore_file, rejected or {}, replace)


def _make_folder(into: Path) -> None:
    try:
        into.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        raise ConfigError(f"--into: {into} is not a folder") from None
    except OSError as error:
        raise storage_error(error, into, JournalError) from error


def _adopt(
    into: Path,
    products: Sequence[InstanceProducts],
    ignore_file: Path | None,
    rejected: Mapping[str, tuple[str, ...]],
    replace: bool,
) -> AdoptedRun:
    remove_stale_files(into)  # of a killed adoption
    table = into / INSTANCES_FILE
    rows = {each.id: each for each in (open_benchmark(into).instances if table.exists() else ())}
    before = dict(rows)
    adoptions = []
    for each in products:
        name = each.instance.id
        earlier = before.get(name)
        reasons = (*rejected.get(name, ()), *_lacking(into, each))
        if reasons:
            adoptions.append(Adoption(name, AdoptionState.LEFT_OUT, reasons, notes=each.notes))
            continue
        plan = _plan(into, each, earlier)
        if plan.conflicts and not replace:
            why = ("the benchmark has other files of it; --replace takes the run's",)
            adoptions.append(
                Adoption(name, AdoptionState.LEFT_OUT, why, conflicts=plan.conflicts, notes=each.notes)
            )
            continue
        for path in plan.removed:
            (into / path).unlink(missing_ok=True)
        for path in plan.changed:
            copy_file(each.files[path], into / path)
        rows[name] = each.instance if earlier is None or plan.new_row else earlier
        is_new = bool(earlier is None or plan.new_row or plan.changed or plan.removed)
        adoptions.append(
            Adoption(
                name,
                AdoptionState.ADOPTED if is_new else AdoptionState.UNCHANGED,
                written=plan.changed,
                removed=plan.removed,
                conflicts=plan.conflicts,
                notes=(*each.notes, *_notes(into, each.instance)),
                parts={part.value: files.source for part, files in each.parts.items()},
            )
        )
    if all(each.state is AdoptionState.LEFT_OUT for each in adoptions):
        ignore_file = None
    conflict = _adopt_ignore_file(into, ignore_file, others=bool(before), replace=replace)
    if not rows:
        with suppress(OSError):  # a folder that has anything in it stays
            into.rmdir()
    if rows != before:
        content = format_table(list(rows.values()))
        read_table(content.encode(), str(table))  # reading it checks all of it
        write_atomically(table, content)
    return AdoptedRun(tuple(adoptions), len(rows), conflict)


@dataclass(frozen=True, slots=True)
class _Plan:
    """Paths of files to write and to remove, the conflicts among them, and whether the row differs."""

    changed: tuple[str, ...]
    removed: tuple[str, ...]
    conflicts: tuple[str, ...]
    new_row: bool


def _plan(into: Path, products: InstanceProducts, earlier: Instance | None) -> _Plan:
    instance, files = products.instance, products.files
    changed = tuple(name for name, source in files.items() if not _same(into / name, source))
    conflicts = [f"{into / name}: differs from {files[name]}" for name in changed if (into / name).exists()]
    removed: tuple[str, ...] = ()
    if Part.ENVIRONMENT in products.parts:
        scripts = scripts_folder(into, instance)
        there = (path for path in sorted(scripts.rglob("*")) if path.is_file())
        removed = tuple(name for path in there if (name := path.relative_to(into).as_posix()) not in files)
        conflicts += [f"{into / name}: the run's scripts have no such file" for name in removed]
    new_row = earlier is not None and earlier != instance
    if earlier is not None and new_row:
        columns = _differing(earlier, instance)
        conflicts.insert(0, f"{into / INSTANCES_FILE}: the row of {instance.id} differs: {columns}")
    return _Plan(changed, removed, tuple(conflicts), new_row)


def _differing(one: Instance, other: Instance) -> str:
    names = ("commit_hash", "golden_commit_hash", "combined_score", "category", "language", "owner", "repo")
    return ", ".join(name for name in names if getattr(one, name) != getattr(other, name))


def _lacking(into: Path, products: InstanceProducts) -> tuple[str, ...]:
    """Return why an instance cannot be in a benchmark: every row has an instructed description."""
    path = description_path(into, products.instance, Track.INSTRUCTED)
    source = products.files.get(path.relative_to(into).as_posix(), path)
    return () if source.is_file() and source.stat().st_size else ("it has no instructed description",)


def _notes(into: Path, instance: Instance) -> tuple[str, ...]:
    """Return what the adopted instance lacks of what the layout has."""
    lacking = [
        *(["open description"] if not description_path(into, instance, Track.OPEN).is_file() else []),
        *(f"{each} rules" for each in Direction if not rules_path(into, instance, each).is_file()),
        *(["golden patch"] if not any(part_folder(into, instance, Part.GOLDEN_PATCH).glob("*")) else []),
        *(["environment"] if not scripts_folder(into, instance).is_dir() else []),
    ]
    return (f"without {', '.join(lacking)}",) if lacking else ()


def _adopt_ignore_file(into: Path, source: Path | None, *, others: bool, replace: bool) -> str:
    """Adopt the ignore file; return its conflict, "" without one.

    It decides on the scans of all instances, so that a new one is a conflict where others are.
    """
    if source is None or _same(into / IGNORE_FILE, source):
        return ""
    if replace or not (others or (into / IGNORE_FILE).exists()):
        copy_file(source, into / IGNORE_FILE)
        return ""
    differs = "differs from" if (into / IGNORE_FILE).exists() else "is not there, as is"
    return (
        f"{into / IGNORE_FILE}: {differs} {source}, with which the run's rules were made; --replace takes it"
    )


def _same(target: Path, source: Path) -> bool:
    """Whether both files have the same content, and both or neither can be executed."""
    if not target.is_file():
        return False
    return _is_executable(target) == _is_executable(source) and _read(target) == _read(source)


def _is_executable(path: Path) -> bool:
    return bool(path.stat().st_mode & 0o100)


def _read(path: Path) -> bytes:
    try:
        return read_regular_file(path)
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from None


def copy_file(source: Path, path: Path) -> None:
    """Write the content of ``source`` to ``path`` atomically, and whether it can be executed; blocking.

    Raises:
        ConfigError: ``source`` cannot be read.
        StorageFull: no space left.
        JournalError: ``path`` cannot be written.
    """
    write_atomically(path, _read(source), _EXECUTABLE if _is_executable(source) else _FILE)
