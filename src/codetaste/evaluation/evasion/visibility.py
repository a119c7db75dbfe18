"""Test whether a rule sees a file at another path: the engine scans the old file there.

The files for all paths are in one folder, so that the engine starts once. A path at which several rules are
tested needs one more scan for each further rule.
"""

from __future__ import annotations

import shutil
from collections import defaultdict
from dataclasses import dataclass, replace
from functools import partial
from itertools import zip_longest
from typing import TYPE_CHECKING

from anyio import to_thread

from codetaste.core.files import storage_error
from codetaste.errors import SourceError
from codetaste.evaluation.evasion.hidden_texts import read_file
from codetaste.rules.rule import TEXT_LANGUAGES
from codetaste.source.tree.overlay import overlay_path

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from codetaste.rules.rule import Rule
    from codetaste.rules.scan.model import Match, Scanner
    from codetaste.source.tree.overlay import OverlayTree

_SHOWN_TO_GENERIC_RULES = 64 * 1024
_MAX_PLACES = 200
"""Files in a folder; each is no larger than what the engine scans."""


@dataclass(frozen=True, eq=False, slots=True)
class Probe:
    """The question whether ``rule`` finds ``match`` if its old file is at ``place``."""

    place: str
    rule: Rule
    match: Match


async def unseen_probes(
    probes: Iterable[Probe], tree: OverlayTree, scanner: Scanner, scratch: Path
) -> frozenset[Probe]:
    """Return the probes whose rule finds nothing in its place."""
    unseen: set[Probe] = set()
    by_place: defaultdict[str, list[Probe]] = defaultdict(list)
    for probe in probes:
        if overlay_path(tree, probe.place).is_symlink():
            unseen.add(probe)
        else:
            by_place[probe.place].append(probe)
    for row in zip_longest(*by_place.values()):
        together = [probe for probe in row if probe is not None]
        for start in range(0, len(together), _MAX_PLACES):
            unseen |= await _unseen(together[start : start + _MAX_PLACES], tree, scanner, scratch)
    return frozenset(unseen)


async def _unseen(probes: Sequence[Probe], tree: OverlayTree, scanner: Scanner, scratch: Path) -> set[Probe]:
    """Return those of ``probes``, of different places, whose rule finds nothing."""
    folder = scratch / "places"
    rules = {probe.rule.id: _without_paths(probe.rule) for probe in probes}
    try:
        await to_thread.run_sync(_write_places, probes, tree, folder)
        scan = await scanner.scan(list(rules.values()), folder)
        seen = {(match.rule_id, match.path) for match in scan.matches}
        return {probe for probe in probes if (probe.rule.id, probe.place) not in seen}
    except OSError as error:
        raise storage_error(error, f"cannot write below {scratch}", SourceError) from error
    finally:
        await to_thread.run_sync(partial(shutil.rmtree, folder, ignore_errors=True))


def is_text_rule(rule: Rule) -> bool:
    """Whether ``rule`` matches plain text."""
    return TEXT_LANGUAGES.issuperset(rule.languages)


def _without_paths(rule: Rule) -> Rule:
    return replace(rule, body={key: value for key, value in rule.body.items() if key != "paths"})


def _write_places(probes: Sequence[Probe], tree: OverlayTree, folder: Path) -> None:
    """Write each old file to its place, with what the engine may know the file's language by.

    That is its first line, if it names a program, and for rules on plain text what is there now.
    """
    for probe in probes:
        now = overlay_path(tree, probe.place)
        old, new = read_file(tree.base / probe.match.path), read_file(now, _SHOWN_TO_GENERIC_RULES)
        first, _, _ = new.partition(b"\n")
        if is_text_rule(probe.rule):
            content = new + b"\n" + old
        elif first.startswith(b"#!"):
            content = first + b"\n" + (old.partition(b"\n")[2] if old.startswith(b"#!") else old)
        else:
            content = old.partition(b"\n")[2] if old.startswith(b"#!") else old
        target = folder / probe.place
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
        target.chmod(0o755 if now.stat().st_mode & 0o100 else 0o644)
