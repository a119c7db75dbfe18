"""The plans of a trial, and which one the judge chose (CodeTaste §3.5)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from codetaste.benchmark.layout import JUDGE_METADATA_FILE, JUDGE_OUTPUT_FILE, PLAN_FILE, PLAN_FILES, Mode
from codetaste.evaluation.trials.untrusted_files import FileProblem, parse_count, read_file, read_json_object
from codetaste.site.trial.visible_text import visible_text

if TYPE_CHECKING:
    from pathlib import Path

    from codetaste.evaluation.trials.records import TrialRecord

_MAX_PLAN_BYTES = 1024**2
_MAX_PLAN_CHARS = 12_000


@dataclass(frozen=True, slots=True)
class TrialPlan:
    """A plan: its number from 0, its text, and whether it was carried out."""

    number: int
    text: str
    chosen: bool


@dataclass(frozen=True, slots=True)
class PlanChoice:
    """The plans of a trial in order, and what the judge wrote; "" without a judge."""

    plans: tuple[TrialPlan, ...] = ()
    judge: str = ""


def read_plans(trial: TrialRecord, root: str) -> PlanChoice:
    """Return the plans of a trial; those that are missing or damaged are left out. Blocking."""
    if trial.mode == Mode.PLAN:
        text = _text(trial.folder / PLAN_FILE, root)
        return PlanChoice((TrialPlan(0, text, chosen=True),) if text else ())
    if trial.mode != Mode.MULTIPLAN:
        return PlanChoice()
    metadata = _metadata(trial.folder / JUDGE_METADATA_FILE, root)
    try:
        chosen = parse_count(metadata.get("selected_plan_index"), "selected_plan_index")
    except FileProblem:
        chosen = None
    texts = [_text(trial.folder / name, root) for name in PLAN_FILES]
    reasoning = metadata.get("judge_reasoning")
    judge = visible_text(reasoning, _MAX_PLAN_CHARS) if isinstance(reasoning, str) else ""
    return PlanChoice(
        tuple(TrialPlan(number, text, number == chosen) for number, text in enumerate(texts) if text),
        judge or _text(trial.folder / JUDGE_OUTPUT_FILE, root),
    )


def _text(path: Path, root: str) -> str:
    try:
        content = read_file(path, root, _MAX_PLAN_BYTES)
    except FileProblem:
        return ""
    return visible_text(content.decode("utf-8", "replace"), _MAX_PLAN_CHARS)


def _metadata(path: Path, root: str) -> dict[str, Any]:
    try:
        return read_json_object(path, root)
    except FileProblem:
        return {}
