"""A trial's identity is read from the keys of its jobs, and from no other key."""

from __future__ import annotations

from pathlib import Path

import pytest

from codetaste.benchmark.layout import Mode, Track, attempt_name, parse_attempt, trial_folder
from codetaste.benchmark.trial_identity import StepKind, TrialIdentity, trial_of_step


@pytest.mark.parametrize("kind", StepKind)
@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("track", Track)
@pytest.mark.parametrize("attempt", [1, 2, 1000])
@pytest.mark.parametrize("agent", ["a", "plan", "open", "a/b"])
def test_key_of_step_has_identity_of_its_trial(
    agent: str, attempt: int, track: Track, mode: Mode, kind: StepKind
) -> None:
    identity = TrialIdentity(agent, track, mode, "x__y-01234567", attempt)
    assert trial_of_step(identity.step_key(kind)) == identity


def test_keys_have_the_documented_form() -> None:
    first = TrialIdentity("a", Track.OPEN, Mode.PLAN, "x__y-01234567")
    assert first.step_key(StepKind.EXECUTE) == "infer/a/open/plan/x__y-01234567/execute"
    assert (
        first._replace(attempt=2).step_key(StepKind.PLAN) == "infer/a/open/plan/x__y-01234567/attempt-2/plan"
    )


@pytest.mark.parametrize(
    "key",
    [
        *("", "infer", "infer/plan", "sources/x", "infer/a/open/direct/x", "infer/open/direct/x/plan"),
        *("discover/a/open/direct/x/plan", "infer/a/open/direct/x/judged", "infer/a/shut/direct/x/plan"),
        *("infer/a/open/both/x/plan", "infer//open/direct/x/plan", "infer/a/open/direct//plan"),
        *("infer/a/direct/x/attempt-2/plan", "infer/a/open/direct/x/attempt-0/plan"),
    ],
)
def test_other_keys_belong_to_no_trial(key: str) -> None:
    assert trial_of_step(key) is None


def test_folder_of_attempt_has_its_name() -> None:
    folder = trial_folder(Path("o"), Track.OPEN, Mode.DIRECT, "x/y/01234567", "a", 12)
    assert parse_attempt(folder.name) == 12
    assert [parse_attempt(name) for name in ("a", "attempt-0", "attempt-1x", attempt_name(1))] == [
        None
    ] * 3 + [1]
