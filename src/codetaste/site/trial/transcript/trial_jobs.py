"""The conversations and timelines of a trial, from the run that it belongs to."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from threading import Lock
from typing import TYPE_CHECKING, Any

from codetaste.benchmark.layout import OUTPUTS_FOLDER, parse_attempt
from codetaste.benchmark.trial_identity import StepKind, TrialIdentity
from codetaste.orchestration.journal.journal import JOURNAL_FILE
from codetaste.transcripts.conversations import conversations_of, conversations_of_logs
from codetaste.transcripts.timeline.journal_reader import JournalReader

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from codetaste.evaluation.trials.records import TrialRecord
    from codetaste.transcripts.event import RecordedConversation
    from codetaste.transcripts.timeline.job import JobTimeline

_PARTS_BEFORE_AGENT = 6
"""``outputs/<track>/<mode>/<owner>/<repo>/<hash8>``."""
_polling = Lock()


@dataclass(frozen=True, slots=True)
class TrialJobs:
    """What is recorded of the jobs of a trial.

    Attributes:
        conversations: in the order of the steps.
        timelines: of the steps' jobs, in their order; empty without a journal.
        journal: of the run, None without one.
        until: when the journal's last line was written, in seconds of the epoch.
        run: the folder of the run, None if the trial belongs to none.
        key: the beginning of the keys of the trial's jobs.
    """

    conversations: tuple[RecordedConversation, ...] = ()
    timelines: tuple[JobTimeline, ...] = ()
    journal: JournalReader | None = None
    until: float = 0.0
    run: Path | None = None
    key: str = ""

    def result(self, key: str) -> Any:  # noqa: ANN401 - JSON
        """Return the result of a job of the run, None without one."""
        if self.journal is None:
            return None
        with _polling:
            return self.journal.result(key)


def find_trial_jobs(roots: Sequence[Path], trial: TrialRecord) -> TrialJobs:
    """Return the jobs of a trial; one that belongs to no run has the logs in its folder. Blocking.

    Args:
        roots: the folders that were read.
        trial: the trial.
    """
    for root in roots:
        key = _trial_key(root, trial)
        if key and (root / JOURNAL_FILE).is_file():
            with _polling:
                journal = _journal(root)
                journal.poll()
                conversations = conversations_of(root, key, journal)
                found = (journal.job(f"{key}/{step}") for step in StepKind)
                timelines = tuple(each for each in found if each is not None)
            if conversations or timelines:
                return TrialJobs(conversations, timelines, journal, journal.at, root, key)
    return TrialJobs(conversations_of_logs(trial.folder))


def find_job(run: Path, key: str) -> TrialJobs:
    """Return what is recorded of one job of a run, as of a trial. Blocking."""
    with _polling:
        journal = _journal(run)
        journal.poll()
        conversations, timeline = conversations_of(run, key, journal), journal.job(key)
    return TrialJobs(conversations, () if timeline is None else (timeline,), journal, journal.at, run, key)


@lru_cache(maxsize=8)  # it reads only what was appended since the last trial
def _journal(root: Path) -> JournalReader:
    return JournalReader(root)


def _trial_key(root: Path, trial: TrialRecord) -> str:
    """Return the beginning of the keys of a trial's jobs, "" if it is not in this run."""
    try:
        first, track, mode, *names = trial.folder.relative_to(root).parts
    except ValueError:
        return ""
    agent = names[_PARTS_BEFORE_AGENT - 3 :]
    if first != OUTPUTS_FOLDER or not agent:
        return ""
    if len(agent) > 1 and parse_attempt(agent[-1]) is not None:
        agent.pop()
    return TrialIdentity("/".join(agent), track, mode, trial.instance, trial.attempt).key
