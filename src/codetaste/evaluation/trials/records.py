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
from codetaste.benchmark.trial_identity import TrialIdentity
from codetaste.evaluation.metrics import alignment, f1, strict_success

if TYPE_CHECKING:
    from pathlib import Path

    from codetaste.evaluation.activity.counts import Activity
    from codetaste.evaluation.activity.refactorings import RefactoringCounts
    from codetaste.evaluation.metrics import TestCounts


class TrialStatus(StrEnum):
    """Outcome of a trial."""

    SCORED = "scored"
    NOT_SCORED = "not_scored"
    """It has a prediction, but no evaluation yet."""
    FAILED = "failed"
    """It ended without a prediction that can be evaluated."""
    INFRASTRUCTURE = "infrastructure"
    """The set-up, a provider, a sandbox or the machine failed: it has no score, and runs again."""
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


class _Combined:
    """The scores that combine PASS with rates: A = IFR x PASS (CodeTaste §4.1), strict success and F₁."""

    __slots__ = ()

    passed: float | None
    ifr: float | None
    ifr_plus: float | None
    ifr_minus: float | None
    prec: float | None

    @property
    def alignment(self) -> float | None:
        """A = IFR x PASS; None if either is unknown. Published as ``ifr_x_test_success``."""
        return alignment(self.passed, self.ifr)

    @property
    def alignment_plus(self) -> float | None:
        """A⁺ = IFR⁺ x PASS. Published as ``ifr_added_x_test_success``."""
        return alignment(self.passed, self.ifr_plus)

    @property
    def alignment_minus(self) -> float | None:
        """A⁻ = IFR⁻ x PASS. Published as ``ifr_removed_x_test_success``."""
        return alignment(self.passed, self.ifr_minus)

    @property
    def strict_success(self) -> float | None:
        """1 if PASS and IFR are 1, else 0. Published as ``strict_ifr_x_test_success``."""
        return strict_success(self.passed, self.ifr)

    @property
    def f1(self) -> float | None:
        """The harmonic mean of PREC and IFR, 0 without PASS. Published as ``f1_score``."""
        return f1(self.passed, self.prec, self.ifr)


@dataclass(frozen=True, slots=True)
class PublishedScores(_Combined):
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


@dataclass(frozen=True, slots=True)
class TrialScores(_Combined):
    """The scores of a trial; fractions are 0..1.

    Attributes:
        status: the outcome.
        reason: one line if the status or a missing value needs a reason.
        tests: results of its test run.
        passed: PASS (CodeTaste §4.1); None without a test run or a baseline.
        ifr: instruction following rate (§2.1); a scored trial without it has no rules.
        ifr_plus: the same over the additive rules alone.
        ifr_minus: the same over the reductive rules alone.
        prec: change precision (A.5).
        prec_plus: the same over the added lines alone.
        prec_minus: the same over the removed lines alone.
        added: |L⁺| with the published directory exclusions.
        removed: |L⁻| with the published directory exclusions.
        flagged_rules: additive rules that match only code without effect.
        ifr_unflagged: IFR as if these did not match.
        test_flags: what in it may have made tests pass without the code.
        scored_by: programs that computed the scores, e.g. "codetaste 0.6.0, opengrep 1.30.0"; "" if unknown.
        rules_sha256: hash of the rules that it was scored with, "" if unknown.
        notes: remarks for the reader, a line each.
    """

    status: TrialStatus
    reason: str = ""
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
    flagged_rules: int = 0
    ifr_unflagged: float | None = None
    test_flags: int = 0
    scored_by: str = ""
    rules_sha256: str = ""
    notes: tuple[str, ...] = ()

    @property
    def edited(self) -> int | None:
        """|L⁺| + |L⁻|: the number of lines that it added and removed."""
        return None if self.added is None or self.removed is None else self.added + self.removed


@dataclass(frozen=True, slots=True)
class TrialMetadata:
    """Metadata as recorded in the trial's files; "" and None are unknown.

    ``provider`` is the model's API, ``harness`` the CLI agent's name, ``source`` the program that wrote the
    files. ``finish_reason`` is a ``FinishReason`` unless another program wrote something else. ``cost_usd``
    and ``time_s`` are of all steps together; ``known_cost_usd`` is the sum of the known costs, as the
    published harness adds them up. ``turns`` counts model replies, ``refusals`` the requests that the model,
    or a policy or filter of its provider, refused. ``message`` is the agent's last message, or why it ended,
    in one line; ``interruption`` is why these are partial outputs of an interrupted execution, "" for an
    outcome.
    ``loadable`` tells whether the published harness could read the metadata.
    """

    agent_id: str = ""
    model: str = ""
    provider: str = ""
    harness: str = ""
    source: TrialSource = TrialSource.PUBLISHED
    finish_reason: str = ""
    track: str = ""
    mode: str = ""
    cost_usd: float | None = None
    known_cost_usd: float | None = None
    time_s: float | None = None
    turns: int | None = None
    tool_calls: int | None = None
    refusals: int | None = None
    message: str = ""
    interruption: str = ""
    loadable: bool = False


@dataclass(frozen=True, slots=True)
class TrialRecord:
    """One attempt of an agent at an instance, with its scores.

    Attributes:
        run: name of the run or folder that it was read from.
        agent: the agent's id, shortened and without control characters.
        track: a ``Track``; "" for the pseudo agents, which belong to every track.
        mode: a ``Mode``; "" if unknown.
        instance: the instance's id.
        repository: "owner/repo".
        language: from the benchmark, "" if unknown.
        category: from the benchmark, "" if unknown.
        attempt: from 1.
        folder: the folder with its files.
        metadata: what the trial's files say about agent, model, end, cost and time.
        scores: its outcome and its values as we count them.
        activity: what the agent did, from its transcript.
        published: None if the published harness drops this trial from every mean.
        refactorings: how its refactorings compare with the human's; None if that is unknown.
    """

    run: str
    agent: str
    track: str
    mode: str
    instance: str
    repository: str
    language: str
    category: str
    attempt: int
    folder: Path
    metadata: TrialMetadata
    scores: TrialScores
    activity: Activity | None = None
    published: PublishedScores | None = None
    refactorings: RefactoringCounts | None = None

    @property
    def pseudo(self) -> bool:
        """Whether this is the golden or the null agent."""
        return self.agent in {GOLDEN, NULL}

    @property
    def identity(self) -> TrialIdentity:
        """What identifies it within a run."""
        return TrialIdentity(self.agent, self.track, self.mode, self.instance, self.attempt)


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
    FORMAT = "format"


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
