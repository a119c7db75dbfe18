"""Trials as a report reads them: one record each, whatever made it, and what could not be read.

A record holds a trial's values as we count them (``None`` is "undefined" or "not measured", never 0 and never
1), and in ``published`` as the published harness would read the same files, so that both aggregations can be
made of the same records. ``evaluation/reading.py`` makes them.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from codetaste.evaluation.activity import Activity
    from codetaste.evaluation.score import TestCounts

GOLDEN, NULL = "golden_agent", "null_agent"
"""The published ids of the agents that answer with X*, and with nothing."""


class TrialStatus(StrEnum):
    """What became of a trial."""

    SCORED = "scored"
    NOT_SCORED = "not_scored"
    """There is a prediction, and no evaluation of it yet."""
    FAILED = "failed"
    """It ended without a prediction that could be evaluated."""
    REFUSED = "refused"
    """It never began: no money, or the model would not."""
    DOES_NOT_APPLY = "does_not_apply"
    PARTIAL = "partial"
    """The rules were scanned in part only: IFR is undefined."""
    UNREADABLE = "unreadable"
    """Its files cannot be read; what happened is not known."""


class Source(StrEnum):
    """Whose files a record was read from."""

    CODETASTE = "codetaste"
    PUBLISHED = "published"


@dataclass(frozen=True, slots=True)
class PublishedValues:
    """A trial's values as the published harness takes them into its means, 0..1; None is left out of a mean.

    Without rules its IFR is 1, without changed lines its precision 0, without test results ``passed`` 0.
    """

    passed: float | None
    ifr: float
    ifr_plus: float
    ifr_minus: float
    prec: float | None = None
    prec_plus: float | None = None
    prec_minus: float | None = None
    cost_usd: float | None = None

    @property
    def alignment(self) -> float | None:
        """Its ``ifr_x_test_success``."""
        return None if self.passed is None else self.ifr * self.passed

    @property
    def alignment_plus(self) -> float | None:
        """Its ``ifr_added_x_test_success``."""
        return None if self.passed is None else self.ifr_plus * self.passed

    @property
    def alignment_minus(self) -> float | None:
        """Its ``ifr_removed_x_test_success``."""
        return None if self.passed is None else self.ifr_minus * self.passed


@dataclass(frozen=True, slots=True)
class TrialRecord:
    """One agent's go at one instance, and what it was worth; fractions are 0..1.

    Attributes:
        run: the name of the run or folder that it was read from.
        source: whose files these are.
        agent: the agent's id, fit for people: no control characters, bounded.
        model: the model's name, "" where nobody says.
        harness: the agent program's name, "" where nobody says.
        track: "instructed" or "open"; "" for the pseudo agents, which belong to every track.
        mode: "direct", "plan" or "multiplan".
        instance: the instance's id.
        repository: "owner/repo".
        language: as the benchmark says, "" where it is not known.
        category: as the benchmark says, "" where it is not known.
        attempt: from 1.
        finish_reason: as the published layout has them; "" where nobody says.
        status: what became of it.
        why: one line where the status or a missing value needs a reason.
        tests: what its test run counted.
        passed: PASS (CodeTaste §4.1); None without a test run or a baseline.
        ifr: instruction following rate (§2.1).
        ifr_plus: over the additive rules alone.
        ifr_minus: over the reductive rules alone.
        prec: change precision (A.5).
        prec_plus: of the added lines alone.
        prec_minus: of the removed lines alone.
        added: |L⁺| with the published directory exclusions.
        removed: |L⁻| with the published directory exclusions.
        cost_usd: US dollars, all steps together; None is unknown.
        time_s: seconds from its start to its end.
        turns: model replies.
        tool_calls: of the agent.
        activity: what the agent did, from its transcript.
        folder: where its files lie.
        published: None where the published harness drops this trial from every mean.
        scored_by: the programs that counted, "codetaste 0.6.0, opengrep 1.30.0"; "" where nobody says.
        rules_sha256: of the rules that it was scored with, "" where nobody says.
        notes: what a reader should know of it, a line each.
    """

    run: str
    source: Source
    agent: str
    model: str
    harness: str
    track: str
    mode: str
    instance: str
    repository: str
    language: str
    category: str
    attempt: int
    finish_reason: str
    status: TrialStatus
    why: str
    folder: Path
    tests: TestCounts | None = None
    passed: bool | None = None
    ifr: float | None = None
    ifr_plus: float | None = None
    ifr_minus: float | None = None
    prec: float | None = None
    prec_plus: float | None = None
    prec_minus: float | None = None
    added: int | None = None
    removed: int | None = None
    cost_usd: float | None = None
    time_s: float | None = None
    turns: int | None = None
    tool_calls: int | None = None
    activity: Activity | None = None
    published: PublishedValues | None = None
    scored_by: str = ""
    rules_sha256: str = ""
    notes: tuple[str, ...] = ()

    @property
    def pseudo(self) -> bool:
        """Whether this is the golden or the null agent."""
        return self.agent in {GOLDEN, NULL}

    @property
    def alignment(self) -> float | None:
        """A = IFR x PASS (§4.1); None where either is not known."""
        return _aligned(self.ifr, self.passed)

    @property
    def alignment_plus(self) -> float | None:
        """A⁺ = IFR⁺ x PASS."""
        return _aligned(self.ifr_plus, self.passed)

    @property
    def alignment_minus(self) -> float | None:
        """A⁻ = IFR⁻ x PASS."""
        return _aligned(self.ifr_minus, self.passed)

    @property
    def edited(self) -> int | None:
        """|L⁺| + |L⁻|: the lines that it added and removed."""
        return None if self.added is None or self.removed is None else self.added + self.removed


class ProblemKind(StrEnum):
    """What is wrong with a folder; problems are counted by it."""

    MISSING = "missing"
    TRUNCATED = "truncated"
    LAYOUT = "layout"
    VERSIONS = "versions"
    NUMBER = "number"
    RULES = "rules"
    INSTANCES = "instances"
    SIZE = "size"
    LINK = "link"
    NAME = "name"
    UNKNOWN_INSTANCE = "unknown_instance"
    OTHER_COMMIT = "other_commit"
    DUPLICATE = "duplicate"
    UNREADABLE = "unreadable"
    STALE = "stale"


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that is wrong with what was read; one line, fit for a terminal."""

    kind: ProblemKind
    place: str
    """Which file or folder, below the root that was read."""
    text: str
    """What is wrong, and what became of it."""

    def __str__(self) -> str:
        """Say it in one line."""
        return f"{self.place}: {self.text}"


@dataclass(frozen=True, slots=True)
class Records:
    """All trials below a folder, and all that is wrong there."""

    records: tuple[TrialRecord, ...] = ()
    problems: tuple[Problem, ...] = ()


def _aligned(ifr: float | None, passed: bool | None) -> float | None:
    return None if ifr is None or passed is None else ifr * passed
