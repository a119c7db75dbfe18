"""Commits with their scores, and their ranks: by message, then by message and diff (CodeTaste A.1)."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Generic

from codetaste.core.units import format_exact_usd
from codetaste.mining.filter_result import FilterResult, Stage
from codetaste.mining.funnel import Funnel
from codetaste.mining.scoring.category import Category
from codetaste.mining.scoring.reply import S, ScoredReply
from codetaste.mining.scoring.scores import DiffScores, MessageScores, diff_score, message_score, total_score

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Self

    from codetaste.mining.commit import CommitRecord
    from codetaste.mining.funnel import FunnelRow

MESSAGE_FILTER, MESSAGE_RANK_FILTER = "message scores", "message rank"
DIFF_FILTER, TOTAL_RANK_FILTER = "diff scores", "total rank"
"""The filters of stage 3."""
_DIGITS = 9
"""Scores that agree in so many decimals are equal: they differ in the rounding of sums alone."""


@dataclass(frozen=True, slots=True)
class ScoreResult(Generic[S]):
    """What came of scoring one message or diff.

    Attributes:
        reply: the scores; None if there are none.
        problem: why there are none, one line; "" otherwise.
        transient: whether another session may get them, such as after a refusal of the provider.
        cost_usd: what its calls cost, US dollars.
    """

    reply: ScoredReply[S] | None = None
    problem: str = ""
    transient: bool = False
    cost_usd: Decimal = Decimal(0)

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON data."""
        return {**asdict(self), "cost_usd": format_exact_usd(self.cost_usd)}


def score_result_from_json(data: Any, kind: type[S]) -> ScoreResult[S]:  # noqa: ANN401 - JSON
    """Read what ``ScoreResult.to_json`` returned of the scores ``kind``."""
    reply = data["reply"] and ScoredReply(
        kind(**data["reply"]["scores"]),
        data["reply"]["reasoning"],
        tuple(data["reply"]["clamped"]),
        data["reply"]["category"] and Category(data["reply"]["category"]),
    )
    return ScoreResult(reply, data["problem"], data["transient"], Decimal(data["cost_usd"]))


@dataclass(frozen=True, slots=True)
class DiffFacts:
    """What a candidate's diff shows.

    Attributes:
        base: hash of R.
        golden: hash of R∘X*.
        category: named by the model, or by words of the message.
        category_by: "model" or "words".
        language: that of most changed files; None if no changed file is code.
    """

    base: str
    golden: str
    category: Category
    category_by: str
    language: str | None

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON data."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Any) -> Self:  # noqa: ANN401 - JSON
        """Read what ``to_json`` returned."""
        return cls(**{**data, "category": Category(data["category"])})


@dataclass(frozen=True, slots=True)
class ScoredCommit:
    """A commit with what is known of its scores so far; ``diff`` is None if its diff was not scored."""

    record: CommitRecord
    message: ScoreResult[MessageScores]
    diff: ScoreResult[DiffScores] | None = None
    facts: DiffFacts | None = None

    @property
    def message_score(self) -> float | None:
        """S_msg."""
        return None if self.message.reply is None else message_score(self.message.reply.scores)

    @property
    def diff_score(self) -> float | None:
        """S_diff."""
        return None if self.diff is None or self.diff.reply is None else diff_score(self.diff.reply.scores)

    @property
    def total_score(self) -> float | None:
        """S_total."""
        message, diff = self.message_score, self.diff_score
        return None if message is None or diff is None else total_score(message, diff)


def rank_by_message(commits: Iterable[ScoredCommit]) -> list[ScoredCommit]:
    """Return the commits that have S_msg, highest first; of equal ones the first by repository and hash."""
    return _rank(commits, lambda each: each.message_score)


def rank_by_total(commits: Iterable[ScoredCommit]) -> list[ScoredCommit]:
    """Return the commits that have S_total, highest first; of equal ones the first by repository and hash."""
    return _rank(commits, lambda each: each.total_score)


def _rank(
    commits: Iterable[ScoredCommit], score: Callable[[ScoredCommit], float | None]
) -> list[ScoredCommit]:
    scored = [(-round(value, _DIGITS), each) for each in commits if (value := score(each)) is not None]
    return [each for _, each in sorted(scored, key=lambda item: (item[0], *_place(item[1].record)))]


def _place(record: CommitRecord) -> tuple[str, str]:
    """Return what decides between equal scores, as in the stages before."""
    return record.repository, record.golden


def commit_id(record: CommitRecord) -> str:
    """Return the whole name of a commit: ``OWNER/REPO@HASH``."""
    return f"{record.repository}@{record.golden}"


def scoring_results(
    commits: Sequence[ScoredCommit], top_by_message: int, top: int
) -> list[tuple[ScoredCommit, list[FilterResult]]]:
    """Return what the filters of stage 3 say of each commit, up to the first that drops it.

    Args:
        commits: all that entered the stage.
        top_by_message: as many have their diffs scored.
        top: as many become candidates.
    """
    by_message, by_total = _ranks(rank_by_message(commits)), _ranks(rank_by_total(commits))
    made: list[tuple[ScoredCommit, list[FilterResult]]] = []
    for each in commits:
        name = commit_id(each.record)
        results = [_reply_result(MESSAGE_FILTER, each.message, each.message_score)]
        if name in by_message:
            results.append(_rank_result(MESSAGE_RANK_FILTER, by_message[name], top_by_message))
        if each.diff is not None:
            results.append(_reply_result(DIFF_FILTER, each.diff, each.diff_score))
        if name in by_total:
            results.append(_rank_result(TOTAL_RANK_FILTER, by_total[name], top, each.total_score))
        made.append((each, results))
    return made


def scoring_funnel(commits: Sequence[ScoredCommit], top_by_message: int, top: int) -> tuple[FunnelRow, ...]:
    """Return the rows of stage 3 in the funnel, with what the scores cost; see ``scoring_results``."""
    funnel = Funnel()
    for commit, results in scoring_results(commits, top_by_message, top):
        funnel.add(commit.record.name, results)
        funnel.add_cost(Stage.SCORING, MESSAGE_FILTER, commit.message.cost_usd)
        if commit.diff is not None:
            funnel.add_cost(Stage.SCORING, DIFF_FILTER, commit.diff.cost_usd)
    return funnel.rows


def _ranks(ranked: Iterable[ScoredCommit]) -> dict[str, int]:
    return {commit_id(each.record): rank for rank, each in enumerate(ranked, 1)}


def _reply_result(name: str, result: ScoreResult[Any], score: float | None) -> FilterResult:
    value = "none" if score is None else f"{score:.4f}"
    return FilterResult(Stage.SCORING, name, score is not None, value, "a usable reply", result.problem)


def _rank_result(name: str, rank: int, count: int, score: float | None = None) -> FilterResult:
    value = f"{rank:,}" if score is None else f"{rank:,} with {score:.4f}"
    passed = rank <= count
    reason = "" if passed else f"not among the first {count:,}"
    return FilterResult(Stage.SCORING, name, passed, value, f"<= {count:,}", reason)
