"""Facts about an instance from a local clone: its licence and the size of its golden patch. No network."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from codetaste.benchmark.facts.licences import LICENCE_FILE_NAME, UNKNOWN, recognise
from codetaste.errors import SourceError, ToolMissing
from codetaste.source.git import NO_GIT, git_command, git_environment
from codetaste.source.origin import URL_PATTERN, GitOrigin

if TYPE_CHECKING:
    from codetaste.benchmark.benchmark import Benchmark
    from codetaste.benchmark.instance import Instance

_GIT_TIMEOUT_S = 120.0
_NUMSTAT_FIELDS = 3


@dataclass(frozen=True, slots=True)
class PatchCounts:
    """Files of a patch, and lines that it adds and removes, without any filter."""

    files: int
    added: int
    removed: int

    @property
    def edited(self) -> int:
        """Lines added and removed."""
        return self.added + self.removed


def find_clone(benchmark: Benchmark, instance: Instance) -> Path | None:
    """Return the git directory of a local clone of the instance's repository, None if there is none."""
    try:
        origin = benchmark.origin(instance)
    except SourceError:
        return None
    if not isinstance(origin, GitOrigin) or URL_PATTERN.match(origin.location):
        return None
    clone = Path(origin.location)
    return next((place for place in (clone / ".git", clone) if (place / "HEAD").is_file()), None)


def detect_licence(clone: Path, commit: str) -> str:
    """Return the SPDX name of the licence in the top folder of ``commit``, "unknown" if it is not certain.

    Raises:
        ToolMissing: git is not installed.
    """
    listed = _git(clone, "ls-tree", "--name-only", "-z", commit) or b""
    names = sorted(
        name for name in listed.decode("utf-8", "replace").split("\0") if LICENCE_FILE_NAME.match(name)
    )
    found = (
        recognise((_git(clone, "show", f"{commit}:{name}") or b"").decode("utf-8", "replace"))
        for name in names
    )
    return next((name for name in found if name != UNKNOWN), UNKNOWN)


def count_golden_patch(clone: Path, base: str, golden: str) -> PatchCounts | None:
    """Count the changes between two commits; None if the clone lacks one of them.

    Raises:
        ToolMissing: git is not installed.
    """
    listed = _git(
        clone, "diff", "--numstat", "--no-ext-diff", "--no-textconv", "--find-renames", base, golden
    )
    if listed is None:
        return None
    rows = [line.split(b"\t", 2) for line in listed.splitlines()]
    added, removed = (sum(int(row[side]) for row in rows if row[side].isdigit()) for side in (0, 1))
    return PatchCounts(len([row for row in rows if len(row) == _NUMSTAT_FIELDS]), added, removed)


def _git(git_dir: Path, *args: str) -> bytes | None:
    """Return git's output, None if it fails or takes too long."""
    try:
        done = subprocess.run(
            git_command(args, git_dir),
            capture_output=True,
            env=git_environment(),
            timeout=_GIT_TIMEOUT_S,
            check=False,
            stdin=subprocess.DEVNULL,
            cwd="/",
        )
    except FileNotFoundError:
        raise ToolMissing(NO_GIT) from None
    except (subprocess.TimeoutExpired, OSError):
        return None
    return done.stdout if done.returncode == 0 else None
