"""Description jobs: for each instance, the instructed description and the open one (CodeTaste §3.2).

The instructed description is made of what people wrote about the change and of the golden patch. The open one
is made of the instructed one alone, and is checked for what it gives away of the golden patch. Each is a job
with replies that are paid and journalled once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from anyio import to_thread

from codetaste.agent.loop import LoopSettings
from codetaste.agent.tool import truncate
from codetaste.benchmark.layout import Track
from codetaste.core.files import write_atomically
from codetaste.errors import DeadlineExceeded, SourceError
from codetaste.evaluation.pseudo_agents import golden_patch
from codetaste.flows.agents.transcript import write_transcript
from codetaste.flows.describe.change import ChangeTexts, complete_change
from codetaste.flows.describe.conversation import MIN_MATERIAL_CHARS, Conversation, TextQuestion
from codetaste.flows.describe.inputs import description_inputs
from codetaste.flows.describe.leak_check.leaks import find_leaks
from codetaste.flows.describe.leak_check.patch_names import read_patch_names
from codetaste.flows.describe.leak_check.words import read_vocabulary
from codetaste.flows.describe.publish import published_path
from codetaste.flows.describe.reply import ReadReply, read_description, read_sentence
from codetaste.flows.describe.result import DescriptionResult, take_descriptions
from codetaste.flows.describe.reviews import text_digest
from codetaste.flows.inputs import digest_of_inputs, digests_of_inputs
from codetaste.flows.sources import SOURCES, sources_handler, sources_job
from codetaste.mining.scoring.diff_cut import cut_diff
from codetaste.orchestration.budget.cost import BudgetLimits, BudgetPath, NamedLimits
from codetaste.orchestration.job import Job
from codetaste.orchestration.journal.results import result_to_json
from codetaste.source.checkout import checkout_trees

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from codetaste.flows.describe.context import DescriptionContext
    from codetaste.flows.describe.plan import DescriptionTask
    from codetaste.llm.messages import Request
    from codetaste.orchestration.job import Handler, JobContext
    from codetaste.orchestration.journal.journal import Json
    from codetaste.source.checkout import Trees

DESCRIBE = "describe"
"""The kind of the jobs."""
_MAX_TEXT_CHARS = 8000
"""Of a message, and of the text of a pull request or an issue."""
_MAX_DISCUSSIONS = 5
"""Pull requests in a prompt, and issues."""


def description_jobs(
    tasks: Iterable[DescriptionTask], context: DescriptionContext, budget: BudgetPath
) -> list[Job]:
    """Return the jobs of ``tasks``, and one job for the sources of each instance, under ``budget``."""
    made: dict[str, Job] = {}
    limits = BudgetLimits(usd=context.config.budget_usd, working_s=context.config.time_limit)
    for task in tasks:
        sources = sources_job(task.instance, budget)
        made.setdefault(sources.key, sources)
        made[task.key] = _description_job(task, context, (*budget, NamedLimits(task.instance.id, limits)))
    return list(made.values())


def description_handlers(context: DescriptionContext) -> dict[str, Handler]:
    """Return what runs the jobs of ``description_jobs``, by kind."""
    return {
        SOURCES: sources_handler(context.benchmark, context.cache),
        DESCRIBE: lambda job, run: _describe(job.parameters, context, run),
    }


def _description_job(task: DescriptionTask, context: DescriptionContext, budget: BudgetPath) -> Job:
    inputs = description_inputs(task, context.source, context.config)
    return Job(
        task.key,
        DESCRIBE,
        budget,
        fingerprint=digest_of_inputs(inputs),
        inputs=digests_of_inputs(inputs),
        parameters=task,
        needs=task.needs,
        lane=task.model_label,
        title=task.title,
        group=task.group,
        min_cost=context.models.models[task.model_id].min_cost(_least_request(task, context)),
    )


def _least_request(task: DescriptionTask, context: DescriptionContext) -> Request:
    """Return a request without material, which costs less than any that will be made."""
    if task.track is Track.OPEN:
        settings = _open_settings(task, context)
    else:
        settings = _instructed_settings(task, context, ChangeTexts(), "")
    return settings.build_request(settings.first_messages())


def _instructed_settings(
    task: DescriptionTask, context: DescriptionContext, change: ChangeTexts, diff: str
) -> LoopSettings:
    prompt = context.prompts.load("describe_instructed").render(
        language=task.instance.language,
        message=truncate(change.message or "", _MAX_TEXT_CHARS),
        pull_requests=[each.cut(_MAX_TEXT_CHARS) for each in change.pull_requests[:_MAX_DISCUSSIONS]],
        issues=[each.cut(_MAX_TEXT_CHARS) for each in change.issues[:_MAX_DISCUSSIONS]],
        diff=diff,
        comments=_comments(task),
    )
    system = context.prompts.load("describe_instructed_system").render()
    return LoopSettings(system, prompt, (), max_output_tokens=context.config.max_output_tokens)


def _open_settings(task: DescriptionTask, context: DescriptionContext) -> LoopSettings:
    prompt = context.prompts.load("describe_open").render(
        description=context.benchmark.description(task.instance), comments=_comments(task)
    )
    system = context.prompts.load("describe_open_system").render(chars=context.config.max_open_chars)
    return LoopSettings(system, prompt, (), max_output_tokens=context.config.max_output_tokens)


def _comments(task: DescriptionTask) -> list[str]:
    return [each.comment for each in task.rejections if each.comment]


async def _describe(task: DescriptionTask, context: DescriptionContext, job: JobContext) -> Json:
    """Let the model write one description, and return the job's value.

    Raises:
        MalformedReply: none of its replies was usable.
        BudgetExceeded: the budget was used up.
        DeadlineExceeded: the time limit was reached.
        SourceError: trees, patch or message cannot be read.
    """
    await take_descriptions(task.instance, context.benchmark, job)
    trees = await checkout_trees(context.benchmark.origin(task.instance), context.cache)
    patch = await golden_patch(context.benchmark, task.instance, trees, context.cache)
    asks = _ask_instructed if task.track is Track.INSTRUCTED else _ask_open
    conversation = await Conversation.begin(await asks(task, context, trees, patch))
    text = ""
    try:
        with job.budget.deadline() as scope:
            text = await conversation.run(context.models.models[task.model_id], job)
    finally:
        with job.cleanup_scope():
            settings, state = conversation.settings, conversation.state
            await write_transcript(context.out, job.key, task.model_label, settings, state)
    if scope.cancelled_caught:
        raise DeadlineExceeded(f"the time limit was reached in reply {conversation.state.turns}")
    with job.cleanup_scope():
        await to_thread.run_sync(write_atomically, published_path(task, context), text)
        digest = await job.store_text(text)
        return result_to_json(DescriptionResult(digest, len(text.strip()), conversation.state.turns))


async def _ask_instructed(
    task: DescriptionTask, context: DescriptionContext, _trees: Trees, patch: bytes
) -> TextQuestion:
    change = await complete_change(context.benchmark, task.instance, context.cache)
    diff = patch.decode("utf-8", "replace")

    def settings(chars: int) -> LoopSettings:
        return _instructed_settings(task, context, change, cut_diff(diff, chars))

    return _question(task, context, settings, _not_rejected(task, read_description))


async def _ask_open(
    task: DescriptionTask, context: DescriptionContext, trees: Trees, patch: bytes
) -> TextQuestion:
    names = await to_thread.run_sync(read_patch_names, patch)
    try:
        vocabulary = await to_thread.run_sync(read_vocabulary, trees.base)
    except OSError as error:
        raise SourceError(f"the documents of R cannot be read: {error}") from error
    instructed = context.benchmark.description(task.instance)

    def read(reply: str) -> ReadReply:
        answer = read_sentence(reply, context.config.max_open_chars)
        leaks = find_leaks(answer.text, names, vocabulary, instructed)
        return ReadReply(problems=tuple(f"it gives away {leak}" for leak in leaks)) if leaks else answer

    settings = _open_settings(task, context)
    return _question(task, context, lambda _chars: settings, _not_rejected(task, read))


def _question(
    task: DescriptionTask,
    context: DescriptionContext,
    settings: Callable[[int], LoopSettings],
    read: Callable[[str], ReadReply],
) -> TextQuestion:
    return TextQuestion(
        what=task.group,
        settings=settings,
        chars=context.config.diff_chars if task.track is Track.INSTRUCTED else MIN_MATERIAL_CHARS,
        read=read,
        again=context.prompts.load("describe_again"),
        tries=context.config.tries,
    )


def _not_rejected(task: DescriptionTask, read: Callable[[str], ReadReply]) -> Callable[[str], ReadReply]:
    """Return ``read`` that also refuses a text that was rejected in a review."""
    rejected = {each.digest for each in task.rejections}

    def read_new(reply: str) -> ReadReply:
        answer = read(reply)
        if answer.text and text_digest(answer.text) in rejected:
            return ReadReply(problems=("this very text was rejected by a reviewer",))
        return answer

    return read_new
