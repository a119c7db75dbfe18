"""``[case_study]``: which trials an agent compares with the golden patch, and what it makes of them."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from codetaste.benchmark.layout import Mode, Track
from codetaste.core.section import FilePath, Section


class StudyKind(StrEnum):
    """What an agent makes of trials."""

    COMPARISON = "comparison"
    """One report for all trials of an instance, track and mode (CodeTaste Appendix C)."""
    LABELS = "labels"
    """The failure label of each trial (CodeTaste §4.4)."""


class CaseStudyConfig(Section):
    """``[case_study]``: an agent that compares the trials of a run with the golden patch, or labels them."""

    run: FilePath
    """The folder of the run whose trials are compared, relative to the config file. Without ``[benchmark]``
    its benchmark is used. Reports are filed in its folder ``case_studies``; nothing else in it changes."""
    agent: str
    """The id of one of [[agents]]. Its ``budget_usd`` and ``time_limit`` are those of one report, or one
    label."""
    kinds: tuple[StudyKind, ...] = Field(default=(StudyKind.COMPARISON,), min_length=1)
    """What is made: "comparison", a report for each instance, track and mode; "labels", a failure label for
    each trial."""
    agents: tuple[str, ...] = Field(default=("*",), min_length=1)
    """Globs on the ids of the agents whose trials are compared."""
    tracks: tuple[Track, ...] = Field(default=tuple(Track), min_length=1)
    """Tracks of these trials."""
    modes: tuple[Mode, ...] = Field(default=tuple(Mode), min_length=1)
    """Modes of these trials."""
    instances: FilePath | None = None
    """The file with the instances of SWE-Refactor, relative to the config file, for a run of
    [[swe_refactor.strategies]]. Without it, that of the run's config."""
    repositories: tuple[FilePath, ...] = ()
    """Clones of the projects of these instances, with their history. Without any, those of the run."""
    select: tuple[str, ...] = Field(default=("*",), min_length=1)
    """Globs on the ids of these instances; those of CodeTaste are selected by ``[benchmark]``."""
    tries: int = Field(default=2, ge=1, le=10)
    """Runs of the agent for one report: one that leaves none of the required form is followed by another."""
