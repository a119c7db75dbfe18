"""Scoring one patch: applied to R, scanned with the rules, counted (CodeTaste §4.1, Figure 4).

A rate that cannot be known is not there, and the evaluation says why: a patch that does not apply or a scan
that is partial never scores 1.0 by omission (DESIGN §7).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from hashlib import sha256
from typing import TYPE_CHECKING

from anyio import to_thread

from codetaste.errors import PatchDoesNotApply, PatchError, PatchTooLarge
from codetaste.evaluation.baseline import UNTESTED, Correctness
from codetaste.evaluation.exclusions import Exclusions
from codetaste.evaluation.lost_sight import lost_sight
from codetaste.evaluation.precision import changed_lines, covered_lines, precision
from codetaste.evaluation.score import Precision, RuleCounts
from codetaste.source.apply import patched
from codetaste.source.patch import MAX_PATCH_BYTES, parse_patch

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from codetaste.evaluation.rule_files import RuleFiles
    from codetaste.rules.scan import Match, Problem, Scan, Scanner
    from codetaste.source.apply import Patched
    from codetaste.source.patch import Patch

_WHY_LETTERS = 400


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
        remaining: ids of reductive rules that match R∘X̂, or matched R in a file of ``unparsable``.
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
    correctness: Correctness = UNTESTED
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
        ToolMissing: there is no git.
    """
    digest = await to_thread.run_sync(lambda: sha256(patch).hexdigest())
    known = Evaluation(
        Status.SCORED,
        "",
        digest,
        len(patch),
        rules,
        exclusions=exclusions,
        correctness=correctness or UNTESTED,
        engine=engine,
    )
    try:
        parsed = await to_thread.run_sync(_parsed, patch)
        known = await to_thread.run_sync(_with_lines, known, parsed)
        async with patched(base, patch, scratch) as applied:
            return await _scored(known, parsed, base, applied, scanner)
    except PatchTooLarge as error:
        return replace(known, status=Status.TOO_LARGE, why=_line(error))
    except PatchError as error:
        return replace(known, status=Status.UNPARSABLE_PATCH, why=_line(error))
    except PatchDoesNotApply as error:
        return replace(known, status=Status.DOES_NOT_APPLY, why=_line(error))


def too_large(rules: RuleFiles, size: int, why: str, correctness: Correctness | None = None) -> Evaluation:
    """Return the evaluation of a patch of ``size`` bytes that was not even read."""
    return Evaluation(Status.TOO_LARGE, why, "", size, rules, correctness=correctness or UNTESTED)


def _parsed(patch: bytes) -> Patch:
    if len(patch) > MAX_PATCH_BYTES:
        raise PatchTooLarge(f"{len(patch):,} bytes; no more than {MAX_PATCH_BYTES:,} are read")
    return parse_patch(patch)


def _with_lines(known: Evaluation, patch: Patch) -> Evaluation:
    return replace(
        known,
        files=len(patch.files),
        lines=changed_lines(patch, known.exclusions).counts,
        lines_all=changed_lines(patch, Exclusions.NONE).counts,
    )


async def _scored(
    known: Evaluation, patch: Patch, base: Path, applied: Patched, scanner: Scanner
) -> Evaluation:
    """Scan both trees and count. R is first: what is found in it need not be found again."""
    known = replace(known, notes=applied.notes)
    numbered = known.rules.numbered()
    if not numbered:
        return replace(known, status=Status.NO_RULES, why="the instance has no rules")
    before = await scanner.scan(numbered, base)
    after = await scanner.scan(numbered, applied.tree)
    known = replace(known, problems=tuple(known.rules.renamed(problem) for problem in after.problems))
    for tree, scan in (("R", before), ("R with the patch", after)):
        if scan.partial:
            return replace(known, status=Status.PARTIAL_SCAN, why=_gap(known.rules, tree, scan))
    return await to_thread.run_sync(_counted, known, patch, before, after)


def _counted(known: Evaluation, patch: Patch, before: Scan, after: Scan) -> Evaluation:
    rules = known.rules
    positive, negative = rules.parted(after.matches)
    _, legacy = rules.parted(before.matches)
    lost = lost_sight(patch, before, after)
    kept = [match for match in legacy if match.path in lost.before]
    hit, left = {match.rule_id for match in positive}, {match.rule_id for match in (*negative, *kept)}
    hidden = left - {match.rule_id for match in negative}
    covered = covered_lines(positive), covered_lines(legacy)
    return replace(
        known,
        counts=RuleCounts(len(hit), len(rules.positive), len(left), len(rules.negative)),
        lacking=tuple(rule.id for rule in rules.positive if rule.id not in hit),
        remaining=tuple(rule.id for rule in rules.negative if rule.id in left),
        precision=precision(changed_lines(patch, known.exclusions), *covered),
        precision_all=precision(changed_lines(patch, Exclusions.NONE), *covered),
        positive=positive,
        negative=negative,
        unparsable=lost.after,
        notes=(*known.notes, *_notes(lost.after, len(hidden))),
    )


def _notes(unparsable: tuple[str, ...], hidden: int) -> Iterator[str]:
    if not unparsable:
        return
    more = ", …" if len(unparsable) > 1 else ""
    note = (
        "files that could be scanned before the patch and cannot any more: "
        f"{len(unparsable)} ({unparsable[0]}{more})"
    )
    yield note + (f"; reductive rules that count as not cleaned for that: {hidden}" if hidden else "")


def _gap(rules: RuleFiles, tree: str, scan: Scan) -> str:
    """Say what makes ``scan`` partial."""
    problem = rules.renamed(next(p for p in scan.problems if p in scan.failures(p.rule_id)))
    named = " ".join(filter(None, [problem.rule_id and f"rule {problem.rule_id}", problem.path]))
    return _short(f"the scan of {tree} is partial: {named + ': ' if named else ''}{problem.message}")


def _line(error: Exception) -> str:
    return _short(" ".join(str(error).split()))


def _short(text: str) -> str:
    return text if len(text) <= _WHY_LETTERS else f"{text[:_WHY_LETTERS]}…"
