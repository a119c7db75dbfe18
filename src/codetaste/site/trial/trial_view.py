"""``TrialView``: what the page of one trial shows, read from the trial's files."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from codetaste.benchmark.layout import (
    EVALUATION_FOLDER,
    NEGATIVE_SARIF_FILE,
    POSITIVE_SARIF_FILE,
    PREDICTION_FILE,
    SCORES_FILE,
    TEST_OUTPUT_FILE,
)
from codetaste.core.files import open_regular_file
from codetaste.site.html.visible import visible
from codetaste.site.trial.evaluation.evaluation_details import EvaluationDetails, read_evaluation_details
from codetaste.site.trial.evaluation.rule_results import rule_results
from codetaste.site.trial.patch.excerpt import make_excerpt
from codetaste.site.trial.patch.marked_patch import PatchMatches, read_marked_patch
from codetaste.site.trial.patch.pieces import make_pieces
from codetaste.site.trial.patch.rule_matches import read_rule_matches
from codetaste.site.trial.plans import read_plans
from codetaste.site.trial.reference import modified, reductive_matches_in_base

if TYPE_CHECKING:
    from pathlib import Path

    from codetaste.evaluation.trials.records import TrialRecord
    from codetaste.site.trial.evaluation.rule_results import RuleResult
    from codetaste.site.trial.patch.excerpt import ExcerptFile
    from codetaste.site.trial.patch.marked_patch import MarkedPatch
    from codetaste.site.trial.patch.pieces import PatchPieces
    from codetaste.site.trial.plans import PlanChoice
    from codetaste.site.trial.reference import Reference

_TAIL_BYTES = 6_000
_BEGINNING_CHARS = 16_000


@dataclass(frozen=True, slots=True)
class TrialView:
    """One trial as its page shows it.

    Attributes:
        patch: the patch with its marks.
        pieces: of the patch.
        excerpt: lines of it for readers without a script.
        beginning: text of a patch that is not shown file by file.
        rules: the result of each rule.
        details: of the evaluation.
        plans: and the judge's choice.
        test_output: end of what the tests printed.
        notes: what is not known or does not agree, a line each.
    """

    patch: MarkedPatch
    pieces: PatchPieces
    excerpt: tuple[ExcerptFile, ...]
    beginning: str
    rules: tuple[RuleResult, ...]
    details: EvaluationDetails
    plans: PlanChoice
    test_output: str
    notes: tuple[str, ...]


def read_trial_view(trial: TrialRecord, reference: Reference) -> TrialView:
    """Read the files of a trial; what is missing or damaged is a note. Blocking."""
    stamps = tuple(
        modified(trial.folder / name) for name in (PREDICTION_FILE, f"{EVALUATION_FOLDER}/{SCORES_FILE}")
    )
    null = reference.null and reference.null / EVALUATION_FOLDER / NEGATIVE_SARIF_FILE
    return _read(trial, reference, (*stamps, modified(null) if null else 0))


@lru_cache(maxsize=1)  # the page is made of it, then its data
def _read(trial: TrialRecord, reference: Reference, stamps: tuple[int, ...]) -> TrialView:
    del stamps  # a trial that was evaluated in the meantime is read again
    folder, root = trial.folder, os.path.realpath(trial.folder)
    details = read_evaluation_details(folder, root)
    additive = read_rule_matches(folder / EVALUATION_FOLDER / POSITIVE_SARIF_FILE, root)
    remaining = read_rule_matches(folder / EVALUATION_FOLDER / NEGATIVE_SARIF_FILE, root)
    before = reductive_matches_in_base(reference)
    matches = PatchMatches(additive.matches, before.matches, remaining.matches)
    patch = read_marked_patch(folder / PREDICTION_FILE, root, matches)
    beginning = ""
    if patch.problem:
        beginning = visible(patch.content[:_BEGINNING_CHARS].decode("utf-8", "replace"))
    notes = []
    if patch.counts is not None and patch.counts.added and additive.problem:
        notes.append(f"added lines have no marks: {additive.problem}")
    if patch.counts is not None and patch.counts.removed and before.problem:
        notes.append(f"removed lines have no marks: {before.problem}")
    return TrialView(
        patch,
        make_pieces(patch),
        make_excerpt(patch),
        beginning,
        rule_results(additive, remaining, details, patch),
        details,
        read_plans(trial, root),
        _tail(folder / EVALUATION_FOLDER / TEST_OUTPUT_FILE),
        (*notes, *_disagreement(patch, details)),
    )


def _disagreement(patch: MarkedPatch, details: EvaluationDetails) -> list[str]:
    """Return a note if the marks are not the lines that the scores count."""
    counts, hits = patch.counts, details.hits
    if counts is None or hits is None or counts == hits:
        return []
    marked, counted = counts.hits_added + counts.hits_removed, hits.hits_added + hits.hits_removed
    of = hits.added + hits.removed
    text = (
        f"PREC counts {counted:,} of {of:,} lines as matched; {marked:,} are marked: the marks of removed "
        "lines are those of the null agent's evaluation, and old code that is still there where rules cannot "
        "see it does not count"
    )
    return [text]


def _tail(path: Path) -> str:
    try:
        with open_regular_file(path) as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - _TAIL_BYTES))
            text = file.read(_TAIL_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""
    return visible(text if size <= _TAIL_BYTES else f"…{text.partition(chr(10))[2]}")
