"""Who works in a box: our own loop, which asks its model from out here, or a program with the gateway."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from codetaste.agent.code_tools import CODE_TOOLS, CodeContext
from codetaste.agent.facts import Facts
from codetaste.agent.loop import Brief, Conversation, End, converse
from codetaste.flows.effort import BUDGET, EXECUTION_ERROR, SUCCESS, TIMEOUT
from codetaste.flows.transcript import write_transcript
from codetaste.harness.config import OWN_OUTPUT_TOKENS, OWN_TURNS
from codetaste.harness.run import Task, run_agent
from codetaste.llm.messages import Usage
from codetaste.llm.prompts import load_prompt
from codetaste.sandbox.box import NO_EGRESS
from codetaste.sandbox.egress import GATEWAY_PORT, gateway
from codetaste.sandbox.sandbox import Limits

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from codetaste.flows.effort import Effort
    from codetaste.flows.site import Site
    from codetaste.flows.trials import Step
    from codetaste.gateway.tally import Tally
    from codetaste.harness.config import AgentConfig
    from codetaste.harness.ending import AgentEnd
    from codetaste.harness.install import Installed
    from codetaste.llm.messages import Reply, Request
    from codetaste.llm.metered import MeteredModel
    from codetaste.orchestration.job import JobContext
    from codetaste.sandbox.box import Box, Egress, Mount

_FOR_EVER_S = 30 * 24 * 3600.0
_ENDS = {
    End.FINISHED: SUCCESS,
    End.BUDGET_EXCEEDED: BUDGET,
    End.TIMEOUT: TIMEOUT,
}


@dataclass(frozen=True, slots=True)
class Player:
    """What a box needs for an agent, and how it is set to work: ``play(box, task, effort, job, name)``.

    ``name`` tells several goes of one job apart, "" where there is only one.
    """

    mounts: tuple[Mount, ...]
    egress: Egress
    play: Callable[[Box, str, Effort, JobContext, str], Awaitable[None]]


async def player_for(step: Step, site: Site) -> Player:
    """Return who works on ``step``; its program is installed if it is not there.

    Raises:
        ToolMissing: the program cannot be installed here.
    """
    agent = step.trial.agent
    if agent.own:

        async def own(box: Box, task: str, effort: Effort, job: JobContext, name: str) -> None:
            await _converse(step, site, box, task, effort, job, name)

        return Player((), NO_EGRESS, own)
    installed = await site.install(agent)

    async def program(box: Box, task: str, effort: Effort, job: JobContext, name: str) -> None:
        await _run_program(installed, step, site, box, task, effort, job, name)

    asks = site.adapters[agent.id].protocol != "none"
    egress = gateway(site.require_gateway().socket) if asks else NO_EGRESS
    return Player(installed.mounts, egress, program)


def own_brief(agent: AgentConfig, task: str, name: str = "") -> Brief:
    """Return what our own loop is told."""
    return Brief(
        system=load_prompt("code_system").render(),
        task=task,
        tools=CODE_TOOLS,
        max_turns=agent.max_turns or OWN_TURNS,
        max_output_tokens=agent.max_output_tokens or OWN_OUTPUT_TOKENS,
        options=agent.options,
        ends_in_words=True,
        prefix=f"{name}/" if name else "",
    )


@dataclass(frozen=True, slots=True)
class _Counting:
    """A model whose replies' tokens are added up, the recorded ones included."""

    model: MeteredModel
    effort: Effort

    async def complete(self, request: Request, *, ctx: JobContext, name: str) -> Reply:
        reply = await self.model.complete(request, ctx=ctx, name=name)
        self.effort.count(reply.usage)
        return reply


async def _converse(
    step: Step, site: Site, box: Box, task: str, effort: Effort, job: JobContext, name: str
) -> None:
    """Let our own loop work: each reply and each answer is an effect, so that it goes on after a crash."""
    agent = step.trial.agent
    brief = own_brief(agent, task, name)
    conversation = Conversation(brief.opening())
    context = CodeContext(box, Facts(), job.note)
    model = _Counting(site.models[agent.model], effort)
    try:
        end = await converse(brief, model, context, job, conversation)
        effort.finish_reason, effort.message = _ENDS.get(end, EXECUTION_ERROR), end.value
    finally:
        effort.turns, effort.tool_calls = conversation.turns, conversation.tool_calls
        with job.cleaning_up():
            key = f"{job.key}.{name}" if name else job.key
            await write_transcript(site.out, key, step.lane, brief, conversation)


async def _run_program(
    installed: Installed,
    step: Step,
    site: Site,
    box: Box,
    task: str,
    effort: Effort,
    job: JobContext,
    name: str,
) -> None:
    """Let a command-line agent work; after a crash of ours it begins anew, and its earlier cost stays."""
    agent = step.trial.agent
    adapter = site.adapters[agent.id]
    record = f"{job.key}{'.' if name else ''}{name}.attempt-{job.attempt}.jsonl"
    events, model = site.out / "events" / record, site.settings[agent.model].called
    # The clocks of the trial bound it, which stand still while it waits for its model.
    limits = Limits(wall_s=_FOR_EVER_S)
    job.note(f"{adapter.name} {installed.version} starts")
    if adapter.protocol == "none":
        order = Task(task, options=agent.options)
        _ended(effort, await run_agent(installed, box, order, limits, events))
        return
    tally: Tally | None = None
    try:
        async with site.require_gateway().admit(
            job, models=[agent.model], protocol=adapter.protocol, transcript=site.out / "transcripts" / record
        ) as access:
            tally, url = access.tally, f"http://127.0.0.1:{GATEWAY_PORT}{access.base_path}"
            order = Task(task, model, url, access.token, agent.options)
            _ended(effort, await run_agent(installed, box, order, limits, events, tally.stopped))
    finally:
        # Only now is known what became of requests that were in flight at the end.
        if tally is not None:
            _measured(effort, tally)


def _ended(effort: Effort, end: AgentEnd) -> None:
    """Take over what the program's output and exit code tell."""
    effort.finish_reason, effort.exit_code = end.finish_reason, end.exit_code
    effort.message = end.problem or end.message
    effort.turns, effort.tool_calls = end.turns or 0, end.tool_calls or 0
    effort.usage, effort.told_usd = end.usage or Usage(), end.cost_usd


def _measured(effort: Effort, tally: Tally) -> None:
    """Lay what the gateway measured over what the program told."""
    effort.metered_usd = tally.settled_usd + tally.unknown_usd
    # Programs count differently: a refused answer is a turn to some, and others do not count at all.
    effort.turns = tally.turns if tally.requests else effort.turns
    effort.tool_calls = effort.tool_calls or tally.tool_calls
    effort.usage = tally.usage
    effort.failed = tally.failed
    if tally.refused:
        effort.finish_reason, effort.message = BUDGET, tally.refused
