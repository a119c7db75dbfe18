"""The studies that ``[case_study]`` selects among the trials of a run, and their worst-case cost."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from codetaste.benchmark.layout import EVALUATION_FOLDER, METADATA_FILE, PREDICTION_FILE, SCORES_FILE
from codetaste.benchmark.trial_identity import TrialIdentity
from codetaste.case_study.config import StudyKind
from codetaste.core.hashing import file_sha256
from codetaste.core.text import did_you_mean, printable
from codetaste.errors import ConfigError
from codetaste.evaluation.trials.find import find_trials
from codetaste.flows.job_keys import sources_key
from codetaste.orchestration.budget.cost import BudgetLimits

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from codetaste.benchmark.instance import Instance
    from codetaste.case_study.config import CaseStudyConfig
    from codetaste.evaluation.trials.find import TrialFolder
    from codetaste.harness.config import AgentConfig

_NAMES = {StudyKind.COMPARISON: "case-study", StudyKind.LABELS: "label"}


@dataclass(frozen=True, slots=True)
class StudiedTrial:
    """A trial that a study is about.

    ``name`` is that of its folder in the sandbox; ``digest`` is a hash of its patch and of its scores.
    """

    identity: TrialIdentity
    folder: Path
    name: str
    digest: str


@dataclass(frozen=True, slots=True)
class StudyTask:
    """One study that a run makes: a comparison of trials, or the label of one trial.

    Attributes:
        kind: what is made.
        instance: the instance.
        track: of the trials.
        mode: of the trials.
        trials: the trials; of a label one.
        agent: who makes it.
        model_label: display name of its model.
        run: the folder of the run with the trials.
    """

    kind: StudyKind
    instance: Instance
    track: str
    mode: str
    trials: tuple[StudiedTrial, ...]
    agent: AgentConfig
    model_label: str
    run: Path

    @property
    def key(self) -> str:
        """The job's key."""
        names = [_NAMES[self.kind], self.agent.id, self.track, self.mode, self.instance.id]
        return "/".join([*names, self.trials[0].name] if self.kind is StudyKind.LABELS else names)

    @property
    def sources_key(self) -> str:
        """The key of the job that checks out the instance's trees."""
        return sources_key(self.instance)

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
        return f"{self.instance.id} {self.track}/{self.mode} {what}"

    @property
    def limits(self) -> BudgetLimits:
        """The limits of all runs of the agent together."""
        return BudgetLimits(usd=self.agent.budget_usd, working_s=self.agent.time_limit)


def plan_studies(
    config: CaseStudyConfig, run: Path, instances: Iterable[Instance], agent: AgentConfig, label: str
) -> tuple[StudyTask, ...]:
    """List the studies of the trials in the folder ``run``. Does blocking I/O.

    Args:
        config: the section.
        run: the folder of the run.
        instances: those that are selected.
        agent: who makes the studies.
        label: display name of its model.

    Raises:
        ConfigError: the folder has no trials in the published layout, or none is selected.
    """
    folders = [each for each in find_trials(run).trials if not each.pseudo and each.track]
    chosen = [each for each in folders if _is_chosen(each, config)]
    tasks = list[StudyTask]()
    for instance in instances:
        own = [each for each in chosen if each.instance_id == instance.id]
        for track, mode in dict.fromkeys((each.track, each.mode) for each in own):
            trials = _studied_trials([each for each in own if (each.track, each.mode) == (track, mode)])
            for kind in dict.fromkeys(config.kinds):
                parts = _labelled_trials(trials) if kind is StudyKind.LABELS else [trials]
                tasks += [
                    StudyTask(kind, instance, track, mode, part, agent, label, run) for part in parts if part
                ]
    if not tasks:
        agents = sorted({each.agent for each in folders})
        wanted = ", ".join(config.agents)
        hint = did_you_mean(wanted, agents) or f" (there are those of {', '.join(agents[:10]) or 'no agent'})"
        raise ConfigError(
            printable(f"{run}: no trial of {wanted} at a selected instance, track and mode{hint}")
        )
    return tuple(tasks)


def worst_case_usd(tasks: Iterable[StudyTask]) -> Decimal:
    """Return the maximum cost of ``tasks`` under the budgets of their agent."""
    return sum((each.agent.budget_usd for each in tasks), Decimal(0))


def _labelled_trials(trials: Iterable[StudiedTrial]) -> list[tuple[StudiedTrial, ...]]:
    """Return each trial that has a patch, not empty and not a line end alone, for a label of its own."""
    patches = ((each, each.folder / PREDICTION_FILE) for each in trials)
    return [(each,) for each, patch in patches if patch.is_file() and patch.stat().st_size > 1]


def _is_chosen(trial: TrialFolder, config: CaseStudyConfig) -> bool:
    return (
        trial.track in set(config.tracks)
        and trial.mode in set(config.modes)
        and any(fnmatchcase(trial.agent, glob) for glob in config.agents)
    )


def _studied_trials(folders: Sequence[TrialFolder]) -> tuple[StudiedTrial, ...]:
    """Return the trials that have a prediction or metadata, with names that differ."""
    found: dict[str, StudiedTrial] = {}
    for each in folders:
        if not any((each.folder / name).is_file() for name in (PREDICTION_FILE, METADATA_FILE)):
            continue
        identity = TrialIdentity(each.agent, each.track, each.mode, each.instance_id, each.attempt)
        base = _folder_name(each)
        name, number = base, 2
        while name in found:
            name, number = f"{base}-{number}", number + 1
        found[name] = StudiedTrial(identity, each.folder, name, _digest(each.folder))
    return tuple(found.values())


def _folder_name(trial: TrialFolder) -> str:
    """Return a name of safe characters for a trial whose agent's id is untrusted."""
    safe = "".join(
        char if char.isascii() and (char.isalnum() or char in "._-") else "_" for char in trial.agent
    )
    name = safe.lstrip(".-")[:80] or "agent"
    return name if trial.attempt == 1 else f"{name}.attempt-{trial.attempt}"


def _digest(folder: Path) -> str:
    """Return what decides a study of a trial, as hashes: its scores, which have the hash of its patch."""
    scores = _file_digest(folder / EVALUATION_FOLDER / SCORES_FILE)
    return f"{scores or _file_digest(folder / PREDICTION_FILE)} {_file_digest(folder / METADATA_FILE)}"


def _file_digest(path: Path) -> str:
    try:
        return file_sha256(path)
    except OSError:
        return ""
