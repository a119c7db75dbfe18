"""Incremental scanner: the engine runs only where the cache has no answer; the result is that of a full scan.

The files to scan are selected for each tree. The engine's answer for a file is cached (``cache/store.py``)
under a key of everything it depends on (``cache/keys.py``); cached answers are combined by
``cache/merge.py``.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

import anyio
from anyio import to_thread

from codetaste.rules.cache.entry import CacheEntry
from codetaste.rules.cache.keys import FileKeys, are_independent, rule_key, scope_key, set_key
from codetaste.rules.cache.merge import AnswerMerge, sort_by_coverage
from codetaste.rules.cache.split import split_scan
from codetaste.rules.rule import Rule
from codetaste.rules.scan.ignore import IgnoreFile
from codetaste.rules.scan.model import Match, ScanProblem, ScanResult, with_skipped
from codetaste.rules.scan.overlay import match_in_tree
from codetaste.rules.scan.targets import select_targets

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from codetaste.rules.cache.keys import FileState
    from codetaste.rules.cache.store import MatchStore
    from codetaste.rules.scan.model import RuleMatcher
    from codetaste.source.tree.overlay import OverlayTree


class IncrementalScanner:
    """A scanner with a cache of matches."""

    def __init__(self, engine: RuleMatcher, store: MatchStore, ignore: str = "") -> None:
        """Create the scanner.

        Args:
            engine: the rule engine.
            store: cached answers of this engine, and of no other.
            ignore: the text of the benchmark's ignore file (``default.semgrepignore``).
        """
        self._engine, self._store = engine, store
        self._ignore = IgnoreFile(ignore) if ignore else None
        self._files = FileKeys()
        self._turns: WeakValueDictionary[bytes, anyio.Lock] = WeakValueDictionary()

    async def scan(self, rules: Sequence[Rule], tree: Path | OverlayTree) -> ScanResult:
        """Scan ``tree`` with ``rules``, whose ids are unique.

        Scans with the same rules run one after the other, so that nothing is computed twice.

        Raises:
            EngineError: the engine could not be run at all, or the tree cannot be listed.
        """
        selection = await to_thread.run_sync(select_targets, tree, self._ignore)
        files = selection.files
        if not (rules and files and are_independent(rules)):
            return with_skipped(await match_in_tree(self._engine, rules, tree, files), selection)
        keys = {rule.id: rule_key(rule) for rule in rules}
        async with self._turns.setdefault(set_key(keys.values()), anyio.Lock()):
            states = await to_thread.run_sync(self._files.read, tree, files)
            incremental = _IncrementalScan(
                self._engine, self._store, self._files, tree, rules, keys, files, states
            )
            return with_skipped(await incremental.run(), selection)


@dataclass(slots=True)
class _IncrementalScan:
    """The state of one incremental scan."""

    engine: RuleMatcher
    store: MatchStore
    memo: FileKeys
    tree: Path | OverlayTree
    rules: Sequence[Rule]
    keys: dict[str, bytes]
    """Keys of the rules, by id."""
    files: Sequence[str]
    states: dict[str, FileState]
    merge: AnswerMerge = field(init=False)
    names: dict[bytes, str] = field(init=False)
    """Paths by file key. An unreadable file has a key that no cache entry contains."""
    broken_rules: set[str] = field(default_factory=set)
    other_problems: list[ScanProblem] = field(default_factory=list)
    cacheable: bool = True
    """Whether every answer so far may be cached."""

    def __post_init__(self) -> None:
        self.names = {
            state.key if (state := self.states.get(path)) else b"?" + os.fsencode(path): path
            for path in self.files
        }
        self.merge = AnswerMerge(self.keys.values(), self.names)

    async def run(self) -> ScanResult:
        """Use the cache, run the engine for the missing answers, and return the result."""
        await to_thread.run_sync(self._load_cached)
        if subset := self.merge.missing_subset():
            some = [rule for rule in self.rules if self.keys[rule.id] in subset.rules]
            await self._match(some, subset.files, repeat_faulty=True)
        if missing := self.merge.missing():
            await self._match(self.rules, missing)
        if not self.merge.complete:
            await self._finish()
        return await to_thread.run_sync(self._result)

    def _load_cached(self) -> None:
        exact = self.store.load_exact(self.merge.rules)
        if exact is not None:
            self.merge.add(exact)
        if not self.merge.complete:
            for entry in sort_by_coverage(self.store.load_overlapping(self.merge.rules), self.merge.rules):
                self.merge.add(entry)

    async def _match(
        self, rules: Sequence[Rule], files: Iterable[bytes], *, repeat_faulty: bool = False
    ) -> None:
        """Run the engine with ``rules`` on ``files``, and cache the answers that may be cached.

        With ``repeat_faulty``, files in which something failed are scanned again later, with all rules.
        """
        paths = sorted(self.names[key] for key in files)
        scan = await match_in_tree(self.engine, rules, self.tree, paths)
        keys_by_path = {path: key for key, path in self.names.items()}
        split = split_scan(
            scan, {rule.id: self.keys[rule.id] for rule in rules}, {p: keys_by_path[p] for p in paths}
        )
        self.merge.add(split.entry)
        repeated = split.uncacheable_files if repeat_faulty else frozenset()
        self.merge.invalidate(repeated)
        self.other_problems += [p for p in split.other_problems if keys_by_path.get(p.path) not in repeated]
        self.broken_rules |= split.broken_rules
        self.cacheable &= split.cacheable
        if split.cacheable:
            good = [self.keys[rule.id] for rule in rules if rule.id not in split.broken_rules]
            await to_thread.run_sync(self._store, good, split.entry, split.uncacheable_files)

    async def _finish(self) -> None:
        """Combine the answers that come from several cache entries.

        Where it is unknown whether the engine scans a file, it runs with rules that match nothing.
        """
        scanned: dict[bytes, bool] = {}
        if uncertain := self.merge.uncertain():
            good = [rule for rule in self.rules if rule.id not in self.broken_rules]
            paths = {self.names[key]: key for key in uncertain}
            scan = await match_in_tree(self.engine, _probes(good), self.tree, sorted(paths))
            scanned = {key: path in scan.scanned for path, key in paths.items()}
            if scan.problems:
                await self._match(self.rules, uncertain)
        made = self.merge.finish(scanned)
        if self.cacheable:
            good_keys = [self.keys[rule.id] for rule in self.rules if rule.id not in self.broken_rules]
            await to_thread.run_sync(self._store, good_keys, CacheEntry((), made), frozenset())

    def _store(self, rules: Iterable[bytes], entry: CacheEntry, excluded: frozenset[bytes]) -> None:
        """Cache the answers of ``entry`` for ``rules``, except of files that have changed since."""
        paths = [self.names[key] for key in entry.files if key not in excluded]
        states = {path: state for path in paths if (state := self.states.get(path))}
        same = self.memo.unchanged(self.tree, states)
        files = {state.key: entry.files[state.key] for state in same.values()}
        self.store.add(CacheEntry(tuple(sorted(rules)), files), used=self.names)

    def _result(self) -> ScanResult:
        ids: dict[bytes, list[str]] = {}
        for name, key in self.keys.items():
            ids.setdefault(key, []).append(name)
        matches, problems, scanned = [], list(self.other_problems), []
        for key, answer in self.merge.answers.items():
            path = self.names[key]
            if answer.scanned:
                scanned.append(path)
            matches += [
                Match(name, path, *region)
                for rule, regions in answer.matches.items()
                for name in ids[rule]
                for region in regions
            ]
            problems += [
                ScanProblem("parse", message, path=path, line=line) for message, line in answer.problems
            ]
        return ScanResult(tuple(sorted(matches)), tuple(dict.fromkeys(problems)), frozenset(scanned))


def _probes(rules: Iterable[Rule]) -> list[Rule]:
    """Return rules that match nothing, for the same files as ``rules``."""
    probes = []
    for number, rule in enumerate({scope_key(rule): rule for rule in rules}.values()):
        body = {"message": "-", "severity": "INFO", "languages": list(rule.languages)}
        paths = {"paths": rule.body["paths"]} if "paths" in rule.body else {}
        probes.append(Rule(f"scope-{number}", rule.languages, {**body, **paths, "pattern-regex": r"\A(?!)"}))
    return probes
