"""Asking a model for a text of a required form: a reply that is not of it is answered with its problems."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from anyio import to_thread

from codetaste.agent.loop import CUT_OFF_MESSAGE, AgentState, LoopSettings
from codetaste.agent.shorten import ContextWindow
from codetaste.errors import ConversationTooLong, MalformedReply
from codetaste.flows.describe.reply import ReadReply
from codetaste.llm.messages import Message, StopReason, TextBlock
from codetaste.orchestration.retry import mark_given_up

if TYPE_CHECKING:
    from collections.abc import Callable

    from codetaste.llm.messages import Reply
    from codetaste.llm.metering.metered import MeteredModel
    from codetaste.llm.prompts import Prompt
    from codetaste.orchestration.job import JobContext

_MAX_SHOWN_PROBLEMS = 3
MIN_MATERIAL_CHARS = 2000
"""Material is not cut to fewer characters, however small the model's context window is."""


@dataclass(frozen=True, slots=True)
class TextQuestion:
    """What a model is asked for.

    Attributes:
        what: the name of the wanted text in messages.
        settings: returns the prompts with so many characters of material; blocking.
        chars: of the material; fewer if the model's context window is too small.
        read: reads a reply.
        again: the prompt after an unusable reply; it is given ``problems`` and ``what``.
        tries: replies at most.
    """

    what: str
    settings: Callable[[int], LoopSettings]
    chars: int
    read: Callable[[str], ReadReply]
    again: Prompt
    tries: int


@dataclass(slots=True)
class Conversation:
    """The conversation about a question; valid also after it was cancelled."""

    question: TextQuestion
    settings: LoopSettings
    state: AgentState

    @classmethod
    async def begin(cls, question: TextQuestion) -> Conversation:
        """Return the conversation before its first request."""
        settings = await to_thread.run_sync(question.settings, question.chars)
        return cls(question, settings, AgentState(settings.first_messages()))

    async def run(self, model: MeteredModel, job: JobContext) -> str:
        """Ask until a reply is usable, and return the text that it has.

        Raises:
            MalformedReply: no reply was usable; it names what was wrong with the last one.
            BudgetExceeded: the next call does not fit into the budget.
            ModelError: the provider stayed unusable after all retries.
        """
        state, answer = self.state, ReadReply()
        while state.turns < self.question.tries:
            state.turns += 1
            reply = await self._ask(model, job)
            if reply.message.content:
                state.add(reply.message)
            answer = self._read(reply)
            if answer.text:
                return answer.text
            if reply.stop is StopReason.LENGTH:
                break
            job.note(f"reply {state.turns} is no usable {self.question.what}: {_shown(answer.problems)}")
            again = self.question.again.render(problems=list(answer.problems), what=self.question.what)
            state.add(Message("user", (TextBlock(again),)))
        raise mark_given_up(
            MalformedReply(
                f"no usable {self.question.what} in {state.turns} replies; the last one: "
                f"{_shown(answer.problems)}"
            )
        )

    def _read(self, reply: Reply) -> ReadReply:
        if reply.stop is StopReason.REFUSAL:
            return ReadReply(problems=("the model refuses",))
        if reply.stop is StopReason.LENGTH:
            return ReadReply(problems=(CUT_OFF_MESSAGE.format(limit=self.settings.max_output_tokens),))
        return self.question.read(reply.message.text)

    async def _ask(self, model: MeteredModel, job: JobContext) -> Reply:
        """Return the next reply; if the model cannot take so much, the material is cut to half, repeatedly.

        Raises:
            ConversationTooLong: it cannot take the shortest material either.
        """
        chars, window, cuts = self.question.chars, ContextWindow(model.context_window), 0
        while True:
            name, effect = f"reply-{self.state.turns}", f"cut-{cuts + 1}"
            request = self.settings.build_request(self.state.conversation)
            if not job.is_recorded(effect):
                try:
                    if (
                        job.is_recorded(name)
                        or not window.excess_bytes(request)
                        or chars <= MIN_MATERIAL_CHARS
                    ):
                        return await model.complete_whole(request, ctx=job, name=name)
                except ConversationTooLong:
                    if chars <= MIN_MATERIAL_CHARS:
                        raise
                await job.record(effect, max(MIN_MATERIAL_CHARS, chars // 2))
            chars, cuts = int(str(job.recorded(effect))), cuts + 1
            self.settings = await to_thread.run_sync(self.question.settings, chars)
            first, later = self.settings.first_messages(), self.state.conversation[1:]
            self.state.messages[0] = first[0]
            self.state.conversation = [*first, *(message.without_thinking() for message in later)]


def _shown(problems: tuple[str, ...]) -> str:
    more = len(problems) - _MAX_SHOWN_PROBLEMS
    return "; ".join([*problems[:_MAX_SHOWN_PROBLEMS], *([f"and {more} more"] if more > 0 else [])])
