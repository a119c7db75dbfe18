"""Which page of the site shows the result of a job."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from codetaste.benchmark.pass_identity import PassIdentity
from codetaste.benchmark.trial_identity import trial_of_step
from codetaste.site.construction.discovery import pass_address
from codetaste.site.site import trial_address
from codetaste.site.swe_refactor.addresses import answer_address
from codetaste.site.swe_refactor.run_files import RunFiles

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from codetaste.results.read import RunResults

_SCORING_JOBS = (("evaluate/", "infer/"), ("score/", "answer/"))
"""Beginnings of the keys of jobs that score, and of the keys of what they score."""


class Subject(NamedTuple):
    """What a job worked on: its run, and a key or the beginning of one that its jobs share."""

    run: Path
    key: str


def subject_of_job(run: Path, key: str) -> Subject:
    """Return what the job ``key`` of a run worked on."""
    identity = trial_of_step(key)
    if identity is not None:
        return Subject(run, identity.key)
    for job, subject in _SCORING_JOBS:
        if key.startswith(job):
            return Subject(run, f"{subject}{key.removeprefix(job)}")
    return Subject(run, key)


def result_pages(roots: Sequence[Path], results: RunResults) -> Iterator[tuple[Subject, str]]:
    """Yield the subjects of ended jobs with the addresses of their pages."""
    # Merging may have given agents other names; a folder has one trial.
    addresses = {trial.folder: trial_address(trial) for trial in results.trials.agents}
    for record in results.records.records:
        for root in roots:
            if record.folder in addresses and record.folder.is_relative_to(root):
                yield Subject(root, record.identity.key), addresses[record.folder]
    files = RunFiles(roots)
    for row in results.answers.rows:
        run = files.root(row)
        if run is not None:
            yield Subject(run, files.job(row)), answer_address(row)
    for each in results.passes:
        for root in roots:
            label = f"{root.name}/" if len(roots) > 1 else ""
            if each.system.startswith(label):
                model = each.system.removeprefix(label)
                key = PassIdentity(model, each.instance, each.direction).key
                yield Subject(root, key), pass_address(each)
