"""``Benchmark``: a folder in the published layout, opened for reading."""

from __future__ import annotations

import fnmatch
import json
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from codetaste.benchmark import layout
from codetaste.benchmark.instances_csv import nearest_names_hint, read_table
from codetaste.benchmark.layout import (
    IGNORE_FILE,
    INSTANCE_METADATA_FILE,
    INSTANCES_FILE,
    Track,
    environment_folder,
)
from codetaste.core.files import read_regular_file, read_text_file
from codetaste.core.paths import resource_dir
from codetaste.errors import ConfigError
from codetaste.source.origin import GitOrigin, Origin, parse_origin

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from codetaste.benchmark.instance import Instance
    from codetaste.rules.registration import Direction

_MAX_TABLE_BYTES = 64 * 1024**2
_MAX_TEXT_BYTES = 4 * 1024**2
_MAX_IGNORE_BYTES = 64 * 1024
QUICKSTART = "quickstart"
PUBLISHED_NAME = "codetaste100"
"""The name of the published release, and of its folder."""


@dataclass(frozen=True, slots=True)
class Benchmark:
    """The instances of the folder ``root``, in the order of its table."""

    root: Path
    instances: tuple[Instance, ...]
    repos: Path | None = None
    """A folder of clones ``OWNER/REPO`` or ``OWNER/REPO.git``, bare or not, or links to them."""
    pending: frozenset[tuple[str, Track]] = frozenset()
    """Descriptions, by instance id and track, that a run makes. Until it has, they are ""."""
    _descriptions: dict[tuple[str, Track], str] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )
    """What was read: a job must see the text that its fingerprint was made of, even if the file is edited."""

    def select(self, patterns: Sequence[str] = ()) -> tuple[Instance, ...]:
        """Return the instances whose id matches one of the globs ``patterns``; all without patterns.

        Raises:
            ConfigError: a glob matches no instance; the message names the nearest ids.
        """
        if not patterns:
            return self.instances
        ids = [instance.id for instance in self.instances]
        problems = [
            f"no instance of {self.root} matches {pattern!r}"
            f"{nearest_names_hint(pattern.lower().rstrip('*'), ids)}"
            for pattern in patterns
            if not fnmatch.filter(ids, pattern.lower())
        ]
        if problems:
            raise ConfigError(*problems)
        lowered = [pattern.lower() for pattern in patterns]
        return tuple(
            instance
            for instance in self.instances
            if any(fnmatch.fnmatchcase(instance.id, pattern) for pattern in lowered)
        )

    def get(self, instance_id: str) -> Instance:
        """Return the instance with this id.

        Raises:
            ConfigError: there is none; the message names the nearest ids.
        """
        for instance in self.instances:
            if instance.id == instance_id.lower():
                return instance
        near = nearest_names_hint(instance_id.lower(), [instance.id for instance in self.instances])
        raise ConfigError(f"{self.root} has no instance {instance_id!r}{near}")

    def origin(self, instance: Instance) -> Origin:
        """Return where the trees of ``instance`` come from.

        Raises:
            SourceError: its ``origin`` column is malformed.
        """
        return parse_origin(
            instance.origin,
            owner=instance.owner,
            repo=instance.repo,
            base=instance.commit_hash,
            golden=instance.golden_commit_hash,
            repos=self.repos,
            folder=self.root,
        )

    def describe_missing_clone(self, instance: Instance) -> str:
        """Return a message if ``repos`` lacks a clone of the repository of ``instance``, else "".

        Raises:
            SourceError: its ``origin`` column is malformed.
        """
        if self.repos is None or instance.origin:
            return ""
        origin = self.origin(instance)
        if not isinstance(origin, GitOrigin) or "://" not in origin.location:
            return ""
        return f"no clone of {instance.owner}/{instance.repo} in {self.repos}"

    def golden_path(self, instance: Instance) -> Path:
        """Return the path of X* as a patch; many benchmarks lack the file."""
        return layout.golden_path(self.root, instance)

    def description_path(self, instance: Instance, track: Track) -> Path:
        """Return the path of the task description for ``track``."""
        return layout.description_path(self.root, instance, track)

    def description(self, instance: Instance, track: Track = Track.INSTRUCTED) -> str:
        """Return the task description; it is read once.

        Raises:
            ConfigError: it is missing, empty or not UTF-8.
        """
        key = (instance.id, track)
        if key in self._descriptions:
            return self._descriptions[key]
        if key in self.pending:
            return ""
        path = self.description_path(instance, track)
        text = _read_text(path, f"the {track} description of {instance.id}")
        if not text.strip():
            raise ConfigError(f"{path}: the {track} description of {instance.id} is empty")
        return self._descriptions.setdefault(key, text)

    def known_description(self, instance: Instance, track: Track = Track.INSTRUCTED) -> str:
        """Return the task description as far as it is known before the run; "" if the run makes it.

        Raises:
            ConfigError: it is missing, empty or not UTF-8.
        """
        return "" if (instance.id, track) in self.pending else self.description(instance, track)

    def put_description(self, instance: Instance, track: Track, text: str) -> None:
        """Take a description that the run has made, in place of an earlier one."""
        self._descriptions[instance.id, track] = text

    def with_descriptions(
        self, texts: Mapping[tuple[str, Track], str], pending: Iterable[tuple[str, Track]] = ()
    ) -> Benchmark:
        """Return the benchmark with other descriptions, and with some that are made by the run."""
        changed = replace(self, pending=frozenset(pending))
        ids = {instance.id: instance for instance in self.instances}
        for (name, track), text in {**self._descriptions, **texts}.items():
            if (name, track) not in changed.pending:
                changed.put_description(ids[name], track, text)
        return changed

    def check_descriptions(self, instances: Iterable[Instance], track: Track = Track.INSTRUCTED) -> None:
        """Check that every instance has a task description for ``track``.

        Raises:
            ConfigError: one line for each description that is missing, empty or not UTF-8.
        """
        problems: list[str] = []
        for instance in instances:
            try:
                self.description(instance, track)
            except ConfigError as error:
                problems.extend(error.problems)
        if problems:
            raise ConfigError(*problems)

    def rules_path(self, instance: Instance, direction: Direction) -> Path:
        """Return the path of the instance's rules of one direction; the file may be missing."""
        return layout.rules_path(self.root, instance, direction)

    @property
    def semgrepignore(self) -> Path | None:
        """The ignore file that replaces the rule engine's default, None if the benchmark has none."""
        path = self.root / IGNORE_FILE
        return path if path.is_file() else None

    def ignore_text(self) -> str:
        """Return the text of the ignore file, "" if the benchmark has none.

        Raises:
            ConfigError: it cannot be read, or is not UTF-8.
        """
        path = self.semgrepignore
        return "" if path is None else _read_text(path, "the ignore file", _MAX_IGNORE_BYTES)

    def metadata(self, instance: Instance) -> dict[str, Any] | None:
        """Return the metadata of the instance's execution environment, None if there is no file.

        Raises:
            ConfigError: the file is not a JSON object.
        """
        path = environment_folder(self.root, instance) / INSTANCE_METADATA_FILE
        if not path.is_file():
            return None
        try:
            metadata = json.loads(_read_text(path, f"the metadata of {instance.id}"))
        except (ValueError, RecursionError) as error:
            raise ConfigError(f"{path}: not JSON: {error}") from None
        if not isinstance(metadata, dict):
            raise ConfigError(f"{path}: expected a JSON object")
        return metadata


def open_benchmark(root: Path, *, repos: Path | None = None) -> Benchmark:
    """Open the benchmark in the folder ``root``; ``repos`` is a folder of local clones.

    Raises:
        ConfigError: the folder or its table is missing, or the table has errors; one line for each.
    """
    table = root / INSTANCES_FILE
    if not root.is_dir():
        hint = "get it with codetaste benchmark fetch codetaste100"
        if root.name != PUBLISHED_NAME:
            hint = "codetaste benchmark new makes one"
        raise ConfigError(f"{root}: no such benchmark folder; {hint}")
    try:
        content = read_regular_file(table, _MAX_TABLE_BYTES)
    except OSError as error:
        raise ConfigError(
            f"{table}: {error.strerror}; a benchmark folder lists its instances there"
        ) from None
    return Benchmark(root, read_table(content, str(table)), repos)


def quickstart_folder() -> Path:
    """Return the folder of the benchmark included with codetaste."""
    return resource_dir("examples") / QUICKSTART


def _read_text(path: Path, what: str, limit: int = _MAX_TEXT_BYTES) -> str:
    try:
        return read_text_file(path, limit)
    except OSError as error:
        raise ConfigError(f"{path}: {what} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: {what} is not UTF-8 (byte {error.start})") from None
