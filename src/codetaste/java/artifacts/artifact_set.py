"""A named set of jars, each pinned by its coordinates and SHA-256: the tables in ``sets/``.

``tests/support/java/resolve_artifacts.py`` makes a table from what Maven resolves.
"""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from codetaste.core.text import did_you_mean
from codetaste.errors import ConfigError

_SETS = Path(__file__).parent / "sets"
_COORDINATES = re.compile(r"([\w.-]+):([\w.-]+):([\w.-]+)(?::([\w.-]+))?")


@dataclass(frozen=True, slots=True)
class Artifact:
    """A jar. ``classifier`` is "" for the main one of its project; ``sha256`` is in hex."""

    group: str
    name: str
    version: str
    classifier: str
    sha256: str
    size: int

    @property
    def path(self) -> str:
        """Its path in a Maven repository."""
        suffix = f"-{self.classifier}" if self.classifier else ""
        folder = f"{self.group.replace('.', '/')}/{self.name}/{self.version}"
        return f"{folder}/{self.name}-{self.version}{suffix}.jar"

    @property
    def coordinates(self) -> str:
        """Its coordinates, group:name:version with the classifier, if it has one."""
        return ":".join(filter(None, (self.group, self.name, self.version, self.classifier)))


@dataclass(frozen=True, slots=True)
class ArtifactSet:
    """The jars of one tool, in the order of its class path."""

    name: str
    artifacts: tuple[Artifact, ...]

    @property
    def size(self) -> int:
        """The size of all jars, in bytes."""
        return sum(artifact.size for artifact in self.artifacts)


def artifact_set_names() -> tuple[str, ...]:
    """Return the names of all sets."""
    return tuple(sorted(path.stem for path in _SETS.glob("*.csv")))


@cache
def load_artifact_set(name: str) -> ArtifactSet:
    """Return the set ``name``.

    Raises:
        ConfigError: there is no such set.
    """
    if name not in artifact_set_names():
        raise ConfigError(f"there is no set of jars {name!r}{did_you_mean(name, artifact_set_names())}")
    with (_SETS / f"{name}.csv").open(newline="", encoding="utf-8") as file:
        rows = tuple(csv.DictReader(file))
    return ArtifactSet(
        name, tuple(_artifact(row["coordinates"], row["sha256"], row["bytes"]) for row in rows)
    )


def _artifact(coordinates: str, sha256: str, size: str) -> Artifact:
    match = _COORDINATES.fullmatch(coordinates)
    if match is None:
        raise ValueError(f"{coordinates!r} are no Maven coordinates")
    return Artifact(match[1], match[2], match[3], match[4] or "", sha256, int(size))
