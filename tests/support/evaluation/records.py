"""Records for tests: a trial with only what matters said."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from codetaste.evaluation.trials.records import PublishedScores, TrialRecord, TrialSource, TrialStatus

WORTHLESS = (TrialStatus.FAILED, TrialStatus.REFUSED, TrialStatus.DOES_NOT_APPLY)


def trial(
    agent: str = "a",
    instance: str = "o__r-1",
    ifr: float | None = None,
    *,
    lane: str = "open/direct",
    **more: Any,
) -> TrialRecord:
    """A scored trial with ``ifr``; without it a failed one; ``published`` follows unless it is given."""
    track, mode = lane.split("/")
    passed = more.get("passed")
    published = None
    if ifr is not None:
        published = PublishedScores(None if passed is None else float(passed), ifr, ifr, ifr, cost_usd=None)
    values: dict[str, Any] = {
        "run": "r",
        "source": TrialSource.CODETASTE,
        "model": "m",
        "harness": "h",
        "repository": instance.partition("-")[0].replace("__", "/"),
        "language": "python",
        "category": "",
        "attempt": 1,
        "finish_reason": "success",
        "status": TrialStatus.FAILED if ifr is None else TrialStatus.SCORED,
        "why": "",
        "folder": Path("nowhere"),
        "ifr_plus": ifr,
        "ifr_minus": ifr,
        "published": published,
        **more,
    }
    return TrialRecord(agent=agent, instance=instance, track=track, mode=mode, ifr=ifr, **values)


def several(agent: str, values: list[float | None], **more: Any) -> list[TrialRecord]:
    """A trial on each of as many instances, each of its own repository."""
    return [trial(agent, f"o__r{place}-1", value, **more) for place, value in enumerate(values)]
