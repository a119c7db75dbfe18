"""Studies of SWE-Refactor's trials: all strategies and models that have worked on one instance."""

from __future__ import annotations

from collections import defaultdict
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from codetaste.benchmark.instances_csv import is_path_name
from codetaste.benchmark.layout import Mode, Track
from codetaste.case_study.plan import (
    METHOD_TRACK,
    StudiedTrial,
    StudySubject,
    folder_name,
    no_trials,
    study_tasks,
)
from codetaste.core.hashing import json_digest
from codetaste.core.text import one_line
from codetaste.errors import ConfigError
from codetaste.swe_refactor.dataset.format import read_instances
from codetaste.swe_refactor.dataset.layout import FOLDER, TRIALS_FILE
from codetaste.swe_refactor.report.trials_file import read_trials, trial_to_json

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from codetaste.case_study.config import CaseStudyConfig
    from codetaste.case_study.plan import Examiner, StudyTask
    from codetaste.swe_refactor.report.trial_row import TrialRow


def plan_method_studies(
    config: CaseStudyConfig, run: Path, base_dir: Path, examiner: Examiner
) -> tuple[StudyTask, ...]:
    """List the studies of SWE-Refactor's trials in the folder ``run``. Does blocking I/O.

    Args:
        config: the section, with the file of the instances.
        run: the folder of the run.
        base_dir: paths of the section are relative to it.
        examiner: who makes the studies.

    Raises:
        ConfigError: a file cannot be read, or no trial is selected.
    """
    assert config.instances is not None  # noqa: S101 - these studies are planned where it is given
    if set(config.tracks) != set(Track) or set(config.modes) != set(Mode):
        raise ConfigError("SWE-Refactor has no tracks and modes; select its trials by agents")
    missing = [path for path in config.repositories if not (base_dir / path.expanduser()).is_dir()]
    if missing:
        raise ConfigError(*(f"{path}: no such folder" for path in missing))
    path = run / FOLDER / TRIALS_FILE
    if not path.is_file():
        raise ConfigError(f"{path}: no such file; it is written when the trials of the run have ended")
    rows: dict[str, list[TrialRow]] = defaultdict(list)
    for row in read_trials(path):
        rows[row.instance].append(row)
    tasks: list[StudyTask] = []
    for method in read_instances(base_dir / config.instances.expanduser()):
        name = method.unique_id
        if not is_path_name(name):
            raise ConfigError(f"{config.instances}: uniqueId {one_line(name)} cannot be the name of a file")
        if any(fnmatchcase(name, glob) for glob in config.select):
            subject = StudySubject(
                name, f"{METHOD_TRACK}/{name}", METHOD_TRACK, "", (method.commit_id,), method=method
            )
            tasks += study_tasks(config, subject, _studied_trials(rows[name], config), run, examiner)
    if not tasks:
        agents = sorted({_agent(row) for own in rows.values() for row in own})
        raise no_trials(config, run, agents, "instance")
    return tuple(tasks)


def _studied_trials(rows: Iterable[TrialRow], config: CaseStudyConfig) -> list[StudiedTrial]:
    found = list[StudiedTrial]()
    for row in rows:
        agent = _agent(row)
        if any(fnmatchcase(name, glob) for name in (agent, row.model) for glob in config.agents):
            name = folder_name(agent.replace("/", "."), row.attempt, {other.name for other in found})
            digest = json_digest(trial_to_json(row))
            found.append(StudiedTrial(agent, row.attempt, row.key.answer_key, name, digest, row=row))
    return found


def _agent(row: TrialRow) -> str:
    return f"{row.strategy}/{row.model}"
