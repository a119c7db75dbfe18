"""Trial records for reports: one record per trial of any source, and the problems found while reading.

A record has a trial's values as we count them (``None`` is "undefined" or "not measured", never 0 or 1), and
in ``published`` the values that the published harness would read from the same files, so that both
aggregations can use the same records. ``evaluation/trials/read.py`` makes them.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from codetaste.benchmark.layout import GOLDEN, NULL

if TYPE_CHECKING:
    from pathlib import Path

    from codetaste.evaluation.activity.counts import Activity
    from codetaste.evaluation.metrics import TestCounts


class TrialStatus(StrEnum):
    """Outcome of a trial."""

    SCORED = "scored"
    NOT_SCORED = "not_scored"
    """It has a prediction, but no evaluation yet."""
    FAILED = "failed"
    """It ended without a prediction that can be evaluated."""
    REFUSED = "refused"
    """It did not start for lack of budget, or the model refused."""
    DOES_NOT_APPLY = "does_not_apply"
    PARTIAL = "partial"
    """The scan is partial: IFR is undefined."""
    UNREADABLE = "unreadable"
    """Its files cannot be read; its outcome is unknown."""


class TrialSource(StrEnum):
    """The program that wrote the files of a trial."""

    CODETASTE = "codetaste"
    PUBLISHED = "published"


@dataclass(frozen=True, slots=True)
class PublishedScores:
    """A trial's values as the published harness averages them, 0..1; None is left out of a mean.

    Without rules IFR is 1, without changed lines precision is 0, without test results ``passed`` is 0.
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
    """One attempt of an agent at an instance, with its scores; fractions are 0..1.

    Attributes:
        run: name of the run or folder that it was read from.
        source: the program that wrote the files.
        agent: the agent's id, shortened and without control characters.
        model: the model's name, "" if unknown.
        harness: the CLI agent's name, "" if unknown.
        track: "instructed" or "open"; "" for the pseudo agents, which belong to every track.
        mode: "direct", "plan" or "multiplan".
        instance: the instance's id.
        repository: "owner/repo".
        language: from the benchmark, "" if unknown.
        category: from the benchmark, "" if unknown.
        attempt: from 1.
        finish_reason: one of the published layout's; "" if unknown.
        status: the outcome.
        why: one line if the status or a missing value needs a reason.
        tests: results of its test run.
        passed: PASS (CodeTaste §4.1); None without a test run or a baseline.
        ifr: instruction following rate (§2.1).
        ifr_plus: the same over the additive rules alone.
        ifr_minus: the same over the reductive rules alone.
        prec: change precision (A.5).
        prec_plus: the same over the added lines alone.
        prec_minus: the same over the removed lines alone.
        added: |L⁺| with the published directory exclusions.
        removed: |L⁻| with the published directory exclusions.
        cost_usd: US dollars, all steps together; None is unknown.
        time_s: seconds from its start to its end.
        turns: number of model replies.
        tool_calls: number of the agent's tool calls.
        activity: what the agent did, from its transcript.
        folder: the folder with its files.
        published: None if the published harness drops this trial from every mean.
        scored_by: programs that computed the scores, e.g. "codetaste 0.6.0, opengrep 1.30.0"; "" if unknown.
        rules_sha256: hash of the rules that it was scored with, "" if unknown.
        notes: remarks for the reader, a line each.
    """

    run: str
    source: TrialSource
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
    published: PublishedScores | None = None
    scored_by: str = ""
    rules_sha256: str = ""
    notes: tuple[str, ...] = ()

    @property
    def pseudo(self) -> bool:
        """Whether this is the golden or the null agent."""
        return self.agent in {GOLDEN, NULL}

    @property
    def alignment(self) -> float | None:
        """A = IFR x PASS (§4.1); None if either is unknown."""
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
        """|L⁺| + |L⁻|: the number of lines that it added and removed."""
        return None if self.added is None or self.removed is None else self.added + self.removed


class ProblemKind(StrEnum):
    """Kind of a problem with a file or folder; reports count problems by kind."""

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
class ReadProblem:
    """A problem with a file or folder, printable in one line."""

    kind: ProblemKind
    location: str
    """The file or folder, relative to the root that was read."""
    text: str
    """The problem and its consequence."""

    def __str__(self) -> str:
        """Return the problem as one line."""
        return f"{self.location}: {self.text}"


@dataclass(frozen=True, slots=True)
class TrialRecords:
    """All trials below a folder, and all problems found there."""

    records: tuple[TrialRecord, ...] = ()
    problems: tuple[ReadProblem, ...] = ()


def _aligned(ifr: float | None, passed: bool | None) -> float | None:
    return None if ifr is None or passed is None else ifr * passed
