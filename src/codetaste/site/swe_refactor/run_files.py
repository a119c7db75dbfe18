"""What the files of a run know of a trial of SWE-Refactor beside its row: score, answer, instance.

Each file is read once, when the first page needs it. What is missing or damaged is left out.
"""

from __future__ import annotations

import json
import os
import threading
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from codetaste.benchmark.layout import RUN_CONFIG_FILE
from codetaste.core.files import lines_of, open_regular_file, read_regular_file
from codetaste.errors import CodetasteError
from codetaste.orchestration.journal.blobs import BLOBS_FOLDER, Blobs
from codetaste.orchestration.journal.journal import JOURNAL_FILE
from codetaste.results.roots import roots_by_run
from codetaste.site.trial.transcript.trial_jobs import TrialJobs
from codetaste.swe_refactor.dataset.format import read_instances
from codetaste.swe_refactor.dataset.layout import FOLDER, INSTANCES_FILE, TRIALS_FILE
from codetaste.swe_refactor.report.merge import original_key
from codetaste.transcripts.conversations import conversations_of
from codetaste.transcripts.timeline.journal_reader import JournalReader

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from codetaste.swe_refactor.dataset.instance import RefactoringInstance
    from codetaste.swe_refactor.report.trial_row import TrialRow

_DAMAGED = (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError, CodetasteError)
_ENDED, _ANSWER = b'"event":"ended"', b'"key":"answer/'
_STEP = "answer"
"""The name of the one step of a trial; the last part of its job's key is the instance."""


@dataclass(frozen=True, slots=True)
class RecordedAnswer:
    """The answer of a trial.

    Attributes:
        text: as the model wrote it, or the patch of an agent.
        files: the whole new text of each file that it changes, by path; None for a deleted one.
        problem: why there are none, "" if there are.
        details: what else is on record: examples of a prompt, rounds of a review.
        prompt: what the model was asked, "" where that is only in a transcript.
    """

    text: str = ""
    files: Mapping[str, str | None] = field(default_factory=dict)
    problem: str = ""
    details: Mapping[str, Any] = field(default_factory=dict)
    prompt: str = ""


@dataclass(slots=True)
class _Run:
    """The parts of a run that were read."""

    root: Path
    journal: JournalReader
    scores: dict[tuple[Any, ...], Any] = field(default_factory=dict)
    answers: dict[str, Any] = field(default_factory=dict)
    instances: dict[str, RefactoringInstance] = field(default_factory=dict)


class RunFiles:
    """The files of some runs. Its methods block and may be called from any thread."""

    def __init__(self, roots: Sequence[Path]) -> None:
        self._roots = roots_by_run(roots)
        self._runs: dict[Path, _Run] = {}
        self._lock = threading.Lock()

    def root(self, row: TrialRow) -> Path | None:
        """Return the folder of the trial's run."""
        return self._roots.get(row.run)

    def job(self, row: TrialRow) -> str:
        """Return the key of the job that has answered."""
        return original_key(row).answer_key

    def score(self, row: TrialRow) -> Mapping[str, Any]:
        """Return all metrics of the answer as they are on file; empty without a score."""
        run = self._run(row)
        found = None if run is None else run.scores.get(original_key(row))
        return found if isinstance(found, dict) else {}

    def answer(self, row: TrialRow) -> RecordedAnswer | None:
        """Return the answer; None if the journal has none, or its texts are missing."""
        run = self._run(row)
        value = None if run is None else run.answers.get(self.job(row))
        if run is None or value is None:
            return None
        read = Blobs(run.root / BLOBS_FOLDER).read
        try:
            problem = value["problem"]
            files = {
                str(path): None if digest is None else read(digest) for path, digest in value["files"].items()
            }
            details = value.get("details")
            details = details if isinstance(details, dict) else {}
            return RecordedAnswer(
                read(value["text"]),
                files,
                str(problem["sentence"]) if problem else "",
                details,
                read(details["prompt"]) if "prompt" in details else "",
            )
        except _DAMAGED:
            return None

    def instance(self, row: TrialRow) -> RefactoringInstance | None:
        """Return the instance; None if its file is not found."""
        run = self._run(row)
        return None if run is None else run.instances.get(row.instance)

    def trial_jobs(self, row: TrialRow) -> TrialJobs:
        """Return the conversations of a trial, those of developer and reviewer too, and its timeline."""
        run, key = self._run(row), self.job(row)
        if run is None:
            return TrialJobs()
        found = conversations_of(run.root, key, run.journal)
        timeline = run.journal.job(key)
        return TrialJobs(
            tuple(replace(each, step=_STEP) for each in found),
            () if timeline is None else (replace(timeline, key=_STEP),),
            run.journal,
            run.journal.at,
        )

    def _run(self, row: TrialRow) -> _Run | None:
        root = self.root(row)
        if root is None:
            return None
        with self._lock:
            if root not in self._runs:
                self._runs[root] = _Run(
                    root,
                    _read_journal(root),
                    dict(_read_scores(root)),
                    dict(_read_answers(root)),
                    _read_instances(root),
                )
            return self._runs[root]


def _read_journal(root: Path) -> JournalReader:
    journal = JournalReader(root)
    with suppress(*_DAMAGED):
        journal.poll()
    return journal


def _lines(path: Path) -> Iterator[bytes]:
    try:
        with open_regular_file(path) as file:
            yield from lines_of(file, path)
    except _DAMAGED:
        return


def _read_scores(root: Path) -> Iterator[tuple[tuple[Any, ...], Any]]:
    for line in _lines(root / FOLDER / TRIALS_FILE):
        try:
            row = json.loads(line)
            yield (row["strategy"], row["model"], row["instance"], row["attempt"]), row["score"]
        except _DAMAGED:
            continue


def _read_answers(root: Path) -> Iterator[tuple[str, Any]]:
    for line in _lines(root / JOURNAL_FILE):
        # Other lines are not parsed: a journal may have gigabytes of replies.
        if line.startswith(b"{" + _ENDED) and _ANSWER in line[:200]:
            try:
                row = json.loads(line)
                if row.get("value") is not None:
                    yield row["key"], row["value"]
            except _DAMAGED:
                continue


def _read_instances(root: Path) -> dict[str, RefactoringInstance]:
    for path in _instance_files(root):
        try:
            return {each.unique_id: each for each in read_instances(path)}
        except _DAMAGED:
            continue
    return {}


def _instance_files(root: Path) -> Iterator[Path]:
    """Yield where the instances may be: their path is relative to the config, whose place is not known."""
    try:
        config = json.loads(read_regular_file(root / RUN_CONFIG_FILE))
        named = Path(str(config["swe_refactor"]["instances"]))
        benchmark = str(config["benchmark"]["path"])
    except _DAMAGED:
        named, benchmark = Path(), ""
    if named.name:
        # The frozen config has the path of the benchmark with the config's folder before it.
        for base in (Path(), *_config_folders(benchmark), root.parent, root.parent.parent):
            path = Path(os.path.normpath(base / named))
            if path.is_file():
                yield path
    own = root / FOLDER / INSTANCES_FILE
    if own.is_file():
        yield own


def _config_folders(benchmark: str) -> list[Path]:
    head, separator, _ = benchmark.partition("/../")
    return [Path(head)] if separator else []
