"""The timeline of a trial: sums of waits, and its axis."""

from __future__ import annotations

import pytest

from codetaste.orchestration.wait import Wait, WaitReason
from codetaste.site.trial.transcript.timeline import make_timeline
from codetaste.site.trial.transcript.trial_jobs import TrialJobs
from codetaste.transcripts.timeline.job import AttemptSpan, JobTimeline, WaitSpan


def waits_for(reason: WaitReason, began: float, ended: float | None) -> WaitSpan:
    return WaitSpan(Wait(reason, ""), began, ended)


def test_waits_at_one_time_count_once() -> None:
    jobs = [
        JobTimeline(
            key=f"infer/a/open/direct/o__r-01234567/{step}",
            created=100.0,
            ended=104.0,
            attempts=(AttemptSpan(1, 103.0, 104.0),),
            waits=(
                waits_for(WaitReason.JOBS, 100.0, 103.0),
                waits_for(WaitReason.RATE_LIMIT, 102.0, 103.5),
            ),
        )
        for step in ("plan", "execute")
    ]
    view = make_timeline(TrialJobs(timelines=tuple(jobs), until=104.0))
    assert view is not None
    summary = dict(view.summary)
    assert summary["Waits"] == "3.50s"
    assert sorted(value for name, value in summary.items() if name.startswith("waits for")) == [
        "1.50s",
        "3.00s",
    ]


@pytest.mark.parametrize(
    ("length", "texts"),
    [
        (0.0, ["0s"]),
        (3.1, ["0s", "1s", "2s", "3s"]),
        (2.0, ["0s", "0.5s", "1s", "1.5s", "2s"]),
        (100.0, ["0s", "20s", "40s", "1m00s", "1m20s", "1m40s"]),
        (4000.0, ["0s", "20m00s", "40m00s", "1h00m"]),
        (400_000.0, ["0s", "24h00m", "48h00m", "72h00m", "96h00m"]),
    ],
)
def test_ticks_are_round_times(length: float, texts: list[str]) -> None:
    job = JobTimeline("infer/a/x/y/z/execute", 50.0, 50.0 + length, (AttemptSpan(1, 50.0, 50.0 + length),))
    view = make_timeline(TrialJobs(timelines=(job,)))
    assert view is not None
    assert [tick.text for tick in view.ticks] == texts
