"""Matches of reductive rules whose text the tree still has after a patch, where the rule cannot see it.

Such a match is *hidden*. The patch wrote its text into one of these:

- an unscanned place: a file that the engine does not scan with this rule, because of its name, its folder,
  its size, a link, or because it cannot be parsed (a rule's own ``paths`` hide nothing);
- a string literal or a comment;
- an encoded text (``encoded_text.py``), or a literal that is passed to an evaluator such as ``eval``.

In the first two the text must go on for ``CONTEXT_WORDS`` words of the old file that include the match; a
shorter file must be there as a whole. In the third the match's own text is enough. If a patch wrote more than
is read, every match in a file that it changes may be in the rest, and counts as hidden there.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from anyio import to_thread

from codetaste.evaluation.evasion.encoded_text import ByteBudget
from codetaste.evaluation.evasion.hidden_texts import MAX_BYTES, WantedTexts, read_file, read_written_files
from codetaste.evaluation.evasion.lexical import suffix_of
from codetaste.evaluation.evasion.visibility import Probe, is_text_rule, unseen_probes
from codetaste.evaluation.evasion.word_runs import OldFile, RunSearch

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from codetaste.evaluation.evasion.hidden_texts import WrittenFile
    from codetaste.rules.rule import Rule
    from codetaste.rules.scan.model import Match, Scanner, ScanResult
    from codetaste.source.patch.model import Patch
    from codetaste.source.tree.overlay import OverlayTree


@dataclass(frozen=True, slots=True)
class HiddenMatch:
    """A match in R whose text is hidden in the file ``place`` of R∘X̂."""

    match: Match
    place: str


@dataclass(frozen=True, slots=True)
class HiddenCode:
    """The hidden matches, and the files that were not read as a whole."""

    matches: tuple[HiddenMatch, ...] = ()
    unread: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Candidates:
    """Matches with the places of their texts, in order."""

    certain: dict[Match, str] = field(default_factory=dict)
    """The engine certainly does not look into the place with the rule."""
    uncertain: dict[Match, tuple[str, ...]] = field(default_factory=dict)
    """For all other matches, the places into which the engine may not look."""
    unread: tuple[str, ...] = ()


async def find_hidden_matches(
    patch: Patch,
    tree: OverlayTree,
    rules: Mapping[str, Rule],
    scans: tuple[ScanResult, ScanResult],
    scanner: Scanner,
    scratch: Path,
) -> HiddenCode:
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
    candidates = await to_thread.run_sync(_find_candidates, patch, tree, rules, *scans)
    probes: dict[tuple[str, tuple[str, ...]], Probe] = {}
    for match, places in candidates.uncertain.items():
        for place in places:
            probes.setdefault(
                (place, rules[match.rule_id].languages), Probe(place, rules[match.rule_id], match)
            )
    unseen = await unseen_probes(tuple(probes.values()), tree, scanner, scratch)
    found = dict(candidates.certain)
    for match, places in candidates.uncertain.items():
        languages = rules[match.rule_id].languages
        hidden = next((place for place in places if probes[place, languages] in unseen), None)
        if hidden is not None:
            found[match] = hidden
    return HiddenCode(tuple(HiddenMatch(*each) for each in found.items()), candidates.unread)


def _find_candidates(
    patch: Patch, tree: OverlayTree, rules: Mapping[str, Rule], before: ScanResult, after: ScanResult
) -> _Candidates:
    """Return the matches in R whose text the patch wrote into a place that may be hidden."""
    touched = {file.old for file in patch.files}
    by_file: defaultdict[str, list[Match]] = defaultdict(list)
    suffixes: defaultdict[str, set[str]] = defaultdict(set)
    for match in before.matches:
        if match.rule_id in rules:
            suffixes[match.rule_id].add(suffix_of(match.path))
            if match.path in touched:
                by_file[match.path].append(match)
    if not by_file:
        return _Candidates()
    texts, runs = _match_texts(by_file, tree)
    wanted = WantedTexts(RunSearch(run for each in runs.values() for run in each), frozenset(texts.values()))
    files = read_written_files(patch, tree, wanted, ByteBudget(MAX_BYTES))
    found = _Candidates(unread=tuple(path for path, file in files.items() if file.unread))
    certain = _CertainPlaces(files, after)
    uncertain = {
        name: frozenset(_uncertain_places(rules[name], seen, files, after)) for name, seen in suffixes.items()
    }
    written = _paths_by_text({path: file.written for path, file in files.items()})
    for match in (match for matches in by_file.values() for match in matches):
        rule = rules[match.rule_id]
        places = dict.fromkeys(place for run in runs[match] for place in written.get(run, ()))
        if certainly := certain.place_of(rule, match, texts[match], runs[match], places):
            found.certain[match] = certainly
        elif found.unread:
            found.certain[match] = found.unread[0]
        else:
            if match.path in files and not files[match.path].own.isdisjoint(runs[match]):
                places[match.path] = None
            found.uncertain[match] = tuple(filter(uncertain[rule.id].__contains__, places))
    return found


def _match_texts(
    by_file: Mapping[str, list[Match]], tree: OverlayTree
) -> tuple[dict[Match, bytes], dict[Match, tuple[bytes, ...]]]:
    """Return the text of each match, and the runs of words that include it."""
    texts, runs = {}, {}
    for path, matches in by_file.items():
        old = OldFile(read_file(tree.base / path))
        for match in matches:
            texts[match], runs[match] = old.text(match), old.runs(match)
    return texts, runs


def _paths_by_text(found: Mapping[str, frozenset[bytes]]) -> dict[bytes, list[str]]:
    paths: defaultdict[bytes, list[str]] = defaultdict(list)
    for path, texts in found.items():
        for text in texts:
            paths[text].append(path)
    return paths


class _CertainPlaces:
    """Texts that no rule sees: encoded, in literals and comments, and in files that are not scanned."""

    def __init__(self, files: Mapping[str, WrittenFile], after: ScanResult) -> None:
        self._files = files
        self._encoded = _paths_by_text({path: file.encoded for path, file in files.items()})
        self._quoted = _paths_by_text({path: file.quoted for path, file in files.items()})
        self._troubled = {problem.path for problem in after.problems}
        self._scanned = after.scanned

    def place_of(
        self, rule: Rule, match: Match, text: bytes, runs: tuple[bytes, ...], places: Mapping[str, None]
    ) -> str | None:
        """Return the first file with the text of ``match``, one of its ``runs``, or one of ``places``."""
        if text in self._encoded:
            return self._encoded[text][0]
        # A rule on plain text sees literals and comments.
        if not is_text_rule(rule):
            for run in runs:
                if run in self._quoted:
                    return self._quoted[run][0]
            if match.path in self._files and not self._files[match.path].own_quoted.isdisjoint(runs):
                return match.path
        return next(filter(self._troubled.__contains__, places), None) or (
            None
            if "paths" in rule.body
            else next((each for each in places if each not in self._scanned), None)
        )


def _uncertain_places(
    rule: Rule, suffixes: set[str], files: Mapping[str, WrittenFile], after: ScanResult
) -> Iterator[str]:
    """Yield the files that ``rule``, which matches files with ``suffixes`` in R, may see or not."""
    troubled = {problem.path for problem in after.problems}
    for place, file in files.items():
        if place in troubled:
            continue
        if place not in after.scanned:
            may_be_unseen = "paths" in rule.body or not file.whole
        elif is_text_rule(rule):
            may_be_unseen = file.looks_minified
        else:
            may_be_unseen = suffix_of(place) not in suffixes - {""}
        if may_be_unseen:
            yield place
