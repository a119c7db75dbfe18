"""A scanner that asks the engine only what it has not answered yet; its answer is that of a full scan.

Which files are scanned is decided anew for each tree. What the engine says of a file is kept
(``cache_store``) under all that decides it (``cache_keys``), and laid together again (``cache_mosaic``).
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

import anyio
from anyio import to_thread

from codetaste.rules.cache_keys import FileKeys, independent, rule_key, scope_key, set_key
from codetaste.rules.cache_mosaic import Mosaic, by_use
from codetaste.rules.cache_reading import read_scan
from codetaste.rules.cache_sheet import Sheet
from codetaste.rules.ignore import IgnoreFile
from codetaste.rules.layered import match_in
from codetaste.rules.rule import Rule
from codetaste.rules.scan import Match, Problem, Scan, with_skipped
from codetaste.rules.selection import select

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from codetaste.rules.cache_keys import FileState
    from codetaste.rules.cache_store import MatchStore
    from codetaste.rules.scan import Matcher
    from codetaste.source.layers import Layers


class IncrementalScanner:
    """A scanner over a store of matches."""

    def __init__(self, engine: Matcher, store: MatchStore, ignore: str = "") -> None:
        """Prepare.

        Args:
            engine: what matches.
            store: what it has said before, and nobody else.
            ignore: the text of the benchmark's ignore file (``default.semgrepignore``).
        """
        self._engine, self._store = engine, store
        self._ignore = IgnoreFile(ignore) if ignore else None
        self._files = FileKeys()
        self._turns: WeakValueDictionary[bytes, anyio.Lock] = WeakValueDictionary()

    async def scan(self, rules: Sequence[Rule], tree: Path | Layers) -> Scan:
        """Scan ``tree`` with ``rules``, whose ids are unique.

        Scans with the same rules go one after the other, so that none asks what another is asking.

        Raises:
            EngineError: the engine could not be run at all, or the tree cannot be listed.
        """
        selection = await to_thread.run_sync(select, tree, self._ignore)
        files = selection.files
        if not (rules and files and independent(rules)):
            return with_skipped(await match_in(self._engine, rules, tree, files), selection)
        keys = {rule.id: rule_key(rule) for rule in rules}
        async with self._turns.setdefault(set_key(keys.values()), anyio.Lock()):
            states = await to_thread.run_sync(self._files.read, tree, files)
            inquiry = _Inquiry(self._engine, self._store, self._files, tree, rules, keys, files, states)
            return with_skipped(await inquiry.answer(), selection)


@dataclass(slots=True)
class _Inquiry:
    """One scan: what is known, what the engine is asked, and what comes of it."""

    engine: Matcher
    store: MatchStore
    memo: FileKeys
    tree: Path | Layers
    rules: Sequence[Rule]
    keys: dict[str, bytes]
    """Of the rules, by id."""
    files: Sequence[str]
    states: dict[str, FileState]
    mosaic: Mosaic = field(init=False)
    names: dict[bytes, str] = field(init=False)
    """Paths by their keys. A file that could not be read has a key that no sheet has."""
    broken: set[str] = field(default_factory=set)
    loose: list[Problem] = field(default_factory=list)
    whole: bool = True
    """Whether every answer so far may be kept."""

    def __post_init__(self) -> None:
        self.names = {
            state.key if (state := self.states.get(path)) else b"?" + os.fsencode(path): path
            for path in self.files
        }
        self.mosaic = Mosaic(self.keys.values(), self.names)

    async def answer(self) -> Scan:
        """Find out everything, and say it."""
        await to_thread.run_sync(self._recall)
        if gap := self.mosaic.gap():
            some = [rule for rule in self.rules if self.keys[rule.id] in gap.rules]
            await self._ask(some, gap.files, again=True)
        if rest := self.mosaic.rest():
            await self._ask(self.rules, rest)
        if not self.mosaic.complete:
            await self._close()
        return await to_thread.run_sync(self._said)

    def _recall(self) -> None:
        """Lay what is known."""
        exact = self.store.exact(self.mosaic.rules)
        if exact is not None:
            self.mosaic.lay(exact)
        if not self.mosaic.complete:
            for sheet in by_use(self.store.others(self.mosaic.rules), self.mosaic.rules):
                self.mosaic.lay(sheet)

    async def _ask(self, rules: Sequence[Rule], files: Iterable[bytes], *, again: bool = False) -> None:
        """Have the engine match ``rules`` against ``files``, and keep what may be kept.

        ``again`` says that what went wrong in a single file shall be asked again, with all rules.
        """
        paths = sorted(self.names[key] for key in files)
        scan = await match_in(self.engine, rules, self.tree, paths)
        named = {path: key for key, path in self.names.items()}
        reading = read_scan(
            scan, {rule.id: self.keys[rule.id] for rule in rules}, {p: named[p] for p in paths}
        )
        self.mosaic.lay(reading.sheet)
        if again:
            self.mosaic.tear(reading.spoilt)
        torn = reading.spoilt if again else frozenset()
        self.loose += [p for p in reading.loose if named.get(p.path) not in torn]
        self.broken |= reading.broken
        self.whole &= reading.whole
        if reading.whole:
            good = [self.keys[rule.id] for rule in rules if rule.id not in reading.broken]
            await to_thread.run_sync(self._keep, good, reading.sheet, reading.spoilt)

    async def _close(self) -> None:
        """Put together the answers that have several sources.

        Where nobody knows whether the engine looks at a file it is asked, with rules that cost nothing.
        """
        scanned: dict[bytes, bool] = {}
        if doubtful := self.mosaic.doubtful():
            good = [rule for rule in self.rules if rule.id not in self.broken]
            paths = {self.names[key]: key for key in doubtful}
            scan = await match_in(self.engine, _probes(good), self.tree, sorted(paths))
            scanned = {key: path in scan.scanned for path, key in paths.items()}
            if scan.problems:
                await self._ask(self.rules, doubtful)
        made = self.mosaic.close(scanned)
        if self.whole:
            good_keys = [self.keys[rule.id] for rule in self.rules if rule.id not in self.broken]
            await to_thread.run_sync(self._keep, good_keys, Sheet((), made), frozenset())

    def _keep(self, rules: Iterable[bytes], sheet: Sheet, spoilt: frozenset[bytes]) -> None:
        """Store what ``sheet`` says as the answers to ``rules``, where the files are still what they were."""
        asked = {
            self.names[key]: self.states.get(self.names[key]) for key in sheet.files if key not in spoilt
        }
        same = self.memo.unchanged(self.tree, {path: state for path, state in asked.items() if state})
        files = {state.key: sheet.files[state.key] for state in same.values()}
        self.store.add(Sheet(tuple(sorted(rules)), files), used=self.names)

    def _said(self) -> Scan:
        ids: dict[bytes, list[str]] = {}
        for name, key in self.keys.items():
            ids.setdefault(key, []).append(name)
        matches, problems, scanned = [], list(self.loose), []
        for key, said in self.mosaic.answers.items():
            path = self.names[key]
            if said.scanned:
                scanned.append(path)
            matches += [
                Match(name, path, *region)
                for rule, regions in said.matches.items()
                for name in ids[rule]
                for region in regions
            ]
            problems += [Problem("parse", message, path=path, line=line) for message, line in said.problems]
        return Scan(tuple(sorted(matches)), tuple(dict.fromkeys(problems)), frozenset(scanned))


def _probes(rules: Iterable[Rule]) -> list[Rule]:
    """Rules that match nothing, at no cost, in the files that ``rules`` are for."""
    scopes = {scope_key(rule): rule for rule in rules}
    return [
        Rule(f"scope-{number}", rule.languages, _probe(rule)) for number, rule in enumerate(scopes.values())
    ]


def _probe(rule: Rule) -> dict[str, object]:
    body: dict[str, object] = {"message": "-", "severity": "INFO", "languages": list(rule.languages)}
    paths = {"paths": rule.body["paths"]} if "paths" in rule.body else {}
    return {**body, **paths, "pattern-regex": r"\A(?!)"}
