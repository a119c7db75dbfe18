"""Check that a benchmark folder is complete: its table, and all files of each instance."""

from __future__ import annotations

import os
import stat
import unicodedata
from dataclasses import dataclass
from typing import TYPE_CHECKING

from codetaste.benchmark.benchmark import open_benchmark
from codetaste.benchmark.layout import (
    ENVIRONMENT_SCRIPTS,
    INSTANCE_METADATA_FILE,
    Track,
    environment_folder,
    scripts_folder,
)
from codetaste.errors import ConfigError, UnsafeArchive
from codetaste.rules.registration import Direction

if TYPE_CHECKING:
    from pathlib import Path

    from codetaste.benchmark.benchmark import Benchmark
    from codetaste.benchmark.instance import Instance


@dataclass(frozen=True, slots=True)
class Inventory:
    """The result of a completeness check.

    Attributes:
        instances: number of rows of the table.
        missing: one line for each missing file that every run needs.
        missing_for_tests: one line for each missing file that only test runs need.
    """

    instances: int
    missing: tuple[str, ...]
    missing_for_tests: tuple[str, ...]


def read_inventory(root: Path, *, instances: int | None = None) -> Inventory:
    """Check which files of the instances of ``root`` exist; none is scanned or run.

    Args:
        root: a folder in the published layout.
        instances: the required number of instances.

    Raises:
        ConfigError: the table is missing, has errors, or has another number of rows.
    """
    benchmark = open_benchmark(root)
    found = len(benchmark.instances)
    if instances is not None and found != instances:
        raise ConfigError(f"{root}: its table has {found} instances, expected {instances}")
    missing: list[str] = []
    lacking: list[str] = []
    for instance in benchmark.instances:
        missing += _missing_task_files(benchmark, instance)
        lacking += _missing_environment_files(benchmark, instance)
    return Inventory(found, tuple(missing), tuple(lacking))


def _missing_task_files(benchmark: Benchmark, instance: Instance) -> list[str]:
    problems: list[str] = []
    for track in Track:
        try:
            benchmark.description(instance, track)
        except ConfigError as error:
            problems += error.problems
    for direction in Direction:
        path = benchmark.rules_path(instance, direction)
        if not _has_content(path):
            problems.append(f"{path}: missing or empty")
    return problems


def _missing_environment_files(benchmark: Benchmark, instance: Instance) -> list[str]:
    folder = environment_folder(benchmark.root, instance)
    try:
        metadata = benchmark.metadata(instance)
    except ConfigError as error:
        return list(error.problems)
    if metadata is None:
        return [f"{folder / INSTANCE_METADATA_FILE}: missing"]
    problems = []
    commits = (metadata.get("base_hash"), metadata.get("golden_hash"))
    if commits != (instance.commit_hash, instance.golden_commit_hash):
        problems.append(f"{folder / INSTANCE_METADATA_FILE}: its commits differ from the table's")
    scripts = [scripts_folder(benchmark.root, instance) / name for name in ENVIRONMENT_SCRIPTS]
    return problems + [f"{path}: missing or empty" for path in scripts if not _has_content(path)]


def _has_content(path: Path) -> bool:
    try:
        info = path.lstat()
    except OSError:
        return False
    return stat.S_ISREG(info.st_mode) and info.st_size > 0


def reject_unsafe_files(root: Path, label: str) -> None:
    """Check that a tree has only folders and regular files, with names that differ on every file system.

    Raises:
        UnsafeArchive: it has a link, a device, or names that differ only in case or normalisation.
    """
    for folder, folders, files in os.walk(root):
        seen: dict[str, str] = {}
        for name in (*folders, *files):
            path = os.path.join(folder, name)  # noqa: PTH118 - many of them
            shown = repr(os.path.relpath(path, root))
            mode = os.lstat(path).st_mode
            if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
                raise UnsafeArchive(f"{label}: {shown} is a link or a device; a benchmark may have none")
            plain = unicodedata.normalize("NFC", name).casefold()
            if plain in seen:
                raise UnsafeArchive(
                    f"{label}: {shown} and {seen[plain]!r} are the same name on a file system without case"
                )
            seen[plain] = name
