"""Incremental scanner: the engine runs only where the cache has no answer; the result is that of a full scan.

The files to scan are selected for each tree. The engine's answer for a file with a set of rules is cached
(``cache/store.py``) under a key of everything it depends on (``cache/keys.py``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

import anyio
from anyio import to_thread

from codetaste.rules.cache.entry import CacheEntry
from codetaste.rules.cache.keys import FileKeys, are_independent, rule_key, set_key
from codetaste.rules.cache.split import breaks_rule, cacheable_answers
from codetaste.rules.scan.ignore import IgnoreFile
from codetaste.rules.scan.model import (
    Match,
    ScanProblem,
    ScanProblemKind,
    ScanResult,
    merge_scans,
    with_skipped,
)
from codetaste.rules.scan.overlay import match_in_tree
from codetaste.rules.scan.targets import select_targets
from codetaste.source.tree.overlay import OverlayTree

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from codetaste.rules.cache.entry import FileAnswer
    from codetaste.rules.cache.keys import FileState
    from codetaste.rules.cache.store import MatchStore
    from codetaste.rules.rule import Rule
    from codetaste.rules.scan.model import RuleMatcher


class IncrementalScanner:
    """A scanner with a cache of matches: ``store`` has answers of ``engine``, and of no other engine.

    ``ignore`` is the text of the benchmark's ignore file (``default.semgrepignore``).
    """

    def __init__(self, engine: RuleMatcher, store: MatchStore, ignore: str = "") -> None:
        self._engine, self._store = engine, store
        self._ignore = IgnoreFile(ignore) if ignore else None
        self._files = FileKeys()
        self._broken: dict[tuple[str, bytes], tuple[ScanProblem, ...]] = {}
        self._turns: WeakValueDictionary[bytes, anyio.Lock] = WeakValueDictionary()

    async def scan(self, rules: Sequence[Rule], tree: Path | OverlayTree) -> ScanResult:
        """Scan ``tree`` with ``rules``, whose ids are unique.

        Scans of folders with the same rules run one after the other, so that nothing is computed twice. Files
        that a patch wrote are in no other tree, so that patched trees do not wait for each other.

        Raises:
            EngineError: the engine could not be run at all, or the tree cannot be listed.
        """
        selection = await to_thread.run_sync(select_targets, tree, self._ignore)
        if not (rules and selection.files and are_independent(rules)):
            return with_skipped(await match_in_tree(self._engine, rules, tree, selection.files), selection)
        keys = {rule.id: rule_key(rule) for rule in rules}
        patched = isinstance(tree, OverlayTree)
        turn = anyio.Lock() if patched else self._turns.setdefault(set_key(keys.values()), anyio.Lock())
        async with turn:
            # Rules that an earlier scan found broken: its answers are cached for the others.
            problems = [problem for rule in keys.items() for problem in self._broken.get(rule, ())]
            rules = [rule for rule in rules if (rule.id, keys[rule.id]) not in self._broken] or rules
            keys = {rule.id: keys[rule.id] for rule in rules}
            states = await to_thread.run_sync(self._files.read, tree, selection.files)
            known = await to_thread.run_sync(self._load, keys, states)
            scans = [await to_thread.run_sync(_as_scan, known, keys), ScanResult((), tuple(problems))]
            if missing := [path for path in selection.files if path not in known]:
                fresh = await match_in_tree(self._engine, rules, tree, missing)
                read = {path: states[path] for path in missing if path in states}
                await to_thread.run_sync(self._remember, fresh, keys, tree, read)
                scans.append(fresh)
        return with_skipped(merge_scans(scans), selection)

    def _load(self, keys: Mapping[str, bytes], states: Mapping[str, FileState]) -> dict[str, FileAnswer]:
        """Return the cached answers by path."""
        entry = self._store.load(sorted(keys.values()))
        if entry is None:
            return {}
        return {path: entry.files[state.key] for path, state in states.items() if state.key in entry.files}

    def _remember(
        self,
        scan: ScanResult,
        keys: Mapping[str, bytes],
        tree: Path | OverlayTree,
        states: Mapping[str, FileState],
    ) -> None:
        """Cache the answers of a scan of the files ``states``, except of files that have changed since."""
        entry = cacheable_answers(scan, keys, {path: state.key for path, state in states.items()})
        if entry is None:
            return
        broken = [problem for problem in scan.problems if breaks_rule(problem)]
        for name in {problem.rule_id for problem in broken}:
            self._broken[name, keys[name]] = tuple(each for each in broken if each.rule_id == name)
        same = {state.key for state in self._files.unchanged(tree, states).values()}
        answers = {key: answer for key, answer in entry.files.items() if key in same}
        self._store.add(CacheEntry(entry.rules, answers))


def _as_scan(answers: Mapping[str, FileAnswer], keys: Mapping[str, bytes]) -> ScanResult:
    """Return cached answers, by path, as the result of a scan with the rules whose keys are given by id."""
    ids: dict[bytes, list[str]] = {}
    for name, key in keys.items():
        ids.setdefault(key, []).append(name)
    matches = [
        Match(name, path, *region)
        for path, answer in answers.items()
        for key, regions in answer.matches.items()
        for name in ids[key]
        for region in regions
    ]
    problems = [
        ScanProblem(ScanProblemKind.PARSE, message, path=path, line=line)
        for path, answer in answers.items()
        for message, line in answer.problems
    ]
    scanned = frozenset(path for path, answer in answers.items() if answer.scanned)
    return ScanResult(tuple(matches), tuple(problems), scanned)
