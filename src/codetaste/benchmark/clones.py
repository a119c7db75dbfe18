"""What a local clone tells of an instance: its licence, the size of its golden patch. Nothing is fetched."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from codetaste.benchmark.licences import FILE, UNKNOWN, recognise
from codetaste.errors import SourceError, ToolMissing
from codetaste.source.git import NO_GIT, git_command, git_environment
from codetaste.source.origin import URL, GitOrigin

if TYPE_CHECKING:
    from codetaste.benchmark.catalog import Benchmark
    from codetaste.benchmark.instance import Instance

_TIME_LIMIT_S = 120.0
_FIELDS = 3


@dataclass(frozen=True, slots=True)
class PatchCounts:
    """How much a patch changes: files, and lines added and removed, nothing left out."""

    files: int
    added: int
    removed: int

    @property
    def edited(self) -> int:
        """Lines added and removed."""
        return self.added + self.removed


def find_clone(benchmark: Benchmark, instance: Instance) -> Path | None:
    """Return the git directory of a local clone of the instance's repository, None where there is none."""
    try:
        origin = benchmark.origin(instance)
    except SourceError:
        return None
    if not isinstance(origin, GitOrigin) or URL.match(origin.location):
        return None
    clone = Path(origin.location)
    return next((place for place in (clone / ".git", clone) if (place / "HEAD").is_file()), None)


def licence(clone: Path, commit: str) -> str:
    """Return the SPDX name of the licence in the top folder of ``commit``, "unknown" where it is not sure.

    Blocks.

    Raises:
        ToolMissing: there is no git.
    """
    listed = _git(clone, "ls-tree", "--name-only", "-z", commit) or b""
    names = sorted(name for name in listed.decode("utf-8", "replace").split("\0") if FILE.match(name))
    found = (
        recognise((_git(clone, "show", f"{commit}:{name}") or b"").decode("utf-8", "replace"))
        for name in names
    )
    return next((name for name in found if name != UNKNOWN), UNKNOWN)


def golden_counts(clone: Path, base: str, golden: str) -> PatchCounts | None:
    """Count what lies between two commits; None where the clone lacks one of them. Blocks.

    Raises:
        ToolMissing: there is no git.
    """
    listed = _git(
        clone, "diff", "--numstat", "--no-ext-diff", "--no-textconv", "--find-renames", base, golden
    )
    if listed is None:
        return None
    rows = [line.split(b"\t", 2) for line in listed.splitlines()]
    added, removed = (sum(int(row[side]) for row in rows if row[side].isdigit()) for side in (0, 1))
    return PatchCounts(len([row for row in rows if len(row) == _FIELDS]), added, removed)


def _git(git_dir: Path, *args: str) -> bytes | None:
    """Return what git says, None where it fails or takes too long."""
    try:
        done = subprocess.run(
            git_command(args, git_dir),
            capture_output=True,
            env=git_environment(),
            timeout=_TIME_LIMIT_S,
            check=False,
            stdin=subprocess.DEVNULL,
            cwd="/",
        )
    except FileNotFoundError:
        raise ToolMissing(NO_GIT) from None
    except (subprocess.TimeoutExpired, OSError):
        return None
    return done.stdout if done.returncode == 0 else None
