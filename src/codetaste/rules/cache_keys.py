"""What decides the matches of a rule in a file, as digests: of the engine, of the rule, of the file.

The engine looks at one file at a time: at its path (for the rule's ``paths``, and its language), its content
(for its language too, by a first line ``#!``) and whether it may be executed. A rule's ``metadata`` is only
carried along. Its ``message`` does decide: matches in one place are told once if their messages are the same.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from typing import TYPE_CHECKING, NamedTuple

from codetaste.source.layers import Layers

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from codetaste.rules.engine_install import Engine
    from codetaste.rules.rule import Rule

FORMAT = 1
"""Raise it when the engine's flags change, or what is asked of it, or how answers are kept."""
KEY_BYTES = 16

_IGNORED = frozenset(("id", "metadata"))
_MODES = frozenset((None, "search", "taint"))
_SETTLED_NS = 3_000_000_000
_MEMO_FILES = 200_000
_EXECUTABLE = 0o111

Stamp = tuple[int, ...]


class FileState(NamedTuple):
    """A file as it was when it was read.

    ``settled`` says that a later change cannot leave ``stamp`` as it is: like git, we do not trust the times
    of a file that was changed a moment before it was read.
    """

    key: bytes
    stamp: Stamp
    settled: bool


def engine_name(engine: Engine) -> str:
    """Say which engine answers, "" for one that cannot be told from another that answers differently."""
    # Only a core is known by its hash; what a wrapper starts may change behind it.
    return f"{FORMAT} {engine.version} {engine.sha256}" if engine.core else ""


def independent(rules: Iterable[Rule]) -> bool:
    """Whether each rule's matches are its own affair: modes other than these two combine rules."""
    return all(rule.body.get("mode") in _MODES for rule in rules)


def rule_key(rule: Rule) -> bytes:
    """Digest of all of ``rule`` that decides its matches."""
    deciding = {key: rule.body[key] for key in sorted(rule.body) if key not in _IGNORED}
    return _short(json.dumps(deciding).encode())


def scope_key(rule: Rule) -> bytes:
    """Digest of what decides which files the engine looks at for ``rule``."""
    return _short(json.dumps([rule.languages, rule.body.get("paths")]).encode())


def set_key(rules: Iterable[bytes]) -> bytes:
    """Digest of a set of rules (with repetitions, if there are any), given by their keys."""
    return _short(b"".join(sorted(rules)))


class FileKeys:
    """Digests of files; what is known of a tree's files is kept, within bounds, for as long as they rest."""

    def __init__(self) -> None:
        self._trees: dict[str, dict[str, FileState]] = {}

    def read(self, tree: Path | Layers, files: Sequence[str]) -> dict[str, FileState]:
        """Return the state of each of ``files`` that can be read. Blocks."""
        if not isinstance(tree, Layers):
            return self._remembered(tree, files)
        # What a patch makes is there for one scan or two.
        made = [path for path in files if path in tree.changed]
        kept = [path for path in files if path not in tree.changed]
        return self._remembered(tree.base, kept) | _states(tree.over, made, {})

    def _remembered(self, folder: Path, files: Sequence[str]) -> dict[str, FileState]:
        before = self._trees.get(str(folder), {})
        states = _states(folder, files, before)
        if sum(map(len, self._trees.values())) + len(states) > _MEMO_FILES:
            self._trees.clear()
        self._trees[str(folder)] = before | states
        return states

    def unchanged(self, tree: Path | Layers, states: Mapping[str, FileState]) -> dict[str, FileState]:
        """Return those of ``states`` whose files surely did not change since they were read. Blocks."""
        if isinstance(tree, Layers):
            now: dict[str, FileState] = {}
            for folder in (tree.base, tree.over):
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
    """The state of each of ``files`` that can be read."""
    root = os.fsencode(folder)
    states = {}
    for path in files:
        try:
            states[path] = _state(root, path, before.get(path))
        except OSError:
            continue
    return states


def _state(root: bytes, path: str, before: FileState | None) -> FileState:
    """Read a file again unless nothing can have changed since ``before``."""
    name = os.fsencode(path)
    place = b"%s/%s" % (root, name)
    stamp = _stamp(os.lstat(place))
    if before is not None and before.settled and before.stamp == stamp:
        return before
    now_ns = time.time_ns()
    descriptor = os.open(place, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
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
    """All that a change of content or mode would change; nobody can set the time of the last change."""
    return (
        status.st_dev, status.st_ino, status.st_mode, status.st_size, status.st_mtime_ns, status.st_ctime_ns
    )  # fmt: skip


def _short(text: bytes) -> bytes:
    return hashlib.sha256(text).digest()[:KEY_BYTES]
