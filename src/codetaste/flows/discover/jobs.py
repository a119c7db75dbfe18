"""Rule discovery: for each instance and model, an additive and a reductive pass (CodeTaste §3.4, A.3).

The agent sees the task description and the base codebase, never the golden patch. The passes are independent
jobs; each writes one rule file in the published layout under ``discover/<model id>/``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from codetaste.agent.facts import Facts
from codetaste.agent.loop import AgentState, LoopEnd, LoopSettings, run_loop
from codetaste.agent.rule_tools import RuleContext, registered_rules
from codetaste.benchmark.publish import write_rules
from codetaste.errors import BudgetExceeded, DeadlineExceeded
from codetaste.flows.agents.transcript import write_transcript
from codetaste.flows.describe.result import take_descriptions
from codetaste.flows.discover.inputs import ENGINE_INPUT, pass_inputs
from codetaste.flows.discover.publish import discovery_folder
from codetaste.flows.discover.result import DiscoveryResult
from codetaste.flows.inputs import digest_of_inputs, digests_of_inputs
from codetaste.flows.sources import SOURCES, sources_handler, sources_job
from codetaste.orchestration.budget.cost import BudgetLimits, BudgetPath, NamedLimits
from codetaste.orchestration.job import Job
from codetaste.orchestration.journal.results import result_to_json
from codetaste.orchestration.shortfall import Shortfall
from codetaste.rules.yaml_writer import dump_rules
from codetaste.source.checkout import checkout_trees

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from codetaste.benchmark.instance import Instance
    from codetaste.flows.discover.context import DiscoveryContext, RuleToolServices
    from codetaste.flows.discover.plan import DiscoveryPass
    from codetaste.orchestration.job import Handler, JobContext
    from codetaste.orchestration.journal.journal import Json
    from codetaste.rules.registration import Direction


DISCOVER = "discover"
"""The kind of the jobs."""


def discovery_jobs(
    passes: Iterable[DiscoveryPass], context: DiscoveryContext, budget: BudgetPath
) -> list[Job]:
    """Return the jobs of ``passes``, and one job for the sources of each instance, under ``budget``."""
    made: dict[str, Job] = {}
    limits = BudgetLimits(usd=context.config.budget_usd, working_s=context.config.time_limit)
    for each in passes:
        made.setdefault(each.sources_key, sources_job(each.instance, budget))
        shared = NamedLimits(f"{each.model_id}/{each.instance.id}", limits)
        made[each.key] = _pass_job(each, context, (*budget, shared))
    return list(made.values())


def discovery_handlers(context: DiscoveryContext) -> dict[str, Handler]:
    """Return what runs the jobs of ``discovery_jobs``, by kind."""
    return {
        SOURCES: sources_handler(context.benchmark, context.services.scan.cache),
        DISCOVER: lambda job, run: _run_pass(job.parameters, context, run),
    }


def _pass_job(each: DiscoveryPass, context: DiscoveryContext, budget: BudgetPath) -> Job:
    settings, models, scan = _loop_settings(each, context), context.models, context.services.scan
    inputs = {
        **pass_inputs(each, context.source, context.config, context.tools),
        ENGINE_INPUT: scan.engine.version,
    }
    return Job(
        each.key,
        DISCOVER,
        budget,
        fingerprint=digest_of_inputs(inputs),
        inputs=digests_of_inputs(inputs),
        parameters=each,
        needs=each.needs,
        resources={"sandbox": 1},
        lane=each.model_label,
        title=each.title,
        group=each.group,
        min_cost=models.models[each.model_id].min_cost(settings.build_request(settings.first_messages())),
        handler_limits={LoopEnd.MAX_TURNS: settings.max_turns},
        limits=context.config.pass_limits,
        leaves_to=each.other_key,
    )


def _loop_settings(each: DiscoveryPass, context: DiscoveryContext) -> LoopSettings:
    """Return the loop's settings; the prompt has the instructed description, nothing of the golden patch."""
    direction = each.direction.value
    return LoopSettings(
        system=context.prompts.load("discover_system").render(direction=direction, overlap="0.95"),
        task=context.prompts.load("discover_task").render(
            direction=direction,
            language=each.instance.language,
            description=context.benchmark.description(each.instance),
        ),
        tools=context.tools,
        max_turns=context.config.max_turns,
        max_output_tokens=context.config.max_output_tokens,
        context_window=context.models.models[each.model_id].context_window,
    )


async def open_rule_context(
    instance: Instance, direction: Direction, services: RuleToolServices, note: Callable[[str], None]
) -> RuleContext:
    """Return the context of the rule agent's tools: both trees, the scanner, and a shell that sees only R."""
    trees = await checkout_trees(services.benchmark.origin(instance), services.scan.cache)
    return RuleContext(
        instance=instance,
        direction=direction,
        description=services.benchmark.description(instance),
        base=trees.base,
        golden=trees.golden,
        scanner=services.scan.scanner,
        shell=services.open_shell(trees.base),
        facts=Facts(),
        note=note,
        command_memory_bytes=services.command_memory,
    )


async def _run_pass(each: DiscoveryPass, context: DiscoveryContext, job: JobContext) -> Json:
    """Run the agent loop until it ends for any reason; the rules found by then are the result."""
    await take_descriptions(each.instance, context.benchmark, job)
    settings, model = _loop_settings(each, context), context.models.models[each.model_id]
    state = AgentState(settings.first_messages())
    tool_context = await open_rule_context(each.instance, each.direction, context.services, job.note)
    try:
        with job.budget.deadline() as scope:
            await run_loop(settings, model, tool_context, job, state)
        if scope.cancelled_caught:
            state.end = LoopEnd.TIMEOUT
    finally:
        with job.cleanup_scope():
            await write_transcript(context.out, job.key, each.model_label, settings, state)
    if state.end is LoopEnd.TIMEOUT:
        job.end_early(DeadlineExceeded(f"the time limit was reached after {state.turns} turns"))
    elif state.end is LoopEnd.BUDGET_EXCEEDED:
        job.end_early(BudgetExceeded(f"no money for turn {state.turns}: {state.end_text}"))
    elif state.end is not None and state.end is not LoopEnd.FINISHED:
        job.fall_short(Shortfall(state.end.value, state.end_text, state.end.by_limit))
    if state.end is LoopEnd.MAX_TURNS:
        job.limit_reached(LoopEnd.MAX_TURNS)
    rules = registered_rules(tool_context.facts)
    with job.cleanup_scope():
        text = dump_rules(rule.to_rule() for rule in rules)
        await write_rules(discovery_folder(each, context), each.instance, each.direction, text)
        result = DiscoveryResult(
            finish_reason=str(state.end),
            turns=state.turns,
            tool_calls=state.tool_calls,
            rules=len(rules),
            engine=context.services.scan.engine.label,
            rules_digest=await job.store_text(text),
        )
        return result_to_json(result)
