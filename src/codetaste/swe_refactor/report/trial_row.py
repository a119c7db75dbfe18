"""``TrialRow``: the result of one trial, as the tables read it. The evaluation writes the rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable
    from decimal import Decimal

    from codetaste.swe_refactor.report.failures.category import FailureCategory


class StrategyModel(NamedTuple):
    """What is compared: a model used in one strategy."""

    strategy: str
    model: str

    @property
    def title(self) -> str:
        """Both names in one text."""
        return f"{self.strategy}, {self.model}"


@dataclass(frozen=True, slots=True)
class TrialRow:
    """One attempt of a model, in one strategy, at one instance.

    Attributes:
        strategy: the name of the strategy in the config, such as "rag".
        model: the name of the model in the config; of a command-line agent the agent's.
        instance: the instance's unique id.
        project: the name of its project.
        type: its refactoring type, such as "Extract Method".
        attempt: the number of the attempt, from 1.
        outcome: the recorded name of how it ended.
        compiles_and_passes: whether the answer compiles and no test fails because of it (§3.2, 1).
        verified: whether it is the intended refactoring on the intended method, and nothing else (§3.2, 2).
        published_check: whether the type occurs in the edited files, which is all that is published.
        codebleu: the similarity to the developers' code in 0..1 (§3.2, 3); None if it was not measured.
        cost_usd: what the model's calls cost; None if that is unknown.
        turns: number of the model's replies; None if it is unknown.
        wall_s: seconds from the first prompt to the scores.
        failure: why it is no success; None if that is to be read from ``outcome``.
    """

    strategy: str
    model: str
    instance: str
    project: str
    type: str
    attempt: int
    outcome: str
    compiles_and_passes: bool
    verified: bool
    published_check: bool
    codebleu: float | None
    cost_usd: Decimal | None
    turns: int | None
    wall_s: float
    failure: FailureCategory | None = None

    @property
    def success(self) -> bool:
        """Whether it compiles, passes the tests and is verified (§4.1)."""
        return self.compiles_and_passes and self.verified

    @property
    def by(self) -> StrategyModel:
        """The strategy and the model."""
        return StrategyModel(self.strategy, self.model)


def group_rows(rows: Iterable[TrialRow]) -> dict[StrategyModel, list[TrialRow]]:
    """Return the rows of each strategy and model, those with the greatest share of successes first.

    Strategies stay together, in the order of their best model.
    """
    groups: dict[StrategyModel, list[TrialRow]] = {}
    for row in rows:
        groups.setdefault(row.by, []).append(row)
    shares = {by: sum(row.success for row in each) / len(each) for by, each in groups.items()}
    best: dict[str, float] = {}
    for by, share in shares.items():
        best[by.strategy] = max(share, best.get(by.strategy, 0.0))
    order = sorted(groups, key=lambda by: (-best[by.strategy], by.strategy, -shares[by], by.model))
    return {by: groups[by] for by in order}
