"""Ask a model for scores until a reply is usable, a few times at most."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Generic

from codetaste.flows.mine.scoring.inputs import AGAIN_PROMPT
from codetaste.llm.messages import Message, StopReason, TextBlock
from codetaste.mining.scoring.reply import S, UnusableReply

if TYPE_CHECKING:
    from collections.abc import Callable

    from codetaste.flows.mine.scoring.context import ScoringContext
    from codetaste.llm.messages import Reply, Request
    from codetaste.mining.scoring.reply import ScoredReply
    from codetaste.orchestration.job import JobContext


@dataclass(frozen=True, slots=True)
class Question(Generic[S]):
    """A request for scores, how its reply is read, and the name of its effects in the job."""

    request: Request
    read: Callable[[str], ScoredReply[S]]
    name: str


async def ask(question: Question[S], context: ScoringContext, job: JobContext) -> ScoredReply[S]:
    """Return the first usable reply.

    Each repeated request has the first one, the last reply, and what is wrong with it.

    Raises:
        UnusableReply: there was none in ``tries`` replies.
        BudgetExceeded: the budget does not cover a call.
        ConversationTooLong: the model cannot take so much.
        ModelError: the provider stayed unusable after all retries, or refuses the request.
    """
    request, problem, tries = question.request, "", context.config.tries
    for number in range(1, tries + 1):
        name = f"{question.name}-{number}/reply"
        reply = await context.model.complete_whole(
            request, ctx=job, name=name, usable=partial(_is_usable, question)
        )
        try:
            return _read(reply, question)
        except UnusableReply as error:
            problem = str(error)
        if reply.stop is StopReason.LENGTH:
            raise UnusableReply(f"{problem}; raise mine.scoring.max_output_tokens")
        job.note(f"reply {number} of at most {tries} is not usable: {problem}")
        again = context.prompts.load(AGAIN_PROMPT).render(problem=problem)
        request = replace(question.request, messages=_messages(question.request, reply, again))
    raise UnusableReply(f"no usable reply of {tries}; the last one: {problem}")


def _is_usable(question: Question[S], text: str) -> bool:
    with suppress(UnusableReply):
        return bool(question.read(text))
    return False


def _read(reply: Reply, question: Question[S]) -> ScoredReply[S]:
    if reply.stop is StopReason.REFUSAL:
        raise UnusableReply("the model refuses to answer")
    try:
        return question.read(reply.message.text)
    except UnusableReply as error:
        if reply.stop is StopReason.LENGTH:
            cap = question.request.max_output_tokens
            raise UnusableReply(f"it does not end within {cap:,} tokens ({error})") from None
        raise


def _messages(request: Request, reply: Reply, again: str) -> tuple[Message, ...]:
    first, correction = request.messages[0], TextBlock(again)
    if reply.message.content:
        # Earlier replies are left out, which thinking does not bear.
        return first, reply.message.without_thinking(), Message("user", (correction,))
    return (replace(first, content=(*first.content, correction)),)
