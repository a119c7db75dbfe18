"""Agent runners: the own loop runs on the host; a CLI agent runs in the sandbox and uses the gateway."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from codetaste import __version__
from codetaste.agent.code_tools import CODE_TOOLS, CodeContext
from codetaste.agent.facts import Facts
from codetaste.agent.loop import AgentState, LoopEnd, LoopSettings, run_loop
from codetaste.benchmark.layout import EVENTS_FOLDER, TRANSCRIPTS_FOLDER, FinishReason
from codetaste.core.text import one_line
from codetaste.errors import Cause
from codetaste.flows.agents.inputs import OWN_LOOP_PROMPT
from codetaste.flows.agents.run import SandboxNeeds
from codetaste.flows.agents.transcript import transcript_path, write_transcript
from codetaste.harness.config import DEFAULT_MAX_OUTPUT_TOKENS, DEFAULT_MAX_TURNS
from codetaste.harness.run import AgentTask, run_agent
from codetaste.orchestration.shortfall import Shortfall
from codetaste.sandbox.base import NO_EGRESS, CommandLimits
from codetaste.sandbox.egress import GATEWAY_PORT, gateway_egress

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from codetaste.flows.agents.result import AgentRunResult
    from codetaste.flows.agents.run import AgentRun
    from codetaste.gateway.gateway import Gateway
    from codetaste.gateway.session import SessionUsage
    from codetaste.harness.adapter import Adapter
    from codetaste.harness.config import AgentConfig
    from codetaste.harness.install.store import InstalledAgent
    from codetaste.harness.result import AgentResult
    from codetaste.llm.messages import Reply, Request
    from codetaste.llm.metering.metered import MeteredModel
    from codetaste.llm.prompts import Prompts
    from codetaste.orchestration.job import JobContext

_NO_LIMIT_S = 30 * 24 * 3600.0
_FINISH_REASONS = {
    LoopEnd.FINISHED: FinishReason.SUCCESS,
    LoopEnd.BUDGET_EXCEEDED: FinishReason.BUDGET_EXCEEDED,
    LoopEnd.TIMEOUT: FinishReason.TIMEOUT,
}


@dataclass(frozen=True, slots=True)
class _UsageCounter:
    """A model that adds the tokens of its replies, recorded ones included, to a result."""

    model: MeteredModel
    result: AgentRunResult

    async def complete(self, request: Request, *, ctx: JobContext, name: str) -> Reply:
        reply = await self.model.complete(request, ctx=ctx, name=name)
        self.result.add_usage(reply.usage)
        return reply


@dataclass(frozen=True, slots=True)
class OwnLoopRunner:
    """Runs the own loop; each reply and tool answer is an effect, so the loop continues after a crash."""

    agent: AgentConfig
    model: MeteredModel
    prompts: Prompts

    @property
    def version(self) -> str:
        """The version of codetaste."""
        return __version__

    @property
    def published_name(self) -> dict[str, Any]:
        """Its ``name``, ``version`` and ``provider`` in ``agent_config.json``."""
        return {"name": self.agent.harness, "version": self.version, "provider": "codetaste"}

    @property
    def limits(self) -> dict[str, int]:
        """Its maximum of turns."""
        return {LoopEnd.MAX_TURNS: self.agent.max_turns or DEFAULT_MAX_TURNS}

    def first_request(self, task: str, system_prompt: str = OWN_LOOP_PROMPT) -> Request:
        """Return the first request of the loop."""
        settings = self._settings(task, system_prompt)
        return settings.build_request(settings.first_messages())

    async def prepare(self) -> SandboxNeeds:
        """Return what every sandbox has."""
        return SandboxNeeds((), NO_EGRESS)

    async def run(self, run: AgentRun) -> None:
        """Run the loop; its transcript is written on every ending."""
        spec, result, job = run.spec, run.result, run.job
        settings = self._settings(spec.task, spec.system_prompt, spec.name)
        state = AgentState(settings.first_messages())
        result.log = transcript_path(run.file_key)
        tool_context = CodeContext(run.sandbox, Facts(), job.note)
        try:
            end = await run_loop(settings, _UsageCounter(self.model, result), tool_context, job, state)
            result.finish_reason = _FINISH_REASONS.get(end, FinishReason.EXECUTION_ERROR)
            result.message = state.end_text if end is LoopEnd.BUDGET_EXCEEDED else end.value
            if end is not LoopEnd.FINISHED:
                result.own_shortfall = Shortfall(end.value, state.end_text, end.by_limit)
                result.refusals = int(end is LoopEnd.REFUSED)
            if end is LoopEnd.MAX_TURNS:
                job.limit_reached(LoopEnd.MAX_TURNS)
        finally:
            result.turns, result.tool_calls = state.turns, state.tool_calls
            with job.cleanup_scope():
                label = spec.model_label
                await write_transcript(run.services.out, run.file_key, label, settings, state)

    def _settings(self, task: str, system_prompt: str, name: str = "") -> LoopSettings:
        """Return the settings of the loop; ``name`` prefixes the names of its effects."""
        agent = self.agent
        return LoopSettings(
            system=self.prompts.load(system_prompt).render(),
            task=task,
            tools=CODE_TOOLS,
            max_turns=self.limits[LoopEnd.MAX_TURNS],
            max_output_tokens=agent.max_output_tokens or DEFAULT_MAX_OUTPUT_TOKENS,
            context_window=self.model.context_window,
            options=agent.options,
            finishes_without_tool_call=True,
            effect_prefix=f"{name}/" if name else "",
        )


@dataclass(frozen=True, slots=True)
class CliAgentRunner:
    """Runs a CLI agent; after a crash of codetaste it starts again, and the cost so far still counts.

    ``model_name`` is the name of its model in requests; ``gateway`` is None for an agent without a model.
    """

    agent: AgentConfig
    adapter: Adapter
    model_name: str
    install: Callable[[], Awaitable[InstalledAgent]]
    gateway: Gateway | None

    @property
    def version(self) -> str:
        """The release of the agent."""
        return self.adapter.choose_version(self.agent.version)

    @property
    def published_name(self) -> dict[str, Any]:
        """Its ``name``, ``version`` and ``provider`` in ``agent_config.json``."""
        return {"name": self.adapter.name, "version": self.version, "provider": self.adapter.protocol}

    @property
    def limits(self) -> dict[str, int]:
        """None: what limits the program is part of its options."""
        return {}

    def first_request(self, task: str, system_prompt: str = "") -> Request | None:  # noqa: ARG002 - as above
        """Return a request with the task alone: the agent adds an unknown amount of its own prompt."""
        if self.gateway is None:
            return None
        settings = LoopSettings(system="", task=task, tools=())
        return settings.build_request(settings.first_messages())

    async def prepare(self) -> SandboxNeeds:
        """Install the agent if necessary.

        Raises:
            ToolMissing: the agent cannot be installed on this host.
        """
        egress = NO_EGRESS if self.gateway is None else gateway_egress(self.gateway.socket)
        return SandboxNeeds((await self.install()).mounts, egress)

    async def run(self, run: AgentRun) -> None:
        """Run the agent; the trial's clocks limit it, and they stop while it waits for its model."""
        run.job.note(f"{self.adapter.name} {self.version} starts")
        if self.gateway is None or self.adapter.protocol == "none":
            await self._run(run, AgentTask(run.spec.task, options=self.agent.options, env=self._env(run)))
            return
        tally: SessionUsage | None = None
        try:
            async with self.gateway.admit(
                run.job,
                models=[self.agent.model],
                protocol=self.adapter.protocol,
                transcript=run.services.out / TRANSCRIPTS_FOLDER / self._log_name(run),
            ) as access:
                access.side_calls = self.adapter.manifest.side_calls
                tally, url = access.usage, f"http://127.0.0.1:{GATEWAY_PORT}"
                run.token = access.token.encode()
                options, env = self.agent.options, self._env(run)
                task = AgentTask(run.spec.task, self.model_name, url, access.token, options, env)
                await self._run(run, task, tally)
        finally:
            # Only now is the end of all requests known, those in flight at the end included.
            if tally is not None:
                _apply_metered(run.result, tally)
            if run.result.refusals:
                run.job.note(f"requests that the model or its provider refused: {run.result.refusals}")

    async def _run(self, run: AgentRun, task: AgentTask, tally: SessionUsage | None = None) -> None:
        limits = CommandLimits(wall_s=_NO_LIMIT_S)
        run.result.log = f"{EVENTS_FOLDER}/{self._log_name(run)}"
        events = run.services.out / run.result.log
        stopped = (tally.stopped,) if tally is not None else ()
        end = await run_agent(await self.install(), run.sandbox, task, limits, events, *stopped)
        _apply_reported(run.result, end)

    def _env(self, run: AgentRun) -> dict[str, str]:
        """Return the variables of the config, and what the agent is told of its run."""
        left_s, spec = run.job.budget.clock.time_left_s(), run.spec
        facts = {"CODETASTE_TRACK": spec.track, "CODETASTE_MODE": spec.mode} if self.adapter.published else {}
        time = {"CODETASTE_TIMEOUT_S": str(int(left_s))} if left_s < _NO_LIMIT_S else {}
        return {**self.agent.env, **facts, **time}

    def _log_name(self, run: AgentRun) -> str:
        return f"{run.file_key}.attempt-{run.job.attempt}.jsonl"


def _apply_reported(result: AgentRunResult, end: AgentResult) -> None:
    result.finish_reason, result.exit_code = end.finish_reason, end.exit_code
    result.message = end.problem or end.message
    result.turns, result.tool_calls = end.turns or 0, end.tool_calls or 0
    result.usage, result.reported_usd = end.usage, end.cost_usd


NO_MODEL_REPLY = "no_model_reply"
"""The ending of a CLI agent that reports a success although its model answered no request."""
_FAILED = frozenset({FinishReason.ERROR, FinishReason.EXECUTION_ERROR, FinishReason.UNKNOWN})
"""Endings that a refused request explains."""


def _apply_metered(result: AgentRunResult, tally: SessionUsage) -> None:
    """Replace reported values with those that the gateway measured."""
    result.metered_usd = tally.settled_usd + tally.unknown.usd
    # CLI agents count turns differently: some count a rejected call, others count nothing.
    result.turns = tally.turns if tally.requests else result.turns
    result.tool_calls = result.tool_calls or tally.tool_calls
    result.usage = None if tally.unknown.tokens else tally.tokens
    result.last_failure, result.refusals = tally.last_failure, tally.refusals
    if tally.refused_request and result.finish_reason in _FAILED:
        result.message = f"a request was refused: {tally.refused_request}"
    if tally.provider_given_up:
        result.finish_reason, result.message = FinishReason.ERROR, str(tally.last_failure)
    elif tally.budget_refusal:
        result.finish_reason, result.message = FinishReason.BUDGET_EXCEEDED, tally.budget_refusal
    elif result.finish_reason == FinishReason.SUCCESS and (tally.last_failure or not tally.replies):
        why, name = str(tally.last_failure or "it sent none that could be processed"), NO_MODEL_REPLY
        text = f"it reports a success, but no request was answered: {why}"
        if tally.replies:
            refused = tally.last_failure is not None and tally.last_failure.cause is Cause.REFUSED
            name = LoopEnd.REFUSED if refused else FinishReason.EXECUTION_ERROR
            text = f"it reports a success, but its last request failed: {why}"
        result.finish_reason, result.message = FinishReason.EXECUTION_ERROR, one_line(text)
        result.own_shortfall = Shortfall(name, result.message)
