"""What identifies a trial within a run, and the keys of its jobs."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from codetaste.benchmark.layout import Mode, Track, attempt_name, parse_attempt

_FLOW = "infer"


class StepKind(StrEnum):
    """The kind of a trial's step."""

    PLAN = "plan"
    JUDGE = "judge"
    EXECUTE = "execute"


class TrialIdentity(NamedTuple):
    """One agent, track, mode, instance (by its id) and attempt; the track of a pseudo agent is ""."""

    agent: str
    track: str
    mode: str
    instance: str
    attempt: int = 1

    @property
    def name(self) -> str:
        """The part of its keys that all flows share."""
        names = self.agent, self.track, self.mode, self.instance
        return "/".join(names if self.attempt == 1 else (*names, attempt_name(self.attempt)))

    @property
    def key(self) -> str:
        """The prefix of its jobs' keys."""
        return f"{_FLOW}/{self.name}"

    def step_key(self, kind: StepKind) -> str:
        """Return the key of the job of one step, which ``trial_of_step`` reads."""
        return f"{self.key}/{kind}"


def trial_of_step(key: str) -> TrialIdentity | None:
    """Return the trial to which the job ``key`` belongs; None if it is no step of a trial."""
    flow, *names = key.split("/")
    if flow != _FLOW or len(names) < 5 or names.pop() not in set(StepKind):  # noqa: PLR2004 - their names
        return None
    if (attempt := parse_attempt(names[-1])) is not None:
        names.pop()
    *agent, track, mode, instance = names
    if not (any(agent) and instance and track in set(Track) and mode in set(Mode)):
        return None
    return TrialIdentity("/".join(agent), track, mode, instance, attempt or 1)
