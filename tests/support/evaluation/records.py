"""Trial records for tests, with defaults for all fields that a test does not set."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from codetaste.evaluation.trials.records import (
    PublishedScores,
    TrialMetadata,
    TrialRecord,
    TrialScores,
    TrialStatus,
)

ZERO_STATUSES = (TrialStatus.FAILED, TrialStatus.REFUSED, TrialStatus.DOES_NOT_APPLY)
"""The statuses that count as a score of 0."""


def trial(
    agent: str = "a",
    instance: str = "o__r-1",
    ifr: float | None = None,
    *,
    lane: str = "open/direct",
    **more: Any,
) -> TrialRecord:
    """A scored trial with ``ifr``, or a failed one without; ``published`` is derived unless given."""
    track, mode = lane.split("/")
    passed = more.get("passed")
    published = None
    if ifr is not None:
        published = PublishedScores(None if passed is None else float(passed), ifr, ifr, ifr, cost_usd=None)
    in_scores = {name: more.pop(name) for name in [*more] if name in TrialScores.__dataclass_fields__}
    in_metadata = {name: more.pop(name) for name in [*more] if name in TrialMetadata.__dataclass_fields__}
    status = TrialStatus.FAILED if ifr is None else TrialStatus.SCORED
    scores: dict[str, Any] = {"status": status, "ifr": ifr, "ifr_plus": ifr, "ifr_minus": ifr, **in_scores}
    values: dict[str, Any] = {
        "run": "r",
        "repository": instance.partition("-")[0].replace("__", "/"),
        "language": "python",
        "category": "",
        "attempt": 1,
        "folder": Path("nowhere"),
        "published": published,
        **more,
    }
    return TrialRecord(
        agent=agent,
        instance=instance,
        track=track,
        mode=mode,
        metadata=TrialMetadata(**{"model": "m", "harness": "h", "finish_reason": "success"} | in_metadata),
        scores=TrialScores(**scores),
        **values,
    )


def several(agent: str, values: list[float | None], **more: Any) -> list[TrialRecord]:
    """One trial per value, each on an instance of another repository."""
    return [trial(agent, f"o__r{place}-1", value, **more) for place, value in enumerate(values)]
