"""``TrialRow``: the result of one trial, as the tables read it and as a run writes it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

from codetaste.benchmark.layout import attempt_name
from codetaste.swe_refactor.report.failures.classify import classify_failure
from codetaste.swe_refactor.report.outcome import NO_ANSWER, NOT_COUNTED, NoScore, outcome_of_score

if TYPE_CHECKING:
    from collections.abc import Iterable
    from decimal import Decimal

    from codetaste.swe_refactor.report.failures.category import FailureCategory
    from codetaste.swe_refactor.report.outcome import TrialOutcome
    from codetaste.swe_refactor.score.answer_score import AnswerScore


class StrategyModel(NamedTuple):
    """What is compared: a model used in one strategy."""

    strategy: str
    model: str

    @property
    def title(self) -> str:
        """Both names in one text."""
        return f"{self.strategy}, {self.model}"


class TrialKey(NamedTuple):
    """What identifies a trial within a run."""

    strategy: str
    model: str
    instance: str
    attempt: int

    @property
    def name(self) -> str:
        """The part that the keys of its jobs share."""
        names = self.strategy, self.model, self.instance
        return "/".join(names if self.attempt == 1 else (*names, attempt_name(self.attempt)))

    @property
    def answer_key(self) -> str:
        """The key of the job that gets the answer."""
        return f"answer/{self.name}"

    def __str__(self) -> str:
        """Return it as a text for messages."""
        return f"{self.strategy}, {self.model}, {self.instance}, attempt {self.attempt}"


@dataclass(frozen=True, slots=True)
class TrialRow:
    """One attempt of a model, in one strategy, at one instance.

    Make it without verdicts, with the ``outcome`` of a trial that has no score, or add those of a score by
    ``with_score``.

    Attributes:
        strategy: the name of the strategy in the config, such as "rag".
        model: the name of the model in the config; of a command-line agent the agent's.
        instance: the instance's unique id.
        project: the name of its project.
        type: its refactoring type, such as "Extract Method".
        attempt: the number of the attempt, from 1.
        outcome: how it ended.
        compiles_and_passes: whether the answer compiles and no test fails because of it (§3.2, 1).
        verified: whether it is the intended refactoring on the intended method, and nothing else (§3.2, 2).
        published_check: whether the type occurs in the edited files, which is all that is published.
        codebleu: the similarity to the developers' code in 0..1 (§3.2, 3); None if it was not measured.
        cost_usd: what the model's calls cost; None if that is unknown.
        turns: number of the model's replies; None if it is unknown.
        wall_s: seconds from the first prompt to the answer; None if they are unknown.
        failure: why it is no success; None if that is to be read from ``outcome``.
        run: the name of its run.
        model_label: the display name of the model.
        scripted: whether the model is scripted, so that its costs are not real.
        detail: why it ended like that, in one line; "" if ``outcome`` says all.
        score: all metrics; None without an answer that was judged.
    """

    strategy: str
    model: str
    instance: str
    project: str
    type: str
    attempt: int
    outcome: TrialOutcome = NoScore.NOT_RUN
    compiles_and_passes: bool = False
    verified: bool = False
    published_check: bool = False
    codebleu: float | None = None
    cost_usd: Decimal | None = None
    turns: int | None = None
    wall_s: float | None = None
    failure: FailureCategory | None = None
    run: str = ""
    model_label: str = ""
    scripted: bool = False
    detail: str = ""
    score: AnswerScore | None = field(default=None, repr=False, compare=False)

    @property
    def key(self) -> TrialKey:
        """What identifies it within its run."""
        return TrialKey(self.strategy, self.model, self.instance, self.attempt)

    @property
    def by(self) -> StrategyModel:
        """The strategy and the model."""
        return StrategyModel(self.strategy, self.model)

    @property
    def success(self) -> bool:
        """Whether it compiles, passes the tests and is verified (§4.1)."""
        return self.compiles_and_passes and self.verified

    @property
    def counted(self) -> bool:
        """Whether it is a success or a failure: no tool, provider or machine failed, and it was judged."""
        return self.outcome not in NOT_COUNTED

    @property
    def similarity(self) -> float | None:
        """CodeBLEU as it is averaged: 0 of a trial without an answer."""
        return 0.0 if self.outcome in NO_ANSWER else self.codebleu

    def with_score(self, score: AnswerScore, code: str = "") -> TrialRow:
        """Return the row with the verdicts of a score.

        Args:
            score: the metrics of the answer.
            code: the methods that the answer has for the refactoring, to find those that do nothing.
        """
        verdicts = verdicts_of(score)
        log = "" if score.tests is None else score.tests.log
        failed = not score.is_success and verdicts.outcome not in NOT_COUNTED
        return replace(
            self,
            **verdicts._asdict(),
            failure=classify_failure(verdicts.outcome, log, code) if failed else None,
            detail=self.detail or _detail(score),
            score=score,
        )


class Verdicts(NamedTuple):
    """Those fields of a row that follow from the score of its answer."""

    outcome: TrialOutcome
    compiles_and_passes: bool
    verified: bool
    published_check: bool
    codebleu: float | None


def verdicts_of(score: AnswerScore) -> Verdicts:
    """Return the verdicts of a score. CodeBLEU is 0 of an unusable answer, None of code that is too large."""
    measured = None if score.codebleu is None else score.codebleu.score
    if measured is None and score.problem is not None:
        measured = 0.0
    return Verdicts(outcome_of_score(score), score.passes, score.is_verified, score.published_check, measured)


def _detail(score: AnswerScore) -> str:
    if score.problem is not None:
        return score.problem.sentence
    if score.tests is not None and score.tests.detail:
        return score.tests.detail
    return "" if score.check is None else score.check.detail


def group_rows(rows: Iterable[TrialRow]) -> dict[StrategyModel, list[TrialRow]]:
    """Return the counted rows of each strategy and model, those with the greatest share of successes first.

    Strategies stay together, in the order of their best model. One without a counted row has an empty list.
    """
    groups: dict[StrategyModel, list[TrialRow]] = {}
    for row in rows:
        group = groups.setdefault(row.by, [])
        if row.counted:
            group.append(row)
    shares = {by: success_share(each) for by, each in groups.items()}
    best: dict[str, float] = {}
    for by, share in shares.items():
        best[by.strategy] = max(share, best.get(by.strategy, -1.0))
    order = sorted(groups, key=lambda by: (-best[by.strategy], by.strategy, -shares[by], by.model))
    return {by: groups[by] for by in order}


def success_share(rows: list[TrialRow]) -> float:
    """Return the share of successes in 0..1; -1 without rows, so that these come last."""
    return sum(row.success for row in rows) / len(rows) if rows else -1.0
