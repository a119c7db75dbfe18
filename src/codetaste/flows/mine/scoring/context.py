"""What all scoring jobs share, and the commits that they are about."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from codetaste.mining.scoring.candidate import commit_id

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from codetaste.flows.context import ModelSet
    from codetaste.llm.metering.metered import MeteredModel
    from codetaste.llm.prompts import Prompts
    from codetaste.mining.commit import CommitRecord
    from codetaste.mining.prefilter.diff import CommitDiff
    from codetaste.mining.scoring.config import ScoringConfig

LoadDiff: TypeAlias = "Callable[[CommitRecord], Awaitable[CommitDiff]]"
"""Returns the diff of a commit; raises SourceError if it cannot be had."""


@dataclass(frozen=True, slots=True)
class ScoringContext:
    """What all scoring jobs of a run share.

    Attributes:
        out: the run's folder.
        config: the section.
        models: the open models.
        prompts: the prompts of the run.
        load_diff: reads the diffs of commits.
        model_label: display name of the model.
    """

    out: Path
    config: ScoringConfig
    models: ModelSet
    prompts: Prompts
    load_diff: LoadDiff
    model_label: str

    @property
    def model(self) -> MeteredModel:
        """The model that scores."""
        return self.models.models[self.config.model]


@dataclass(frozen=True, slots=True)
class ScoringTask:
    """One commit in a mining run, which is scored by its message and then perhaps by its diff."""

    mining_run: str
    record: CommitRecord

    @property
    def message_key(self) -> str:
        """The key of the job that scores the message."""
        return f"mine/{self.mining_run}/message/{commit_id(self.record)}"

    @property
    def diff_key(self) -> str:
        """The key of the job that scores the diff."""
        return f"mine/{self.mining_run}/diff/{commit_id(self.record)}"


@dataclass(frozen=True, slots=True)
class SelectionTask:
    """The choice among the commits of a mining run; ``diffs`` are those whose diffs were scored."""

    mining_run: str
    records: tuple[CommitRecord, ...]
    diffs: frozenset[str] = frozenset()


def selection_keys(mining_run: str) -> tuple[str, str]:
    """Return the keys of the jobs that choose by message and by total score."""
    return f"mine/{mining_run}/select-by-message", f"mine/{mining_run}/select-by-total"
