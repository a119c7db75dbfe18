"""What a trial's ``scores.json`` says beyond its scores: counts behind PREC, unmet rules, flags, tests."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from codetaste.benchmark.layout import EVALUATION_FOLDER, SCORES_FILE
from codetaste.evaluation.metrics import PassThresholds, PrecisionCounts
from codetaste.evaluation.trials.untrusted_files import (
    FileProblem,
    parse_count,
    parse_number,
    parse_text,
    read_json_object,
)
from codetaste.rules.registration import Direction

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from typing import TypeVar

    T = TypeVar("T")

_MAX_CHARS = 500
_MAX_LISTED = 1_000
_HITS = ("hits_added", "added", "hits_removed", "removed")


@dataclass(frozen=True, slots=True)
class FlagPlace:
    """A flag: what kind or rule it is about, why, and where; 0 is no line."""

    name: str
    reason: str
    path: str
    line: int


@dataclass(frozen=True, slots=True)
class EvaluationDetails:
    """Details of an evaluation; None and empty where the file does not say.

    Attributes:
        hits: the counts behind PREC.
        unmet: direction and id of each rule that is not satisfied; None if unknown.
        flagged: additive rules that match only code without effect.
        bounds: p_R and f_R.
        bounds_runs: number of runs behind the bounds.
        bounds_source: where they are recorded.
        passed_reason: why PASS is unknown.
        test_flags: what may have made tests pass without the code.
        test_run: facts of the measured test run, by name, as text.
        paths: files with a fault, by kind.
    """

    hits: PrecisionCounts | None = None
    unmet: frozenset[tuple[str, str]] | None = None
    flagged: tuple[FlagPlace, ...] = ()
    bounds: PassThresholds | None = None
    bounds_runs: int | None = None
    bounds_source: str = ""
    passed_reason: str = ""
    test_flags: tuple[FlagPlace, ...] = ()
    test_run: tuple[tuple[str, str], ...] = ()
    paths: tuple[tuple[str, tuple[str, ...]], ...] = ()


def read_evaluation_details(folder: Path, root: str) -> EvaluationDetails:
    """Return the details of the trial in ``folder``; a missing or damaged file has none. Blocking."""
    try:
        scores = read_json_object(folder / EVALUATION_FOLDER / SCORES_FILE, root)
    except FileProblem:
        return EvaluationDetails()
    baseline = _object(scores.get("baseline"))
    unmet = [(each, rule) for each in Direction for rule in _texts(scores.get(f"unmet_{each}"))]
    return EvaluationDetails(
        hits=_hits(_object(scores.get("hits"))),
        unmet=frozenset(unmet) if isinstance(scores.get("unmet_additive"), list) else None,
        flagged=_places(scores.get("flagged"), "rule", "reason"),
        bounds=_bounds(baseline),
        bounds_runs=_count(baseline, "runs"),
        bounds_source=parse_text(baseline.get("source")),
        passed_reason=parse_text(scores.get("passed_reason"), _MAX_CHARS),
        test_flags=_places(scores.get("test_flags"), "kind", "evidence"),
        test_run=_test_run(_object(scores.get("test_run"))),
        paths=_paths(scores),
    )


def _hits(hits: dict[str, Any]) -> PrecisionCounts | None:
    found = [_count(hits, name) for name in _HITS]
    numbers = [each for each in found if each is not None]
    return PrecisionCounts(*numbers) if len(numbers) == len(_HITS) else None


def _bounds(baseline: dict[str, Any]) -> PassThresholds | None:
    passed, failed = _count(baseline, "min_passed"), _count(baseline, "max_failed")
    return None if passed is None or failed is None else PassThresholds(passed, failed)


def _places(listed: object, name: str, reason: str) -> tuple[FlagPlace, ...]:
    return tuple(
        FlagPlace(
            parse_text(each.get(name), _MAX_CHARS),
            parse_text(each.get(reason), _MAX_CHARS),
            parse_text(each.get("path"), _MAX_CHARS),
            _count(each, "line") or 0,
        )
        for each in _list(listed)
        if isinstance(each, dict)
    )


def _test_run(run: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    """Return facts of a test run as texts: its problem, its times, what contradicts its counts."""
    facts = [("Problem", parse_text(run.get("message") or run.get("problem"), _MAX_CHARS))]
    for key, name, unit in (
        ("setup_s", "Setup", " s"),
        ("tests_s", "Tests", " s"),
        ("exit_code", "Exit code", ""),
    ):
        number = _number(run, key)
        facts.append((name, "" if number is None else f"{number:g}{unit}"))
    reported = _count(run, "reported_tests")
    facts.append(("Tests in reports", f"{reported:,}" if reported else ""))
    for key, name in (("contradictions", "Contradiction"), ("report_notes", "Remark on reports")):
        facts += [(name, text) for text in _texts(run.get(key))[:20]]
    return tuple((name, text) for name, text in facts if text)


def _paths(scores: dict[str, Any]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    kinds = (
        ("unscannable", "could be scanned before the patch but not after it"),
        ("timed_out", "the engine did not scan in its time limit"),
        ("hidden_in", "have old code that the rules cannot see any more"),
        ("unread", "are too large to look for old code in all of them"),
    )
    found = ((title, tuple(_texts(scores.get(key)))) for key, title in kinds)
    return tuple(each for each in found if each[1])


def _count(data: dict[str, Any], key: str) -> int | None:
    return _parsed(parse_count, data, key)


def _number(data: dict[str, Any], key: str) -> float | None:
    return _parsed(parse_number, data, key)


def _parsed(parse: Callable[[object, str], T | None], data: dict[str, Any], key: str) -> T | None:
    try:
        return parse(data.get(key), key)
    except FileProblem:
        return None


def _object(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: object) -> list[Any]:
    return value[:_MAX_LISTED] if isinstance(value, list) else []


def _texts(value: object) -> list[str]:
    return [parse_text(each, _MAX_CHARS) for each in _list(value) if isinstance(each, str)]
