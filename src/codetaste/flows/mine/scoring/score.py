"""Score one message or one diff. A commit without usable scores gets a result that says why."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from anyio import to_thread

from codetaste.errors import Cause, ConversationTooLong, MalformedReply, ModelRefused, SourceError
from codetaste.flows.mine.scoring.ask import Question, ask
from codetaste.flows.mine.scoring.inputs import diff_request, message_request
from codetaste.mining.scoring.candidate import DiffFacts, ScoreResult
from codetaste.mining.scoring.category import category_of_message
from codetaste.mining.scoring.diff_cut import MIN_CHARS, cut_diff
from codetaste.mining.scoring.reply import UnusableReply, read_diff_reply, read_message_reply
from codetaste.orchestration.shortfall import Shortfall
from codetaste.source.languages import main_language

if TYPE_CHECKING:
    from decimal import Decimal

    from codetaste.errors import CodetasteError
    from codetaste.flows.mine.scoring.context import ScoringContext, ScoringTask
    from codetaste.mining.prefilter.diff import CommitDiff
    from codetaste.mining.scoring.reply import ScoredReply
    from codetaste.mining.scoring.scores import DiffScores
    from codetaste.orchestration.job import JobContext
    from codetaste.orchestration.journal.journal import Json

TRIES = "tries"
"""The job's limit that ends it without scores."""
_DROPPING = (UnusableReply, ModelRefused, MalformedReply, SourceError)
"""Errors about one commit. Others, such as an unreachable provider, fail the job until the next session."""


async def score_message(task: ScoringTask, context: ScoringContext, job: JobContext) -> Json:
    """Return the result of scoring a message, as JSON.

    Raises:
        ModelError: the provider stayed unusable after all retries.
    """
    if not task.record.text.strip():
        return _drop(UnusableReply("the message is empty"), job)
    question = Question(message_request(task.record, context), read_message_reply, "message")
    try:
        reply = await ask(question, context, job)
    except _DROPPING as error:
        return _drop(error, job)
    return ScoreResult(reply, cost_usd=_cost_usd(job)).to_json()


async def score_diff(task: ScoringTask, context: ScoringContext, job: JobContext) -> Json:
    """Return the result of scoring a diff, and the facts about it, as JSON.

    Raises:
        ModelError: the provider stayed unusable after all retries.
    """
    try:
        diff = await context.load_diff(task.record)
        reply = await _ask_about(diff, context, job)
    except _DROPPING as error:
        return {"result": _drop(error, job), "facts": None}
    facts = DiffFacts(
        base=diff.base,
        golden=diff.golden,
        category=reply.category or category_of_message(task.record.text),
        category_by="words" if reply.category is None else "model",
        language=main_language(file.path for file in diff.files),
    )
    return {"result": ScoreResult(reply, cost_usd=_cost_usd(job)).to_json(), "facts": facts.to_json()}


async def _ask_about(diff: CommitDiff, context: ScoringContext, job: JobContext) -> ScoredReply[DiffScores]:
    """Ask with fewer characters of the diff, each time half as many, until the model can take them.

    Raises:
        ConversationTooLong: it cannot take the fewest.
    """
    text = (await to_thread.run_sync(lambda: diff.context_free_diff)).decode("utf-8", "replace")
    chars = context.config.diff_chars
    while True:
        too_long = f"diff-{chars}/too-long"
        if not job.is_recorded(too_long):
            short = await to_thread.run_sync(cut_diff, text, chars)
            question = Question(diff_request(short, context), read_diff_reply, f"diff-{chars}")
            try:
                return await ask(question, context, job)
            except ConversationTooLong as error:
                if chars // 2 < MIN_CHARS:
                    raise
                job.note(f"{error}; the diff is cut to {chars // 2:,} characters")
                await job.record(too_long, True)  # noqa: FBT003
        chars //= 2


def _drop(error: CodetasteError, job: JobContext) -> Json:
    """Return the result of a commit without scores; a refusal or a lost source may end with the session."""
    if error.cause is Cause.SETUP:
        raise error
    problem = "; ".join(str(error).splitlines())
    transient = not isinstance(error, UnusableReply | ConversationTooLong)
    if isinstance(error, UnusableReply):
        job.limit_reached(TRIES)
    if transient:
        job.fall_short(Shortfall(error.cause.value, problem, transient=True))
    job.note(f"dropped: {problem}")
    result: ScoreResult[Any] = ScoreResult(None, problem, transient, _cost_usd(job))
    return result.to_json()


def _cost_usd(job: JobContext) -> Decimal:
    return job.budget.snapshot().spent.usd
