"""What case studies are: claims about trials with their evidence, and the failure labels of CodeTaste §4.4.

The texts are those of an agent that has read untrusted files: they are shown as text and never executed.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal  # noqa: TC003 - pydantic reads the annotations
from enum import StrEnum
from pathlib import Path  # noqa: TC003 - pydantic reads the annotations


class FailureLabel(StrEnum):
    """What is wrong with a patch that does not do what its task asks for (CodeTaste §4.4, a to d)."""

    SALIENT_EDIT = "salient_edit"
    """It changes something that catches the eye, such as a misspelt name, and leaves the task aside."""
    SHIM = "shim"
    """It makes the old code go on working by a layer in between, and does not change it."""
    DESTRUCTIVE_REPLACE = "destructive_replace"
    """It replaces text all over the repository and leaves the code broken or inconsistent."""
    OTHER_PART = "other_part"
    """It works on another part of the system."""
    NONE = "none"
    """None of them: it does what the task asks for, or fails in another way."""
    UNSURE = "unsure"
    """The evidence does not decide."""

    @property
    def words(self) -> str:
        """The label in words."""
        return _WORDS[self]


_WORDS = {
    FailureLabel.SALIENT_EDIT: "salient but irrelevant edit",
    FailureLabel.SHIM: "shim instead of the change",
    FailureLabel.DESTRUCTIVE_REPLACE: "destructive replacement",
    FailureLabel.OTHER_PART: "another part of the system",
    FailureLabel.NONE: "none of the failure labels",
    FailureLabel.UNSURE: "unsure",
}


@dataclass(frozen=True, slots=True)
class CommandEvidence:
    """A command that the agent ran, and what it quotes of its output.

    ``problem`` says why it proves nothing: this command was not run, or did not print this. It is "" for
    evidence that was verified in the transcript of the agent's own sandbox.
    """

    command: str
    excerpt: str
    problem: str = ""

    @property
    def verified(self) -> bool:
        """Whether the agent's sandbox ran this command and it printed the excerpt."""
        return not self.problem


@dataclass(frozen=True, slots=True)
class Claim:
    """A statement about a trial, and its evidence."""

    text: str
    evidence: tuple[CommandEvidence, ...] = ()

    @property
    def verified(self) -> bool:
        """Whether it has evidence, and all of it was verified."""
        return bool(self.evidence) and all(each.verified for each in self.evidence)


@dataclass(frozen=True, slots=True)
class StudyOrigin:
    """Which trials a study is about, and who made it.

    Attributes:
        instance: id of the instance.
        track: of the trials; "swe-refactor" for those of SWE-Refactor.
        mode: of the trials; "" for those of SWE-Refactor.
        by: id of the agent that made it.
        model: display name of its model.
        cost_usd: US dollars of the agent's run; None is unknown.
        finished_at: when, UTC, ISO 8601.
    """

    instance: str
    track: str
    mode: str
    by: str
    model: str = ""
    cost_usd: Decimal | None = None
    finished_at: str = ""


@dataclass(frozen=True, slots=True)
class TrialAssessment:
    """What a study says of one trial: one or two paragraphs, and claims with their evidence.

    ``agent`` is ``STRATEGY/MODEL`` of a trial of SWE-Refactor.
    """

    agent: str
    attempt: int
    text: str
    claims: tuple[Claim, ...] = ()


@dataclass(frozen=True, slots=True)
class CaseStudy:
    """The comparison of the trials of one instance, track and mode with the golden patch.

    ``path`` is the report as Markdown; its data is beside it, with the same name and the suffix ``.json``.
    """

    path: Path
    origin: StudyOrigin
    summary: str
    trials: tuple[TrialAssessment, ...]

    @property
    def claims(self) -> list[Claim]:
        """The claims about all trials."""
        return [claim for trial in self.trials for claim in trial.claims]


@dataclass(frozen=True, slots=True)
class TrialLabel:
    """The failure label of one trial, with the reason and its evidence; ``path`` is its JSON file."""

    path: Path
    origin: StudyOrigin
    agent: str
    attempt: int
    label: FailureLabel
    reason: str
    evidence: tuple[CommandEvidence, ...] = ()

    @property
    def verified(self) -> bool:
        """Whether it has evidence, and all of it was verified."""
        return bool(self.evidence) and all(each.verified for each in self.evidence)
