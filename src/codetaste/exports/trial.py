"""``ExportedTrial``: a trial of either benchmark with its conversations, as all formats take it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from codetaste.benchmark.layout import TRANSCRIPTS_FOLDER
from codetaste.orchestration.journal.journal import JOURNAL_FILE
from codetaste.report.statistics.aggregate import Aggregation
from codetaste.report.statistics.measures import ALIGNMENT, IFR, PASS, PREC
from codetaste.report.statistics.merge import original_identity
from codetaste.report.statistics.view import aggregate_trials
from codetaste.results.outcome import OutcomeFacet, facet_of_answer
from codetaste.results.roots import root_of, roots_by_run
from codetaste.results.trial_outcomes import read_outcomes
from codetaste.swe_refactor.report.merge import original_key
from codetaste.transcripts.conversations import conversations_of, conversations_of_logs
from codetaste.transcripts.timeline.journal_reader import JournalReader

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from codetaste.evaluation.trials.records import TrialRecord
    from codetaste.report.statistics.view import AggregatedTrials
    from codetaste.results.read import RunResults
    from codetaste.swe_refactor.report.trial_row import TrialRow
    from codetaste.transcripts.event import RecordedConversation
    from codetaste.transcripts.timeline.job import JobTimeline

SCORES = (ALIGNMENT, PASS, IFR, PREC)
"""The scores of a trial of CodeTaste that formats for scores get."""
_UNSAFE = re.compile(r"[^\w.@+-]+", re.ASCII)
_MAX_NAME = 120


@dataclass(frozen=True, slots=True)
class ExportedTrial:
    """One trial.

    Attributes:
        run: name of its run.
        agent: name of the agent, or of the strategy.
        setting: track and mode, or the strategy: "instructed/direct".
        instance: id of the instance.
        attempt: from 1.
        facet: what became of it.
        model: display name of its model, "" if unknown.
        harness: the program that called the model, "" if unknown.
        cost_usd: of all steps, None if unknown.
        time_s: of all steps, None if unknown.
        message: the last message, or why it ended, in one line.
        scores: by title; None where one was not measured.
        details: further facts, as JSON data.
        conversations: those of all steps, in order.
        journal: of its run, None without one.
    """

    run: str
    agent: str
    setting: str
    instance: str
    attempt: int
    facet: OutcomeFacet
    model: str = ""
    harness: str = ""
    cost_usd: float | None = None
    time_s: float | None = None
    message: str = ""
    scores: Mapping[str, float | None] = field(default_factory=dict)
    details: Mapping[str, Any] = field(default_factory=dict)
    conversations: tuple[RecordedConversation, ...] = ()
    journal: JournalReader | None = None

    @property
    def name(self) -> str:
        """What identifies it among all runs."""
        again = f"/attempt-{self.attempt}" if self.attempt > 1 else ""
        return f"{self.run}/{self.agent}/{self.setting}/{self.instance}{again}"

    @property
    def main(self) -> RecordedConversation | None:
        """The conversation that made its patch or answer; None without any."""
        if not self.conversations:
            return None
        last = self.conversations[-1].step
        own = [each for each in self.conversations if each.step == last]
        answers = [each for each in own if each.part in {"", "developer"}]
        return (answers or own)[-1]

    @property
    def has_unknown_calls(self) -> bool:
        """Whether the cost and the tokens of one of its calls are unknown."""
        return any(turn.unknown_usd for each in self.timelines for turn in each.turns)

    @property
    def timelines(self) -> tuple[JobTimeline, ...]:
        """The timelines of its jobs that have conversations."""
        if self.journal is None:
            return ()
        keys = dict.fromkeys(each.job for each in self.conversations if each.job)
        return tuple(found for key in keys if (found := self.journal.job(key)) is not None)


def exported_trials(results: RunResults) -> Iterator[ExportedTrial]:
    """Yield the trials of both benchmarks, those of one run, agent and setting after each other. Blocking.

    The pseudo agents have no conversation and are left out.
    """
    runs = {root: _recorded_run(root) for root in results.roots}
    strict = aggregate_trials(results.trials, Aggregation.STRICT)
    outcomes = read_outcomes(results)
    for _, _, records in strict.groups():
        for record in sorted(records, key=lambda each: (each.run, each.instance, each.attempt)):
            yield _of_record(record, strict, runs[root_of(record, runs)], outcomes.of(record))
    roots = roots_by_run(results.roots)
    for row in sorted(results.answers.rows, key=lambda each: (each.run, each.key)):
        yield _of_row(row, runs[roots[row.run]] if row.run in roots else None)


def safe_name(text: str) -> str:
    """Return a name of a file for untrusted text; other texts have other names."""
    name = _UNSAFE.sub("_", text).lstrip(".") or "_"
    if name == text and len(name) <= _MAX_NAME:
        return name
    return f"{name[:_MAX_NAME]}-{sha256(text.encode('utf-8', 'replace')).hexdigest()[:8]}"


@dataclass(frozen=True, slots=True)
class _RecordedRun:
    """The folder of a run, and its journal if it has one."""

    folder: Path
    journal: JournalReader | None = None


def _recorded_run(root: Path) -> _RecordedRun:
    """Return the run whose outputs ``root`` has."""
    for folder in (root, root.parent):
        if (folder / JOURNAL_FILE).is_file():
            reader = JournalReader(folder)
            reader.poll()
            return _RecordedRun(folder, reader)
        if (folder / TRANSCRIPTS_FOLDER).is_dir():
            return _RecordedRun(folder)
    return _RecordedRun(root)


def _of_record(
    record: TrialRecord, strict: AggregatedTrials, run: _RecordedRun, facet: OutcomeFacet
) -> ExportedTrial:
    key = original_identity(record).key
    scores, metadata = record.scores, record.metadata
    return ExportedTrial(
        run=record.run,
        agent=record.agent,
        setting=f"{record.track}/{record.mode}",
        instance=record.instance,
        attempt=record.attempt,
        facet=facet,
        model=metadata.model,
        harness=metadata.harness,
        cost_usd=metadata.cost_usd,
        time_s=metadata.time_s,
        message=metadata.message or scores.reason,
        scores={measure.title: strict.value(record, measure) for measure in SCORES},
        details={
            "benchmark": "codetaste",
            "repository": record.repository,
            "language": record.language,
            "category": record.category,
            "status": scores.status.value,
            "finish_reason": metadata.finish_reason,
            "added": scores.added,
            "removed": scores.removed,
            "rules_sha256": scores.rules_sha256,
        },
        conversations=conversations_of(run.folder, key, run.journal) or conversations_of_logs(record.folder),
        journal=run.journal,
    )


def _of_row(row: TrialRow, run: _RecordedRun | None) -> ExportedTrial:
    key = original_key(row).answer_key
    return ExportedTrial(
        run=row.run,
        agent=row.model,
        setting=row.strategy,
        instance=row.instance,
        attempt=row.attempt,
        facet=facet_of_answer(row.outcome),
        model=row.model_label,
        cost_usd=None if row.cost_usd is None else float(row.cost_usd),
        time_s=row.wall_s,
        message=row.detail or row.outcome.value,
        scores={
            "success": float(row.success) if row.counted else None,
            "compiles and passes": float(row.compiles_and_passes) if row.counted else None,
            "verified": float(row.verified) if row.counted else None,
            "CodeBLEU": row.similarity,
        },
        details={
            "benchmark": "swe-refactor",
            "project": row.project,
            "type": row.type,
            "outcome": row.outcome.value,
            "failure": None if row.failure is None else str(row.failure.value),
        },
        conversations=() if run is None else conversations_of(run.folder, key, run.journal),
        journal=None if run is None else run.journal,
    )
