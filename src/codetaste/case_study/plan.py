"""The studies that ``[case_study]`` selects among the trials of a run, and their worst-case cost.

``method_trials.py`` lists those of SWE-Refactor's trials.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from codetaste.benchmark.layout import (
    EVALUATION_FOLDER,
    METADATA_FILE,
    PREDICTION_FILE,
    SCORES_FILE,
    attempt_name,
)
from codetaste.benchmark.trial_identity import TrialIdentity
from codetaste.case_study.config import StudyKind
from codetaste.core.hashing import file_sha256
from codetaste.core.text import did_you_mean, printable
from codetaste.errors import ConfigError
from codetaste.evaluation.trials.find import find_trials
from codetaste.flows.job_keys import sources_key
from codetaste.orchestration.budget.cost import BudgetLimits
from codetaste.swe_refactor.dataset.layout import FOLDER, TRIALS_FILE

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence
    from pathlib import Path

    from codetaste.benchmark.instance import Instance
    from codetaste.case_study.config import CaseStudyConfig
    from codetaste.evaluation.trials.find import TrialFolder
    from codetaste.harness.config import AgentConfig
    from codetaste.swe_refactor.dataset.instance import RefactoringInstance
    from codetaste.swe_refactor.report.trial_row import TrialRow

METHOD_TRACK = "swe-refactor"
"""Stands in the place of a track in studies of SWE-Refactor."""
_NAMES = {StudyKind.COMPARISON: "case-study", StudyKind.LABELS: "label"}


@dataclass(frozen=True, slots=True)
class StudiedTrial:
    """A trial that a study is about.

    Attributes:
        agent: who made it; of SWE-Refactor ``STRATEGY/MODEL``.
        attempt: from 1.
        job_prefix: the beginning of the keys of its jobs; of SWE-Refactor the key of the one that answers.
        name: that of its folder in the sandbox.
        digest: a hash of its patch, or answer, and of its scores.
        folder: its outputs in the published layout; None for one of SWE-Refactor.
        row: its row, of SWE-Refactor.
    """

    agent: str
    attempt: int
    job_prefix: str
    name: str
    digest: str
    folder: Path | None = None
    row: TrialRow | None = None


@dataclass(frozen=True, slots=True)
class StudySubject:
    """An instance, with the track and mode of the trials that are compared; SWE-Refactor has no modes.

    Attributes:
        id: of the instance.
        path: the folder of its studies, below those of all.
        track: of the trials, ``METHOD_TRACK`` for SWE-Refactor.
        mode: of the trials, "" for SWE-Refactor.
        commits: what identifies the code before and after.
        instance: that of CodeTaste, or None.
        method: that of SWE-Refactor, or None.
    """

    id: str
    path: str
    track: str
    mode: str
    commits: tuple[str, ...]
    instance: Instance | None = None
    method: RefactoringInstance | None = None

    @property
    def setting(self) -> str:
        """Track and mode in one text."""
        return "/".join(filter(None, (self.track, self.mode)))


@dataclass(frozen=True, slots=True)
class StudyTask:
    """One study that a run makes: a comparison of trials, or the label of one trial.

    Attributes:
        kind: what is made.
        subject: what the trials are about.
        trials: the trials; of a label one.
        agent: who makes it.
        model_label: display name of its model.
        run: the folder of the run with the trials.
    """

    kind: StudyKind
    subject: StudySubject
    trials: tuple[StudiedTrial, ...]
    agent: AgentConfig
    model_label: str
    run: Path

    @property
    def key(self) -> str:
        """The job's key."""
        names = [_NAMES[self.kind], self.agent.id, self.subject.setting, self.subject.id]
        return "/".join([*names, self.trials[0].name] if self.kind is StudyKind.LABELS else names)

    @property
    def sources_key(self) -> str:
        """The key of the job that checks out the instance's trees; "" for SWE-Refactor, which has clones."""
        return "" if self.subject.instance is None else sources_key(self.subject.instance)

    @property
    def install_key(self) -> str:
        """The key of the job that installs the CLI agent; "" for the own agent."""
        return "" if self.agent.uses_own_loop else f"install/{self.agent.id}"

    @property
    def needs(self) -> tuple[str, ...]:
        """The keys of the jobs that must have a result first."""
        return tuple(filter(None, (self.sources_key, self.install_key)))

    @property
    def group(self) -> str:
        """The name under which it is counted."""
        what = "labels" if self.kind is StudyKind.LABELS else "case studies"
        return f"{what} by {self.agent.id}"

    @property
    def title(self) -> str:
        """The display name."""
        what = f"label of {self.trials[0].name}" if self.kind is StudyKind.LABELS else "case study"
        return f"{self.subject.id} {self.subject.setting} {what}"

    @property
    def limits(self) -> BudgetLimits:
        """The limits of all runs of the agent together."""
        return BudgetLimits(usd=self.agent.budget_usd, working_s=self.agent.time_limit)


@dataclass(frozen=True, slots=True)
class Examiner:
    """Who makes studies: an agent, and the display name of its model."""

    agent: AgentConfig
    model_label: str


def plan_studies(
    config: CaseStudyConfig, run: Path, instances: Iterable[Instance], examiner: Examiner
) -> tuple[StudyTask, ...]:
    """List the studies of the trials of ``instances`` in the folder ``run``. Does blocking I/O.

    Raises:
        ConfigError: the folder has no trials in the published layout, or none is selected.
    """
    folders = [each for each in find_trials(run).trials if not each.pseudo and each.track]
    chosen = [each for each in folders if _is_chosen(each, config)]
    tasks = list[StudyTask]()
    for instance in instances:
        own = [each for each in chosen if each.instance_id == instance.id]
        commits = instance.commit_hash, instance.golden_commit_hash
        for track, mode in dict.fromkeys((each.track, each.mode) for each in own):
            path = f"{instance.path}/{track}/{mode}"
            subject = StudySubject(instance.id, path, track, mode, commits, instance)
            trials = _studied_trials([each for each in own if (each.track, each.mode) == (track, mode)])
            tasks += study_tasks(config, subject, trials, run, examiner)
    if not tasks:
        agents = sorted({each.agent for each in folders})
        raise no_trials(config, run, agents, "instance, track and mode")
    return tuple(tasks)


def study_tasks(
    config: CaseStudyConfig,
    subject: StudySubject,
    trials: Sequence[StudiedTrial],
    run: Path,
    examiner: Examiner,
) -> list[StudyTask]:
    """Return the studies of trials of one subject: a comparison, or a label of each that has a patch."""
    tasks = list[StudyTask]()
    for kind in dict.fromkeys(config.kinds):
        comparing = kind is StudyKind.COMPARISON
        parts = [tuple(trials)] if comparing else [(each,) for each in trials if _has_patch(each)]
        by = examiner.agent, examiner.model_label
        tasks += [StudyTask(kind, subject, part, *by, run) for part in parts if part]
    return tasks


def no_trials(config: CaseStudyConfig, run: Path, agents: Sequence[str], selection: str) -> ConfigError:
    """Return the error of a run without any trial that is selected; ``agents`` are those that have trials."""
    wanted = ", ".join(config.agents)
    if not agents and config.instances is None and (run / FOLDER / TRIALS_FILE).is_file():
        hint = "add instances and repositories to [case_study], or use the config of the run"
        return ConfigError(printable(f"{run}: its trials are of SWE-Refactor: {hint}"))
    if not agents:
        return ConfigError(printable(f"{run}: the run has no trial that has ended"))
    hint = did_you_mean(wanted, agents) or f" (there are those of {', '.join(agents[:10])})"
    whose = "" if wanted == "*" else f" of {wanted}"
    return ConfigError(printable(f"{run}: no trial{whose} at a selected {selection}{hint}"))


def worst_case_usd(tasks: Iterable[StudyTask]) -> Decimal:
    """Return the maximum cost of ``tasks`` under the budgets of their agent."""
    return sum((each.agent.budget_usd for each in tasks), Decimal(0))


def _has_patch(trial: StudiedTrial) -> bool:
    """Whether a trial has a patch, not empty and not a line end alone, or an answer of SWE-Refactor."""
    if trial.folder is None:
        return True
    patch = trial.folder / PREDICTION_FILE
    return patch.is_file() and patch.stat().st_size > 1


def _is_chosen(trial: TrialFolder, config: CaseStudyConfig) -> bool:
    return (
        trial.track in set(config.tracks)
        and trial.mode in set(config.modes)
        and any(fnmatchcase(trial.agent, glob) for glob in config.agents)
    )


def _studied_trials(folders: Sequence[TrialFolder]) -> list[StudiedTrial]:
    """Return the trials that have a prediction or metadata."""
    found = list[StudiedTrial]()
    for each in folders:
        if not any((each.folder / name).is_file() for name in (PREDICTION_FILE, METADATA_FILE)):
            continue
        identity = TrialIdentity(each.agent, each.track, each.mode, each.instance_id, each.attempt)
        name = folder_name(each.agent, each.attempt, {other.name for other in found})
        digest = _digest(each.folder)
        found.append(StudiedTrial(each.agent, each.attempt, identity.key, name, digest, each.folder))
    return found


def folder_name(agent: str, attempt: int, taken: Collection[str]) -> str:
    """Return a name of safe characters, not one of ``taken``, for a trial whose agent's id is untrusted."""
    safe = "".join(char if char.isascii() and (char.isalnum() or char in "._-") else "_" for char in agent)
    base = safe.lstrip(".-")[:80] or "agent"
    base = base if attempt == 1 else f"{base}.{attempt_name(attempt)}"
    name, number = base, 2
    while name in taken:
        name, number = f"{base}-{number}", number + 1
    return name


def _digest(folder: Path) -> str:
    """Return what decides a study of a trial, as hashes: its scores, which have the hash of its patch."""
    scores = _file_digest(folder / EVALUATION_FOLDER / SCORES_FILE)
    return f"{scores or _file_digest(folder / PREDICTION_FILE)} {_file_digest(folder / METADATA_FILE)}"


def _file_digest(path: Path) -> str:
    try:
        return file_sha256(path)
    except OSError:
        return ""
