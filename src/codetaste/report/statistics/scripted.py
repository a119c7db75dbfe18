"""Trials of scripted models, whose costs are not real."""

from __future__ import annotations

from typing import TYPE_CHECKING

from codetaste.evaluation.trials.records import TrialSource

if TYPE_CHECKING:
    from collections.abc import Iterable

    from codetaste.evaluation.trials.records import TrialRecord

_MAX_AGENTS = 12


def is_scripted(record: TrialRecord) -> bool | None:
    """Whether our own program ran the trial with a scripted model; None if its files do not say."""
    metadata = record.metadata
    if metadata.source is not TrialSource.CODETASTE or not metadata.provider:
        return None
    return metadata.provider == "scripted"


def scripted_notes(trials: Iterable[TrialRecord]) -> tuple[str, ...]:
    """Return a note with the agents that have trials of scripted models; empty if there are none."""
    agents = sorted({record.agent for record in trials if is_scripted(record)})
    more = ["…"] if len(agents) > _MAX_AGENTS else []
    named = ", ".join([*agents[:_MAX_AGENTS], *more])
    return (f"scripted, with costs that are not real: {named}",) if agents else ()
