"""Cache keys: digests of everything that determines the matches of a rule in a file.

The engine reads one file at a time: its path (for the rule's ``paths``, and for its language), its content
(also for its language, by a first line ``#!``) and its executable bit. A rule's ``metadata`` has no effect.
Its ``message`` has: matches at the same place with the same message are reported once.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from typing import TYPE_CHECKING, NamedTuple

from codetaste.source.tree.overlay import OverlayTree

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from codetaste.rules.engine.install import RuleEngine
    from codetaste.rules.rule import Rule

CACHE_FORMAT = 3
"""Increase it when the engine's flags, its input, or the format of cache entries change."""
KEY_BYTES = 16

_IGNORED = frozenset(("id", "metadata"))
_MODES = frozenset((None, "search", "taint"))
_SETTLED_NS = 3_000_000_000
_MEMO_FILES = 200_000
_EXECUTABLE = 0o111

Stamp = tuple[int, ...]


class FileState(NamedTuple):
    """Key and stamp of a file when it was read.

    ``stable``: a later change must change ``stamp``. As in git, the times of a file that was modified
    immediately before it was read are not trusted.
    """

    key: bytes
    stamp: Stamp
    stable: bool


def engine_cache_name(engine: RuleEngine) -> str:
    """Return a name that identifies the engine's answers, "" if the engine cannot be identified."""
    # The hash identifies only a core; a wrapper may start a program that changes.
    return f"{CACHE_FORMAT} {engine.version} {engine.sha256}" if engine.is_core else ""


def are_independent(rules: Iterable[Rule]) -> bool:
    """Whether the matches of each rule are independent of the others: other modes combine rules."""
    return all(rule.body.get("mode") in _MODES for rule in rules)


def rule_key(rule: Rule) -> bytes:
    """Return the digest of all parts of ``rule`` that affect its matches."""
    relevant = {key: rule.body[key] for key in sorted(rule.body) if key not in _IGNORED}
    return _short(json.dumps(relevant).encode())


def set_key(rules: Iterable[bytes]) -> bytes:
    """Return the digest of a set of rules (possibly with repetitions), given by their keys."""
    return _short(b"".join(sorted(rules)))


class FileKeys:
    """Digests of files, memoised (up to a limit) as long as the files do not change."""

    def __init__(self) -> None:
        self._trees: dict[str, dict[str, FileState]] = {}

    def read(self, tree: Path | OverlayTree, files: Sequence[str]) -> dict[str, FileState]:
        """Return the state of each of ``files`` that can be read."""
        if not isinstance(tree, OverlayTree):
            return self._memoised(tree, files)
        # Files written by a patch exist only for one or two scans, so they are not memoised.
        patched = [path for path in files if path in tree.changed]
        from_base = [path for path in files if path not in tree.changed]
        return self._memoised(tree.base, from_base) | _states(tree.overlay, patched, {})

    def _memoised(self, folder: Path, files: Sequence[str]) -> dict[str, FileState]:
        before = self._trees.get(str(folder), {})
        states = _states(folder, files, before)
        if sum(map(len, self._trees.values())) + len(states) > _MEMO_FILES:
            self._trees.clear()
        self._trees[str(folder)] = before | states
        return states

    def unchanged(self, tree: Path | OverlayTree, states: Mapping[str, FileState]) -> dict[str, FileState]:
        """Return those of ``states`` whose files have certainly not changed since they were read."""
        if isinstance(tree, OverlayTree):
            now: dict[str, FileState] = {}
            for folder in (tree.base, tree.overlay):
                there = {path: state for path, state in states.items() if tree.folder(path) == folder}
                now |= _states(folder, there, there)
        else:
            now = _states(tree, states, states)
        return {
            path: state
            for path, state in states.items()
            if (again := now.get(path)) and again.key == state.key and again.stamp == state.stamp
        }


def _states(folder: Path, files: Iterable[str], before: Mapping[str, FileState]) -> dict[str, FileState]:
    root = os.fsencode(folder)
    states = {}
    for path in files:
        try:
            states[path] = _state(root, path, before.get(path))
        except OSError:
            continue
    return states


def _state(root: bytes, path: str, before: FileState | None) -> FileState:
    """Read a file, unless it cannot have changed since ``before``."""
    name = os.fsencode(path)
    full_path = b"%s/%s" % (root, name)
    stamp = _stamp(os.lstat(full_path))
    if before is not None and before.stable and before.stamp == stamp:
        return before
    now_ns = time.time_ns()
    descriptor = os.open(full_path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        status = os.fstat(descriptor)
        digest = hashlib.sha256(b"%o %d %s\n" % (status.st_mode & _EXECUTABLE, len(name), name))
        while block := os.read(descriptor, 1 << 20):
            digest.update(block)
        stamp = _stamp(status)
    finally:
        os.close(descriptor)
    settled = max(status.st_mtime_ns, status.st_ctime_ns) + _SETTLED_NS < now_ns
    return FileState(digest.digest()[:KEY_BYTES], stamp, settled)


def _stamp(status: os.stat_result) -> Stamp:
    """Return the file attributes that a change of content or mode alters; ctime cannot be set."""
    return (
        status.st_dev, status.st_ino, status.st_mode, status.st_size, status.st_mtime_ns, status.st_ctime_ns
    )  # fmt: skip


def _short(text: bytes) -> bytes:
    return hashlib.sha256(text).digest()[:KEY_BYTES]
