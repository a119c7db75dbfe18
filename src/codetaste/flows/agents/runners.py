"""Agent runners: the own loop runs on the host; a CLI agent runs in the sandbox and uses the gateway."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from codetaste.agent.code_tools import CODE_TOOLS, CodeContext
from codetaste.agent.facts import Facts
from codetaste.agent.loop import AgentState, LoopEnd, LoopSettings, run_loop
from codetaste.benchmark.layout import EVENTS_FOLDER, TRANSCRIPTS_FOLDER, FinishReason
from codetaste.flows.transcript import write_transcript
from codetaste.harness.config import DEFAULT_MAX_OUTPUT_TOKENS, DEFAULT_MAX_TURNS
from codetaste.harness.run import AgentTask, run_agent
from codetaste.llm.messages import Usage
from codetaste.llm.prompts import load_prompt
from codetaste.sandbox.base import NO_EGRESS, CommandLimits
from codetaste.sandbox.egress import GATEWAY_PORT, gateway_egress

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from codetaste.flows.agents.context import InferenceContext
    from codetaste.flows.agents.result import AgentRunResult
    from codetaste.flows.infer.plan import Step
    from codetaste.gateway.session import SessionUsage
    from codetaste.harness.config import AgentConfig
    from codetaste.harness.install.store import InstalledAgent
    from codetaste.harness.result import AgentResult
    from codetaste.llm.messages import Reply, Request
    from codetaste.llm.metering.metered import MeteredModel
    from codetaste.orchestration.job import JobContext
    from codetaste.sandbox.base import Egress, Mount, Sandbox

_NO_LIMIT_S = 30 * 24 * 3600.0
_FINISH_REASONS = {
    LoopEnd.FINISHED: FinishReason.SUCCESS,
    LoopEnd.BUDGET_EXCEEDED: FinishReason.BUDGET_EXCEEDED,
    LoopEnd.TIMEOUT: FinishReason.TIMEOUT,
}


@dataclass(frozen=True, slots=True)
class AgentRunner:
    """The mounts and egress of an agent's sandbox, and ``run(sandbox, task, result, job, name)``.

    ``name`` distinguishes several attempts of one job; "" where there is one.
    """

    mounts: tuple[Mount, ...]
    egress: Egress
    run: Callable[[Sandbox, str, AgentRunResult, JobContext, str], Awaitable[None]]


async def runner_for(step: Step, context: InferenceContext) -> AgentRunner:
    """Return the runner of ``step``'s agent; a CLI agent is installed first if necessary.

    Raises:
        ToolMissing: the CLI agent cannot be installed on this host.
    """
    agent = step.trial.agent
    if agent.uses_own_loop:

        async def run_own_loop(
            sandbox: Sandbox, task: str, result: AgentRunResult, job: JobContext, name: str
        ) -> None:
            await _run_own_loop(step, context, sandbox, task, result, job, name)

        return AgentRunner((), NO_EGRESS, run_own_loop)
    installed = await context.install_agent(agent)

    async def run_cli_agent(
        sandbox: Sandbox, task: str, result: AgentRunResult, job: JobContext, name: str
    ) -> None:
        await _run_cli_agent(installed, step, context, sandbox, task, result, job, name)

    calls_model = context.adapters[agent.id].protocol != "none"
    egress = gateway_egress(context.require_gateway().socket) if calls_model else NO_EGRESS
    return AgentRunner(installed.mounts, egress, run_cli_agent)


def loop_settings(agent: AgentConfig, task: str, name: str = "") -> LoopSettings:
    """Return the settings of the own loop; ``name`` prefixes the names of its effects."""
    return LoopSettings(
        system=load_prompt("code_system").render(),
        task=task,
        tools=CODE_TOOLS,
        max_turns=agent.max_turns or DEFAULT_MAX_TURNS,
        max_output_tokens=agent.max_output_tokens or DEFAULT_MAX_OUTPUT_TOKENS,
        options=agent.options,
        finishes_without_tool_call=True,
        effect_prefix=f"{name}/" if name else "",
    )


@dataclass(frozen=True, slots=True)
class _UsageCounter:
    """A model that adds the tokens of its replies, recorded ones included, to a result."""

    model: MeteredModel
    result: AgentRunResult

    async def complete(self, request: Request, *, ctx: JobContext, name: str) -> Reply:
        reply = await self.model.complete(request, ctx=ctx, name=name)
        self.result.add_usage(reply.usage)
        return reply


async def _run_own_loop(
    step: Step,
    context: InferenceContext,
    sandbox: Sandbox,
    task: str,
    result: AgentRunResult,
    job: JobContext,
    name: str,
) -> None:
    """Run the own loop; each reply and each tool answer is an effect, so the loop continues after a crash."""
    agent = step.trial.agent
    settings = loop_settings(agent, task, name)
    state = AgentState(settings.first_messages())
    tool_context = CodeContext(sandbox, Facts(), job.note)
    model = _UsageCounter(context.models[agent.model], result)
    try:
        end = await run_loop(settings, model, tool_context, job, state)
        result.finish_reason, result.message = (
            _FINISH_REASONS.get(end, FinishReason.EXECUTION_ERROR),
            end.value,
        )
    finally:
        result.turns, result.tool_calls = state.turns, state.tool_calls
        with job.cleanup_scope():
            key = f"{job.key}.{name}" if name else job.key
            await write_transcript(context.out, key, step.lane, settings, state)


async def _run_cli_agent(
    installed: InstalledAgent,
    step: Step,
    context: InferenceContext,
    sandbox: Sandbox,
    task: str,
    result: AgentRunResult,
    job: JobContext,
    name: str,
) -> None:
    """Run a CLI agent; after a crash of codetaste it starts again, and the cost so far still counts."""
    agent = step.trial.agent
    adapter = context.adapters[agent.id]
    log_name = f"{job.key}{'.' if name else ''}{name}.attempt-{job.attempt}.jsonl"
    events, model = context.out / EVENTS_FOLDER / log_name, context.model_configs[agent.model].exposed_name
    # The trial's clocks limit the run; they stop while the agent waits for its model.
    limits = CommandLimits(wall_s=_NO_LIMIT_S)
    job.note(f"{adapter.name} {installed.version} starts")
    if adapter.protocol == "none":
        agent_task = AgentTask(task, options=agent.options)
        _apply_reported(result, await run_agent(installed, sandbox, agent_task, limits, events))
        return
    tally: SessionUsage | None = None
    try:
        async with context.require_gateway().admit(
            job,
            models=[agent.model],
            protocol=adapter.protocol,
            transcript=context.out / TRANSCRIPTS_FOLDER / log_name,
        ) as access:
            tally, url = access.usage, f"http://127.0.0.1:{GATEWAY_PORT}"
            agent_task = AgentTask(task, model, url, access.token, agent.options)
            _apply_reported(
                result, await run_agent(installed, sandbox, agent_task, limits, events, tally.stopped)
            )
    finally:
        # Only now is the end of all requests known, those in flight at the end included.
        if tally is not None:
            _apply_metered(result, tally)


def _apply_reported(result: AgentRunResult, end: AgentResult) -> None:
    result.finish_reason, result.exit_code = end.finish_reason, end.exit_code
    result.message = end.problem or end.message
    result.turns, result.tool_calls = end.turns or 0, end.tool_calls or 0
    result.usage, result.reported_usd = end.usage or Usage(), end.cost_usd


def _apply_metered(result: AgentRunResult, tally: SessionUsage) -> None:
    """Replace reported values with those that the gateway measured."""
    result.metered_usd = tally.settled_usd + tally.unknown_usd
    # CLI agents count turns differently: some count a rejected call, others count nothing.
    result.turns = tally.turns if tally.requests else result.turns
    result.tool_calls = result.tool_calls or tally.tool_calls
    result.usage = tally.tokens
    result.provider_error = tally.provider_failure
    if tally.budget_refusal:
        result.finish_reason, result.message = FinishReason.BUDGET_EXCEEDED, tally.budget_refusal
