"""``TrialFiles``: what rows have of the files of a trial beside its record; the files are untrusted."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from codetaste.benchmark.layout import EVALUATION_FOLDER, METADATA_FILE, RESULT_FILE, SCORES_FILE
from codetaste.evaluation.trials.records import TrialStatus
from codetaste.evaluation.trials.untrusted_files import FileProblem, parse_count, parse_text, read_json_object
from codetaste.llm.messages import Usage

if TYPE_CHECKING:
    from collections.abc import Mapping

    from codetaste.evaluation.trials.records import TrialRecord

WITH_RULES = frozenset({TrialStatus.SCORED, TrialStatus.PARTIAL})
"""Of trials that were scanned, for all of their rules or for some."""


@dataclass(frozen=True, slots=True)
class TrialFiles:
    """Values of a trial's files by column; what is missing or damaged is not there."""

    values: Mapping[str, Any] = field(default_factory=dict)
    tokens: Mapping[str, int] = field(default_factory=dict)
    """Tokens of its model calls by kind."""


def read_trial_files(record: TrialRecord, root: str) -> TrialFiles:
    """Read the files of a trial; ``root`` is the real path of the folder that must contain them. Blocking.

    Problems with these files are listed where its record is read.
    """
    metadata = _part(_read(record, root, METADATA_FILE), "additional")
    scored = record.scores.status in WITH_RULES
    scores = _read(record, root, EVALUATION_FOLDER, SCORES_FILE) if scored else {}
    values = {
        "harness_version": parse_text(metadata.get("harness_version")) or None,
        **(_of_scores(scores) if scores else _of_result(record, root) if scored else {}),
    }
    tokens = {kind: _count(_part(metadata, "tokens"), kind) for kind in Usage.KINDS}
    return TrialFiles(values, {kind: count for kind, count in tokens.items() if count is not None})


def _of_scores(scores: Mapping[str, Any]) -> dict[str, Any]:
    baseline = _part(scores, "baseline")
    flags = scores.get("test_flags")
    kinds = (
        {parse_text(each.get("kind")) for each in flags if isinstance(each, dict)}
        if isinstance(flags, list)
        else ()
    )
    return {
        "additive_rules": _count(scores, "positive_rules"),
        "reductive_rules": _count(scores, "negative_rules"),
        "tests_min_passed": _count(baseline, "min_passed"),
        "tests_max_failed": _count(baseline, "max_failed"),
        "test_flag_kinds": tuple(sorted(filter(None, kinds))),
    }


def _of_result(record: TrialRecord, root: str) -> dict[str, Any]:
    metrics = _part(_read(record, root, EVALUATION_FOLDER, RESULT_FILE), "agent_rule_metrics")
    return {
        "additive_rules": _count(metrics, "total_positive_rules"),
        "reductive_rules": _count(metrics, "total_negative_rules"),
    }


def _read(record: TrialRecord, root: str, *names: str) -> dict[str, Any]:
    try:
        return read_json_object(record.folder.joinpath(*names), root)
    except FileProblem:
        return {}


def _part(data: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    part = data.get(name)
    return part if isinstance(part, dict) else {}


def _count(data: Mapping[str, Any], name: str) -> int | None:
    try:
        return parse_count(data.get(name), name)
    except FileProblem:
        return None
