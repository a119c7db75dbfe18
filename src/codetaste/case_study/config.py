"""``[case_study]``: which trials an agent compares with the golden patch, and what it makes of them."""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import Any

from pydantic import Field

from codetaste.benchmark.layout import RUN_CONFIG_FILE, Mode, Track
from codetaste.core.files import read_text_file
from codetaste.core.section import FilePath, Section
from codetaste.core.text import one_line
from codetaste.errors import ConfigError


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


def name_studied_benchmark(raw: dict[str, Any], path: Path) -> None:
    """Let a config with ``[case_study]`` that names no benchmark have that of the run that it is about.

    The same with the instances of SWE-Refactor and their clones.

    Args:
        raw: the data of the config, which is changed.
        path: its file.

    Raises:
        ConfigError: the run's own config does not name them.
    """
    section = raw.get("case_study")
    if "benchmark" in raw or not isinstance(section, dict) or not isinstance(run := section.get("run"), str):
        return
    frozen = path.parent / Path(run).expanduser() / RUN_CONFIG_FILE
    try:
        config = json.loads(read_text_file(frozen))
        benchmark = config["benchmark"]
        if "instances" not in section:
            section |= _studied_methods(config.get("swe_refactor"), frozen)
        found = {"path": str(benchmark["path"]), "repos": benchmark.get("repos")}
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        reason = one_line((error.strerror if isinstance(error, OSError) else None) or error)
        raise ConfigError(
            f"{path}: case_study.run: {frozen} does not name the run's benchmark ({reason}); add [benchmark]"
        ) from None
    raw["benchmark"] = {name: value for name, value in found.items() if value is not None}


def _studied_methods(section: dict[str, Any] | None, frozen: Path) -> dict[str, Any]:
    """Return the instances and clones of ``[swe_refactor]`` in a run's frozen config."""
    if section is None or section["instances"] is None:
        return {}
    if not Path(section["instances"]).is_absolute():
        raise ConfigError(
            f"{frozen}: it does not say where its paths begin, as it is of an earlier version; "
            "add instances and repositories to [case_study]"
        )
    return {name: section[name] for name in ("instances", "repositories")}
