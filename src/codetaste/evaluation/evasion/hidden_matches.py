"""Matches of reductive rules whose text the tree still has after a patch, where the rule cannot see it.

Such a match is *hidden*. The patch wrote its text into one of these:

- an unscanned place: a file that the engine does not scan with this rule, because of its name, its folder,
  its size, a link, or because it cannot be parsed (a rule's own ``paths`` hide nothing);
- a string literal or a comment;
- an encoded text (``encoded_text.py``), or a literal that is passed to an evaluator such as ``eval``.

In the first two the text must go on for ``CONTEXT_WORDS`` words of the old file that include the match; a
shorter file must be there as a whole. In the third the match's own text is enough.
"""

from __future__ import annotations

import shutil
from collections import defaultdict
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from anyio import to_thread

from codetaste.core.files import storage_error
from codetaste.errors import SourceError
from codetaste.evaluation.evasion.hidden_texts import OldFile, read_file, read_hidden_texts
from codetaste.evaluation.evasion.lexical import suffix_of
from codetaste.source.tree.overlay import overlay_path

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from codetaste.evaluation.evasion.hidden_texts import HiddenTexts, WrittenText
    from codetaste.rules.rule import Rule
    from codetaste.rules.scan.model import Match, Scanner, ScanResult
    from codetaste.source.patch.model import Patch
    from codetaste.source.tree.overlay import OverlayTree

_MINIFIED_LINE_BYTES = 150
"""Mean line length from which a file may be minified: generic rules skip those."""
_SHOWN_TO_GENERIC_RULES = 64 * 1024
_TEXT_LANGUAGES = frozenset({"generic", "regex", "none"})


@dataclass(frozen=True, slots=True)
class HiddenMatch:
    """A match in R whose text is hidden in the file ``place`` of R∘X̂."""

    match: Match
    place: str


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A match that is hidden if the engine does not look into its place with the rule."""

    found: HiddenMatch
    certain: bool
    """The engine certainly does not."""


async def find_hidden_matches(
    patch: Patch,
    tree: OverlayTree,
    rules: Mapping[str, Rule],
    scans: tuple[ScanResult, ScanResult],
    scanner: Scanner,
    scratch: Path,
) -> tuple[HiddenMatch, ...]:
    """Return the matches of ``rules`` in R that are hidden in R∘X̂.

    Args:
        patch: X̂.
        tree: R∘X̂.
        rules: the reductive rules, by the ids of the scans.
        scans: the scans of R and of R∘X̂.
        scanner: scans the few files for which only the engine can tell whether a rule sees them.
        scratch: an existing folder, left empty.

    Raises:
        EngineError: the engine could not be run.
        StorageFull: no space left.
    """
    candidates = await to_thread.run_sync(lambda: list(_candidates(patch, tree, rules, *scans)))
    hidden: dict[tuple[str, tuple[str, ...]], bool] = {}
    found: dict[Match, HiddenMatch] = {}
    for candidate in candidates:
        match, place = candidate.found.match, candidate.found.place
        key = place, rules[match.rule_id].languages
        if not candidate.certain and key not in hidden:
            hidden[key] = not await _sees(rules[match.rule_id], match, place, tree, scanner, scratch)
        if candidate.certain or hidden[key]:
            found.setdefault(match, candidate.found)
    return tuple(found.values())


async def _sees(
    rule: Rule, match: Match, place: str, tree: OverlayTree, scanner: Scanner, scratch: Path
) -> bool:
    """Whether ``rule`` matches the old file of ``match`` if that is at ``place``."""
    if overlay_path(tree, place).is_symlink():
        return False
    folder = scratch / "place"
    body = {key: value for key, value in rule.body.items() if key != "paths"}
    write = partial(_write_probe, rule, match, place, tree, folder)
    try:
        await to_thread.run_sync(write)
        return bool((await scanner.scan([replace(rule, body=body)], folder)).matches)
    except OSError as error:
        raise storage_error(error, f"cannot write below {scratch}", SourceError) from error
    finally:
        await to_thread.run_sync(partial(shutil.rmtree, folder, ignore_errors=True))


def _write_probe(rule: Rule, match: Match, place: str, tree: OverlayTree, folder: Path) -> None:
    """Write the old file to ``place``, with what the engine may know the file's language by.

    That is its first line, if it names a program, and for rules on plain text what is there now.
    """
    old, new = read_file(tree.base / match.path), read_file(overlay_path(tree, place))
    first, _, _ = new.partition(b"\n")
    if _is_text_rule(rule):
        content = new[:_SHOWN_TO_GENERIC_RULES] + b"\n" + old
    elif first.startswith(b"#!"):
        content = first + b"\n" + (old.partition(b"\n")[2] if old.startswith(b"#!") else old)
    else:
        content = old.partition(b"\n")[2] if old.startswith(b"#!") else old
    (folder / place).parent.mkdir(parents=True)
    (folder / place).write_bytes(content)
    (folder / place).chmod(0o755 if overlay_path(tree, place).stat().st_mode & 0o100 else 0o644)


def _candidates(
    patch: Patch, tree: OverlayTree, rules: Mapping[str, Rule], before: ScanResult, after: ScanResult
) -> Iterator[_Candidate]:
    """Yield the matches in R whose text the patch wrote into a place that may be hidden."""
    touched = {file.old for file in patch.files}
    by_file: defaultdict[str, list[Match]] = defaultdict(list)
    suffixes: defaultdict[str, set[str]] = defaultdict(set)
    for match in before.matches:
        if match.rule_id in rules:
            suffixes[match.rule_id].add(suffix_of(match.path))
            if match.path in touched:
                by_file[match.path].append(match)
    if not by_file:
        return
    texts = read_hidden_texts(patch, tree)
    troubled = {problem.path for problem in after.problems}
    unscanned = texts.in_places(texts.places.keys() - after.scanned - troubled)
    unparsed = texts.in_places(troubled)
    uncertain = {
        name: list(_uncertain_places(rules[name], seen, texts, after)) for name, seen in suffixes.items()
    }
    for path, matches in by_file.items():
        old = OldFile(read_file(tree.base / path))
        for match in matches:
            rule = rules[match.rule_id]
            unseen = (unparsed,) if "paths" in rule.body else (unparsed, unscanned)
            for place in _certain_places(rule, match, old, texts, unseen):
                yield _Candidate(HiddenMatch(match, place), certain=True)
            for place in uncertain[match.rule_id]:
                if any(old.place_in(text, match) for text in texts.at(place, own=place == path)):
                    yield _Candidate(HiddenMatch(match, place), certain=False)


def _certain_places(
    rule: Rule, match: Match, old: OldFile, texts: HiddenTexts, unseen: tuple[WrittenText, ...]
) -> Iterator[str]:
    """Yield the files with the text of ``match``: encoded, in literals and comments, or ``unseen``."""
    if texts.encoded and (place := texts.encoded_place_of(old.text(match))):
        yield place
    # A rule on plain text sees literals and comments.
    quoted = () if _is_text_rule(rule) else (texts.quoted, texts.own_quoted.get(match.path))
    for text in filter(None, (*quoted, *unseen)):
        if place := old.place_in(text, match):
            yield place


def _uncertain_places(rule: Rule, suffixes: set[str], texts: HiddenTexts, after: ScanResult) -> Iterator[str]:
    """Yield the files that ``rule``, which matches files with ``suffixes`` in R, may see or not."""
    troubled = {problem.path for problem in after.problems}
    for place, text in texts.places.items():
        if place in troubled:
            continue
        if place not in after.scanned:
            may_be_unseen = "paths" in rule.body or place in texts.own_places
        elif _is_text_rule(rule):
            may_be_unseen = _looks_minified(text.pieces)
        else:
            may_be_unseen = suffix_of(place) not in suffixes - {""}
        if may_be_unseen:
            yield place


def _is_text_rule(rule: Rule) -> bool:
    return _TEXT_LANGUAGES.issuperset(rule.languages)


def _looks_minified(pieces: tuple[tuple[str, bytes], ...]) -> bool:
    size = sum(len(piece) for _, piece in pieces)
    return size > _MINIFIED_LINE_BYTES * (1 + sum(piece.count(b"\n") for _, piece in pieces))
