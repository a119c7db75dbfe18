"""Evaluate one patch: apply it to R, scan both trees with the rules, count (CodeTaste §4.1, Figure 4).

A rate that is unknown is None, and the evaluation gives the reason: a patch that does not apply or a partial
scan never scores 1.0 by omission.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from hashlib import sha256
from typing import TYPE_CHECKING

from anyio import to_thread

from codetaste.core.text import one_line, shorten
from codetaste.errors import PatchDoesNotApply, PatchError, PatchTooLarge
from codetaste.evaluation.changed_lines import Exclusions, changed_lines, covered_lines, precision_counts
from codetaste.evaluation.evasion.flags import find_flagged_rules
from codetaste.evaluation.evasion.hidden_matches import find_hidden_matches
from codetaste.evaluation.metrics import PrecisionCounts, RuleCounts
from codetaste.evaluation.test_runs.recorded import UNTESTED, PassResult
from codetaste.rules.scan.model import Match, ScanProblemKind
from codetaste.source.patch.apply import applied_patch
from codetaste.source.patch.parse import MAX_PATCH_BYTES, parse_patch

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence
    from pathlib import Path

    from codetaste.evaluation.evasion.flags import FlaggedRule
    from codetaste.evaluation.evasion.hidden_matches import HiddenCode
    from codetaste.evaluation.rule_set import RuleSet
    from codetaste.evaluation.test_runs.cheating.flags import CheatingFlag
    from codetaste.evaluation.test_runs.test_run import TestRun
    from codetaste.rules.rule import Rule
    from codetaste.rules.scan.model import Scanner, ScanProblem, ScanResult
    from codetaste.source.patch.model import Patch
    from codetaste.source.tree.overlay import OverlayTree


_MAX_REASON_CHARS = 400
_LIMITS = frozenset({ScanProblemKind.TIMEOUT, ScanProblemKind.ENGINE})
_SCAN_GAPS = _LIMITS | {ScanProblemKind.PARSE, ScanProblemKind.SKIPPED}


class EvaluationStatus(StrEnum):
    """Outcome of an evaluation; only a scored patch has rule rates."""

    SCORED = "scored"
    UNPARSABLE_PATCH = "unparsable_patch"
    DOES_NOT_APPLY = "does_not_apply"
    TOO_LARGE = "too_large"
    NO_RULES = "no_rules"
    PARTIAL_SCAN = "partial_scan"


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The result of evaluating one patch.

    Attributes:
        status: the outcome.
        reason: the reason in one line if the patch is not scored.
        patch_sha256: sha256 (hex) of the patch's bytes.
        patch_bytes: size of the patch.
        rules: the rules the patch was scored with.
        rule_counts: counts behind IFR; None unless scored.
        unmet_additive: ids of additive rules that do not match R∘X̂.
        unmet_reductive: ids of reductive rules that match R∘X̂, or matched R in a file of ``unscannable``, or
            have a hidden match.
        flagged: additive rules that match only code without effect.
        precision: counts behind PREC with ``exclusions``; None unless scored.
        precision_all: the same without exclusions.
        line_counts: |L⁺| and |L⁻| with ``exclusions``; None if the patch does not parse.
        line_counts_all: the same without exclusions.
        files: number of files that the patch changes.
        exclusions: files left out of ``precision`` and ``line_counts``.
        pass_result: PASS.
        test_run: the test run that PASS was measured with; None if it was not measured.
        test_flags: what in the patch or in its test run may have made tests pass without the code.
        positive_matches: matches of Γ⁺ in R∘X̂, under the rules' original ids.
        negative_matches: matches of Γ⁻ in R∘X̂.
        problems: problems in scanning R∘X̂, routine parse errors included.
        unscannable: paths that parsed in R and do not parse in R∘X̂, or are no longer scanned there.
        timed_out: of R∘X̂, the files that the engine did not scan in its time limit, or crashed on.
        hidden_in: other files of R∘X̂ with text that reductive rules matched in R and cannot see any more.
        unread: files that the patch wrote and that were not searched for such text as a whole.
        notes: remarks for the reader, in order.
        engine: the rule engine and its version.
    """

    status: EvaluationStatus
    reason: str
    patch_sha256: str
    patch_bytes: int
    rules: RuleSet
    rule_counts: RuleCounts | None = None
    unmet_additive: tuple[str, ...] = ()
    unmet_reductive: tuple[str, ...] = ()
    flagged: tuple[FlaggedRule, ...] = ()
    precision: PrecisionCounts | None = None
    precision_all: PrecisionCounts | None = None
    line_counts: tuple[int, int] | None = None
    line_counts_all: tuple[int, int] | None = None
    files: int = 0
    exclusions: Exclusions = Exclusions.PUBLISHED
    pass_result: PassResult = UNTESTED
    test_run: TestRun | None = None
    test_flags: tuple[CheatingFlag, ...] = ()
    positive_matches: tuple[Match, ...] = ()
    negative_matches: tuple[Match, ...] = ()
    problems: tuple[ScanProblem, ...] = ()
    unscannable: tuple[str, ...] = ()
    timed_out: tuple[str, ...] = ()
    hidden_in: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    engine: str = ""


async def evaluate(
    rules: RuleSet,
    base: Path,
    patch: bytes,
    scanner: Scanner,
    *,
    scratch: Path,
    exclusions: Exclusions = Exclusions.PUBLISHED,
    pass_result: PassResult | None = None,
    engine: str = "",
) -> Evaluation:
    """Score ``patch`` on the tree ``base``; writes only below ``scratch``, which is left empty.

    Args:
        rules: the rules of the instance.
        base: folder with R, which is not changed.
        patch: X̂, a unified diff made by git.
        scanner: scans both trees; a caching one reuses an earlier scan of R.
        scratch: a folder for R∘X̂.
        exclusions: files that do not count for precision.
        pass_result: PASS, if it is known.
        engine: name and version of the rule engine, for the result.

    Raises:
        EngineError: the engine could not be run at all.
        StorageFull: no space left for R∘X̂.
        ToolMissing: git is not installed.
    """
    digest = await to_thread.run_sync(lambda: sha256(patch).hexdigest())
    result = Evaluation(
        EvaluationStatus.SCORED,
        "",
        digest,
        len(patch),
        rules,
        exclusions=exclusions,
        pass_result=pass_result or UNTESTED,
        engine=engine,
    )
    try:
        parsed, result = await to_thread.run_sync(_parse, patch, result)
        async with applied_patch(base, patch, scratch) as applied:
            result = replace(result, notes=applied.notes)
            numbered = rules.numbered_rules()
            if not numbered:
                return replace(result, status=EvaluationStatus.NO_RULES, reason="the instance has no rules")
            # R is scanned first, so that the scan of R∘X̂ can reuse its matches.
            before = await scanner.scan(numbered, base)
            after = await scanner.scan(numbered, applied.tree)
            after, timed_out = _without_timeouts(after, applied.tree)
            problems = tuple(map(rules.with_original_id, after.problems))
            result = replace(result, problems=problems, timed_out=timed_out)
            after, overfull = _without_overfull_files(after, applied.tree, numbered)
            for tree, scan in (("R", before), ("R with the patch", after)):
                if scan.partial:
                    why = _partial_reason(rules, tree, scan)
                    return replace(result, status=EvaluationStatus.PARTIAL_SCAN, reason=why)
            reductive = {rule.id: rule for rule in numbered[len(rules.positive) :]}
            hidden = await find_hidden_matches(
                parsed, applied.tree, reductive, (before, after), scanner, scratch
            )
            return await to_thread.run_sync(
                _count, result, parsed, applied.tree, (before, after), hidden, overfull
            )
    except PatchTooLarge as error:
        status, why = EvaluationStatus.TOO_LARGE, one_line(error, _MAX_REASON_CHARS)
    except PatchError as error:
        status, why = EvaluationStatus.UNPARSABLE_PATCH, one_line(error, _MAX_REASON_CHARS)
    except PatchDoesNotApply as error:
        status, why = EvaluationStatus.DOES_NOT_APPLY, one_line(error, _MAX_REASON_CHARS)
    return replace(result, status=status, reason=why)


def too_large_evaluation(
    rules: RuleSet, size: int, why: str, pass_result: PassResult | None = None
) -> Evaluation:
    """Return the evaluation of a patch of ``size`` bytes that was not read because of its size."""
    return Evaluation(EvaluationStatus.TOO_LARGE, why, "", size, rules, pass_result=pass_result or UNTESTED)


def _parse(content: bytes, result: Evaluation) -> tuple[Patch, Evaluation]:
    """Parse the patch and add its line counts to ``result``."""
    if len(content) > MAX_PATCH_BYTES:
        raise PatchTooLarge(f"{len(content):,} bytes; no more than {MAX_PATCH_BYTES:,} are read")
    patch = parse_patch(content)
    return patch, replace(
        result,
        files=len(patch.files),
        line_counts=changed_lines(patch, result.exclusions).counts,
        line_counts_all=changed_lines(patch, Exclusions.NONE).counts,
    )


def _without_timeouts(scan: ScanResult, tree: OverlayTree) -> tuple[ScanResult, tuple[str, ...]]:
    """Return ``scan`` as if files on which the engine failed could not be parsed, and these files.

    Only files that the patch wrote can be to blame for it: the rest of R has been scanned before. If there
    was no time to find out which, it is all of them.
    """
    timed_out = {each.path for each in scan.problems if each.kind in _LIMITS and each.path in tree.changed}
    problems = []
    for each in scan.problems:
        if each.kind is ScanProblemKind.TIMEOUT and not each.path:
            timed_out |= tree.changed
            problems += [_as_unparsable(each, path) for path in sorted(tree.changed)]
        else:
            blamed = each.kind in _LIMITS and each.path in timed_out
            problems.append(_as_unparsable(each, each.path) if blamed else each)
    return replace(scan, problems=tuple(dict.fromkeys(problems))), tuple(sorted(timed_out))


def _as_unparsable(problem: ScanProblem, path: str) -> ScanProblem:
    message = f"scan timed out: {problem.message}"
    return replace(problem, kind=ScanProblemKind.PARSE, rule_id="", message=message, path=path)


def _without_overfull_files(
    scan: ScanResult, tree: OverlayTree, rules: Sequence[Rule]
) -> tuple[ScanResult, tuple[Match, ...]]:
    """Return ``scan`` without the problems of rules that match a file of the patch too often.

    The engine reports no match there, so one of each rule that may have any is returned beside the scan.
    """
    overfull = [
        each for each in scan.problems if each.kind is ScanProblemKind.RULE and each.path in tree.changed
    ]
    matches = [
        Match(name, each.path, 1, 1)
        for each in overfull
        for name in ([each.rule_id] if each.rule_id else [rule.id for rule in rules])
    ]
    problems = tuple(each for each in scan.problems if each not in overfull)
    return replace(scan, problems=problems), tuple(matches)


def _count(
    result: Evaluation,
    patch: Patch,
    tree: OverlayTree,
    scans: tuple[ScanResult, ScanResult],
    hidden: HiddenCode,
    overfull: Sequence[Match],
) -> Evaluation:
    rules = result.rules
    before, after = scans
    positive, negative = rules.split_matches(after.matches)
    _, legacy = rules.split_matches(before.matches)
    _, hidden_matches = rules.split_matches(each.match for each in hidden.matches)
    matching = {match.rule_id for match in positive}

    unscannable = _find_unscannable(patch, before, after)
    before_paths = set(unscannable.values())
    _, too_many = rules.split_matches(overfull)
    found = {match.rule_id for match in (*negative, *too_many)}
    assumed = {match.rule_id for match in legacy if match.path in before_paths} - found
    still_there = {match.rule_id for match in hidden_matches} - found - assumed
    unmet = found | assumed | still_there
    _, unread_matches = rules.split_matches(
        each.match for each in hidden.matches if each.place in hidden.unread
    )
    in_unread = still_there & {match.rule_id for match in unread_matches}
    hidden_in = {each.place for each in hidden.matches} - unscannable.keys() - set(hidden.unread)
    notes = (
        *result.notes,
        *_note("files that the engine could not scan in its time limit (scan timed out)", result.timed_out),
        *_note(
            "files of the patch that rules match too often, so that their matches are not known",
            sorted({match.path for match in overfull}),
            {match.rule_id for match in too_many},
        ),
        *_note("files that could be scanned before the patch but not after it", sorted(unscannable), assumed),
        *_note(
            "files with old code that the rules cannot see any more",
            sorted(hidden_in),
            still_there - in_unread,
        ),
        *_note("files that are too large to look for old code in all of them", hidden.unread, in_unread),
    )

    still_covered = set(legacy) - set(hidden_matches)
    covered = covered_lines(positive), covered_lines(still_covered)
    return replace(
        result,
        rule_counts=RuleCounts(len(matching), len(rules.positive), len(unmet), len(rules.negative)),
        unmet_additive=tuple(rule.id for rule in rules.positive if rule.id not in matching),
        unmet_reductive=tuple(rule.id for rule in rules.negative if rule.id in unmet),
        flagged=find_flagged_rules(positive, tree, scans),
        precision=precision_counts(changed_lines(patch, result.exclusions), *covered),
        precision_all=precision_counts(changed_lines(patch, Exclusions.NONE), *covered),
        positive_matches=positive,
        negative_matches=negative,
        unscannable=tuple(sorted(unscannable)),
        hidden_in=tuple(sorted(hidden_in)),
        unread=hidden.unread,
        notes=notes,
    )


def _note(what: str, paths: Sequence[str], rules: Collection[str] = ()) -> Iterator[str]:
    """Yield a note on ``paths``, if there are any, and the reductive rules that are unmet because of them."""
    if paths:
        shown = f"{paths[0]}, …" if len(paths) > 1 else paths[0]
        note = f"{what}: {len(paths)} ({shown})"
        yield note + (f"; reductive rules that count as unmet because of it: {len(rules)}" if rules else "")


def _partial_reason(rules: RuleSet, tree: str, scan: ScanResult) -> str:
    problem = rules.with_original_id(next(p for p in scan.problems if p in scan.failures(p.rule_id)))
    subject = " ".join(filter(None, [problem.rule_id and f"rule {problem.rule_id}", problem.path]))
    text = f"the scan of {tree} is partial: {subject + ': ' if subject else ''}{problem.message}"
    return shorten(text, _MAX_REASON_CHARS)


def _find_unscannable(patch: Patch, before: ScanResult, after: ScanResult) -> dict[str, str]:
    """Return the paths in R∘X̂, with those in R, of files scanned completely in R but not in R∘X̂.

    They no longer parse, in part or at all, time out, or are skipped as too large. A file that the patch
    renames is compared with its old path. A file that did not parse in R either is not included.
    """
    unscannable_before = {problem.path for problem in before.problems if problem.kind in _SCAN_GAPS}
    old_paths = {file.new: file.old for file in patch.files if file.renamed or file.copied}
    return {
        problem.path: old
        for problem in after.problems
        if problem.kind in _SCAN_GAPS
        and (old := old_paths.get(problem.path) or problem.path) in before.scanned
        and old not in unscannable_before
    }
