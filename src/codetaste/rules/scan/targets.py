"""Select the files of a tree that are scanned.

The published harness scans a git work tree in which everything was committed: tracked files count even
if ``.gitignore`` names them, untracked ones count unless it does, the benchmark's ignore file replaces
the one at the repository's root, nested ignore files have no effect, links and files over 1,000,000 bytes
are skipped. In a plain folder, the form in which a commit is exported, all files count as tracked. These
rules are implemented here because the engine's core differs in two of them; it gets the files by name.
The ignore file itself is not scanned: it is not part of the tree.
"""

from __future__ import annotations

import os
import stat
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING

from codetaste.errors import EngineError
from codetaste.source.tree.overlay import OverlayTree, overlay_path

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from codetaste.rules.scan.ignore import IgnoreFile

MAX_TARGET_BYTES = 1_000_000
GIT_TIMEOUT_S = 120.0
_GIT_ENV = {
    "PATH": os.environ.get("PATH", os.defpath),
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "LC_ALL": "C",
}
# The repository is untrusted: its config must not make git run a program.
_GIT_CONFIG = (
    "safe.directory=*",
    "core.fsmonitor=false",
    f"core.hooksPath={os.devnull}",
    "core.untrackedCache=false",
)


@dataclass(frozen=True, slots=True)
class ScanTargets:
    """The files to scan, sorted, and (path, reason) of files that are skipped although not ignored."""

    files: tuple[str, ...]
    skipped: tuple[tuple[str, str], ...]


def select_targets(tree: Path | OverlayTree, ignore: IgnoreFile | None) -> ScanTargets:
    """Return the files of ``tree`` to scan; paths are POSIX with surrogateescape.

    Raises:
        EngineError: ``tree`` is not a readable folder, or a git work tree that git cannot list.
    """
    present = _present(tree)
    present.pop(".semgrepignore", None)  # replaced by the benchmark's
    paths = ignore.not_ignored(present) if ignore else list(present)
    files, skipped = [], []
    for path in sorted(paths):
        reason = _skip_reason(tree, path, present[path])
        if reason:
            skipped.append((path, reason))
        elif present[path]:
            files.append(path)
    return ScanTargets(tuple(files), tuple(skipped))


def _present(tree: Path | OverlayTree) -> dict[str, os.stat_result | None]:
    """Return every regular file that is part of ``tree``; files written by a patch count as tracked."""
    if isinstance(tree, OverlayTree):
        hidden = tree.changed | tree.deleted
        unchanged = {path: entry for path, entry in _present(tree.base).items() if path not in hidden}
        return unchanged | dict(_walk(tree.overlay))
    if not tree.is_dir():
        raise EngineError(f"{tree} is not a folder; there is nothing to scan")
    present = dict(_walk(tree))
    if (tree / ".git").exists():
        listed = _git_files(tree)
        present = {path: entry for path, entry in present.items() if path in listed}
    return present


def _walk(tree: Path) -> Iterator[tuple[str, os.stat_result | None]]:
    """Yield every regular file below ``tree`` with its state, None for an unreadable folder."""
    pending = [""]
    while pending:
        folder = pending.pop()
        try:
            entries = list(os.scandir(os.path.join(tree, folder) if folder else tree))  # noqa: PTH118  (bytes in names)
        except OSError as error:
            if not folder:
                raise EngineError(f"{tree} cannot be read: {error.strerror}") from None
            yield folder, None
            continue
        for entry in entries:
            path = f"{folder}/{entry.name}" if folder else entry.name
            if entry.is_dir(follow_symlinks=False):
                if entry.name != ".git":
                    pending.append(path)
            elif entry.is_file(follow_symlinks=False):
                yield path, entry.stat(follow_symlinks=False)


def _skip_reason(tree: Path | OverlayTree, path: str, state: os.stat_result | None) -> str:
    """Return why a file that is not ignored is skipped, "" if it is scanned."""
    if state is None:
        return "the folder cannot be read"
    if state.st_size > MAX_TARGET_BYTES:
        return f"{state.st_size:,} bytes; files over {MAX_TARGET_BYTES:,} are not scanned"
    if not state.st_mode & stat.S_IROTH and not os.access(overlay_path(tree, path), os.R_OK):
        return "the file cannot be read"
    return ""


def _git_files(tree: Path) -> frozenset[str]:
    config = [word for entry in _GIT_CONFIG for word in ("-c", entry)]
    command = ["git", *config, "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        result = subprocess.run(
            command, cwd=tree, env=_GIT_ENV, capture_output=True, timeout=GIT_TIMEOUT_S, check=False
        )
    except FileNotFoundError:
        raise EngineError(
            f"{tree} is a git work tree, and there is no git to list its files; install git"
        ) from None
    except subprocess.TimeoutExpired:
        raise EngineError(f"git could not list the files of {tree} in {GIT_TIMEOUT_S:.0f} s") from None
    if result.returncode:
        complaint = " ".join(result.stderr.decode(errors="replace").split())[:300]
        raise EngineError(f"git cannot list the files of {tree}: {complaint}")
    return frozenset(os.fsdecode(name) for name in result.stdout.split(b"\0") if name)
