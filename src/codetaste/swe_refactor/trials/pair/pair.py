"""A developer that answers, and a reviewer that asks for a better answer: ``multi-agent`` (Appendix G).

The developer's conversation goes on through all rounds; a review is a conversation of its own. Replies and
evidence are effects of the job, so that a trial that was killed goes on where it was.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from anyio import to_thread

from codetaste.agent.loop import AgentState, LoopEnd, LoopSettings, run_loop
from codetaste.errors import BudgetExceeded, DeadlineExceeded
from codetaste.flows.agents.transcript import write_transcript
from codetaste.llm.messages import Message, TextBlock
from codetaste.orchestration.shortfall import Shortfall
from codetaste.swe_refactor.answers.answer_format import PARTS
from codetaste.swe_refactor.answers.problem import AnswerProblem
from codetaste.swe_refactor.answers.problem import AnswerProblemKind as Kind
from codetaste.swe_refactor.answers.prompt import render_prompt
from codetaste.swe_refactor.trials.answer import TrialAnswer
from codetaste.swe_refactor.trials.conversation import apply_text
from codetaste.swe_refactor.trials.pair.evidence import Evidence, gather_evidence
from codetaste.swe_refactor.trials.pair.inputs import DEVELOPER, FEEDBACK, REVIEW, REVIEWER
from codetaste.swe_refactor.trials.pair.review import REVIEWER_TOOLS, AnswerReview, ReviewContext, review_of
from codetaste.swe_refactor.trials.pair.round import PairRound, replies_of
from codetaste.swe_refactor.trials.pair.tools import DEVELOPER_TOOLS, DeveloperContext

if TYPE_CHECKING:
    from codetaste.orchestration.job import JobContext
    from codetaste.swe_refactor.trials.context import TrialContext
    from codetaste.swe_refactor.trials.plan import StrategyTrial

ACCEPTED, ROUNDS = "accepted", "rounds"
"""Why a pair ended, beside the ends of the developer's loop: the reviewer accepts, or no round is left."""
_PROBLEMS = {LoopEnd.REFUSED: Kind.REFUSED, LoopEnd.CONTEXT_FULL: Kind.PROMPT_TOO_LONG}
"""Of a developer that ends without any answer; of all other ends NO_ANSWER."""


@dataclass(slots=True)
class _Pair:
    """The work so far; valid also after it was cancelled."""

    trial: StrategyTrial
    context: TrialContext
    job: JobContext
    developer: LoopSettings
    state: AgentState
    rounds: list[PairRound] = field(default_factory=list)
    reviews: list[tuple[LoopSettings, AgentState]] = field(default_factory=list)
    end: str = ""
    end_text: str = ""

    @property
    def reviewer_id(self) -> str:
        return self.trial.strategy.reviewer or self.trial.model_id


async def answer_by_pair(trial: StrategyTrial, context: TrialContext, job: JobContext) -> TrialAnswer:
    """Let a developer and a reviewer work on an instance, and return the last answer that can be used.

    They end when the reviewer accepts an answer that no tool rejects, when no round is left, when the
    developer gives no answer in its turns, or at a limit of money or time.

    Raises:
        ModelError: a provider stayed unusable after all retries.
        BaseFails: the files before cannot be built.
        SandboxError: no sandbox can be opened, or the engine failed.
        StorageFull: no space left.
    """
    began_s = time.monotonic()
    pair = await _open(trial, context, job)
    try:
        with job.budget.deadline() as scope:
            await _work(pair)
        if scope.cancelled_caught:
            pair.end = LoopEnd.TIMEOUT
    finally:
        with job.cleanup_scope():
            await _write_transcripts(pair)
    _report_end(pair)
    return _result(pair, time.monotonic() - began_s)


async def _open(trial: StrategyTrial, context: TrialContext, job: JobContext) -> _Pair:
    """Return a pair whose developer has the task: the prompt of the instance, without examples."""
    instance, tree = trial.instance, context.source(trial.instance).tree
    java_files = await to_thread.run_sync(lambda: () if instance.structure else tree.java_files)
    messages = await to_thread.run_sync(render_prompt, instance, context.prompts, (), java_files)
    settings = LoopSettings(
        system=context.prompts.load(DEVELOPER).render(),
        task=messages[0].text,
        tools=DEVELOPER_TOOLS,
        max_turns=trial.strategy.max_turns,
        max_output_tokens=trial.strategy.max_output_tokens,
        context_window=context.models.models[trial.model_id].context_window,
        finishes_without_tool_call=True,
    )
    return _Pair(trial, context, job, settings, AgentState(settings.first_messages()))


async def _work(pair: _Pair) -> None:
    """Run rounds until one ends the work; ``pair.end`` says why."""
    instance, tree = pair.trial.instance, pair.context.source(pair.trial.instance).tree
    for number in range(1, pair.trial.strategy.rounds + 1):
        text = await _develop(pair, number)
        if text is None:
            return
        this = PairRound(number, text, await to_thread.run_sync(apply_text, text, instance, tree))
        pair.rounds.append(this)
        if number == pair.trial.strategy.rounds:
            pair.end = ROUNDS
            return
        this.evidence = await _gather(pair, this)
        if not await _review(pair, this, this.evidence):
            return
        accepted = this.review.accepted if this.review else this.evidence.is_good
        if accepted and this.evidence.is_good:
            pair.end = ACCEPTED
            return
        pair.state.add(_feedback(pair, this.review, this.evidence))


async def _develop(pair: _Pair, number: int) -> str | None:
    """Return the developer's next answer; None if its loop ended without one."""
    context, instance = pair.context, pair.trial.instance
    assert context.pair is not None  # noqa: S101 - opened for this strategy
    source = context.source(instance)
    tools = DeveloperContext(
        source.tree, partial(context.pair.indexes.open, source, instance.file_path_before)
    )
    pair.state.turns = 0
    settings = replace(pair.developer, effect_prefix=f"round-{number}/developer/")
    end = await run_loop(settings, context.models.models[pair.trial.model_id], tools, pair.job, pair.state)
    if end is LoopEnd.FINISHED:
        return pair.state.messages[-1].text
    pair.end, pair.end_text = end, pair.state.end_text
    return None


async def _gather(pair: _Pair, this: PairRound) -> Evidence:
    async def gather() -> Any:  # noqa: ANN401 - JSON
        evidence = await gather_evidence(pair.trial.instance, this.applied, pair.context, pair.job)
        bad = ", ".join(each.tool for each in evidence.bad)
        pair.job.note(f"answer {this.number}: {f'rejected by {bad}' if bad else 'no tool rejects it'}")
        return evidence.to_json()

    data: Any = await pair.job.effect(f"round-{this.number}/evidence", gather)
    return Evidence.from_json(data)


async def _review(pair: _Pair, this: PairRound, evidence: Evidence) -> bool:
    """Put the review into the round; return False if the budget ended it."""
    context, strategy = pair.context, pair.trial.strategy
    model = context.models.models[pair.reviewer_id]
    earlier = [text for each in pair.rounds if each.review for text in each.review.comments]
    task = context.prompts.load(REVIEW).render(
        task=pair.developer.task,
        answer=this.text,
        round=this.number,
        earlier=earlier,
        findings=evidence.findings,
    )
    settings = LoopSettings(
        system=context.prompts.load(REVIEWER).render(),
        task=task,
        tools=REVIEWER_TOOLS,
        max_turns=strategy.max_turns,
        max_output_tokens=strategy.max_output_tokens,
        context_window=model.context_window,
        finishes_without_tool_call=True,
        effect_prefix=f"round-{this.number}/reviewer/",
    )
    state, tools = AgentState(settings.first_messages()), ReviewContext()
    pair.reviews.append((settings, state))
    end = await run_loop(settings, model, tools, pair.job, state)
    this.review = review_of(state, tools)
    if end is LoopEnd.BUDGET_EXCEEDED:
        pair.end, pair.end_text = end, state.end_text
        return False
    verdict = "gives no review" if this.review is None else "accepts" if this.review.accepted else "objects"
    pair.job.note(f"answer {this.number}: the reviewer {verdict}")
    return True


def _feedback(pair: _Pair, review: AnswerReview | None, evidence: Evidence) -> Message:
    text = pair.context.prompts.load(FEEDBACK).render(
        accepted=review is not None and review.accepted,
        comments=review.comments if review else (),
        findings=evidence.bad,
        parts=[str(name) for name in PARTS[pair.trial.instance.type]],
    )
    return Message("user", (TextBlock(text),))


async def _write_transcripts(pair: _Pair) -> None:
    """Write the developer's conversation, and one file for each review."""
    out, key = pair.context.out, pair.job.key
    await write_transcript(out, f"{key}.developer", pair.trial.model_label, pair.developer, pair.state)
    for number, (settings, state) in enumerate(pair.reviews, 1):
        await write_transcript(out, f"{key}.review-{number}", pair.reviewer_id, settings, state)


def _report_end(pair: _Pair) -> None:
    job, after = pair.job, f"after {len(pair.rounds)} answers"
    if pair.end == LoopEnd.TIMEOUT:
        job.end_early(DeadlineExceeded(f"the time limit was reached {after}"))
    elif pair.end == LoopEnd.BUDGET_EXCEEDED:
        job.end_early(BudgetExceeded(f"no money {after}: {pair.end_text}"))
    elif pair.end not in {ACCEPTED, ROUNDS}:
        end = LoopEnd(pair.end)
        job.fall_short(Shortfall(end.value, f"the developer ended {after}: {pair.end_text}", end.by_limit))


def _result(pair: _Pair, wall_s: float) -> TrialAnswer:
    usable = [each for each in pair.rounds if each.applied.problem is None]
    chosen = (usable or pair.rounds)[-1] if pair.rounds else None
    problem = chosen.applied.problem if chosen else None
    if chosen is None:
        kind = _PROBLEMS.get(LoopEnd(pair.end), Kind.NO_ANSWER)
        problem = AnswerProblem(kind, pair.end_text or f"The developer gave no answer: {pair.end}.")
    states = [pair.state, *(state for _, state in pair.reviews)]
    return TrialAnswer(
        chosen.applied.files if chosen else {},
        problem,
        chosen.text if chosen else "",
        sum(map(replies_of, states)),
        wall_s,
        {
            "ended": str(pair.end),
            "reviewer": pair.reviewer_id,
            "answer_of_round": chosen.number if chosen else None,
            "rounds": [each.to_json() for each in pair.rounds],
        },
    )
