"""Scoring one patch: applied to R, scanned with the rules, counted (CodeTaste §4.1, Figure 4).

A rate that cannot be known is not there, and the evaluation says why: a patch that does not apply or a scan that
is partial never scores 1.0 by omission (DESIGN §7).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from codetaste.evaluation.baseline import Correctness
from codetaste.evaluation.exclusions import Exclusions
from codetaste.evaluation.score import Precision, RuleCounts

if TYPE_CHECKING:
    from pathlib import Path

    from codetaste.evaluation.rule_files import RuleFiles
    from codetaste.rules.scan import Match, Problem, Scanner

MOST_PATCH_BYTES = 200 * 1024**2
"""A larger patch is not read: no refactoring is."""


class Status(StrEnum):
    """What became of a patch; only a scored one has rates of the rules."""

    SCORED = "scored"
    UNPARSABLE_PATCH = "unparsable_patch"
    DOES_NOT_APPLY = "does_not_apply"
    TOO_LARGE = "too_large"
    NO_RULES = "no_rules"
    PARTIAL_SCAN = "partial_scan"


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What is known of one patch.

    Attributes:
        status: what became of it.
        why: a line, where it is not scored.
        patch_sha256: of the patch's bytes (hex).
        patch_bytes: its size.
        rules: the rules it was scored with, None where there are none.
        counts: IFR's counts; None unless scored.
        lacking: ids of additive rules that do not match R∘X̂.
        remaining: ids of reductive rules that still match R∘X̂, or matched R in a file that can be read no longer.
        precision: PREC's counts with ``exclusions``; None unless scored.
        precision_all: the same with nothing left out.
        lines: |L⁺| and |L⁻| with ``exclusions``; None where the patch does not parse.
        lines_all: the same with nothing left out.
        files: how many files the patch changes.
        exclusions: what is left out of ``precision`` and ``lines``.
        correctness: PASS.
        positive: what Γ⁺ matches in R∘X̂, under the rules' own ids.
        negative: what Γ⁻ matches there.
        problems: what went wrong in scanning R∘X̂, routine parse errors included.
        unparsable: paths that parsed in R and do not in R∘X̂, or are not scanned there any more.
        notes: what a reader should know, in order.
        engine: the rule engine and its version.
    """

    status: Status
    why: str
    patch_sha256: str
    patch_bytes: int
    rules: RuleFiles
    counts: RuleCounts | None = None
    lacking: tuple[str, ...] = ()
    remaining: tuple[str, ...] = ()
    precision: Precision | None = None
    precision_all: Precision | None = None
    lines: tuple[int, int] | None = None
    lines_all: tuple[int, int] | None = None
    files: int = 0
    exclusions: Exclusions = Exclusions.PUBLISHED
    correctness: Correctness = Correctness()
    positive: tuple[Match, ...] = ()
    negative: tuple[Match, ...] = ()
    problems: tuple[Problem, ...] = ()
    unparsable: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    engine: str = ""


async def evaluate(
    rules: RuleFiles,
    base: Path,
    patch: bytes,
    scanner: Scanner,
    *,
    scratch: Path,
    exclusions: Exclusions = Exclusions.PUBLISHED,
    correctness: Correctness | None = None,
    engine: str = "",
) -> Evaluation:
    """Score ``patch`` on the tree ``base``; nothing is written but below ``scratch``, which is left empty.

    Args:
        rules: both rule files.
        base: R as a folder, which stays as it is.
        patch: X̂, a unified diff of git's.
        scanner: what R was scanned with before, if it can remember.
        scratch: a folder for R∘X̂.
        exclusions: which files do not count for precision.
        correctness: PASS, where it is known.
        engine: what to call the rule engine.

    Raises:
        EngineError: the engine could not be run at all.
        StorageFull: no space left for R∘X̂.
    """
    raise NotImplementedError
