"""Rule discovery: for each instance and model, an additive and a reductive pass (CodeTaste §3.4, A.3).

The agent sees the task description and the base codebase, never the golden patch. The passes are independent
jobs; each writes one rule file in the published layout under ``discover/<model id>/``.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from codetaste.agent.facts import Facts
from codetaste.agent.loop import AgentState, LoopEnd, LoopSettings, run_loop
from codetaste.agent.rule_tools import RuleContext, registered_rules
from codetaste.errors import BudgetExceeded, DeadlineExceeded
from codetaste.flows.discover.publish import write_pass_rules
from codetaste.flows.sources import digest_parts, sources_job
from codetaste.flows.transcript import write_transcript
from codetaste.llm.prompts import load_prompt
from codetaste.orchestration.budget.cost import BudgetLimits
from codetaste.orchestration.job import Job
from codetaste.rules.yaml_writer import dump_rules
from codetaste.source.checkout import checkout_trees

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable

    from codetaste.benchmark.instance import Instance
    from codetaste.flows.discover.context import DiscoveryContext, DiscoveryModels
    from codetaste.flows.discover.plan import DiscoverConfig, DiscoveryPass
    from codetaste.llm.metering.metered import MeteredModel
    from codetaste.orchestration.budget.budget import Budget
    from codetaste.orchestration.job import JobContext, Outcome
    from codetaste.orchestration.journal.journal import Json
    from codetaste.rules.registration import Direction
    from codetaste.source.checkout import Trees


VERSION = 1
"""Increment it when a change of this module changes the result of a pass with the same prompts and tools."""


def discovery_jobs(
    config: DiscoverConfig,
    passes: Iterable[DiscoveryPass],
    models: DiscoveryModels,
    context: DiscoveryContext,
    budget: Budget,
) -> list[Job]:
    """Return the jobs of ``passes``, and one job for the sources of each instance, under ``budget``."""
    made: dict[str, Job] = {}
    limits = BudgetLimits(usd=config.budget_usd, working_s=config.time_limit)
    for each in passes:
        if each.sources_key not in made:
            made[each.sources_key] = sources_job(
                each.sources_key, each.instance, context.benchmark, context.cache, budget
            )
        node = budget.child(f"{each.model_id}/{each.instance.id}", limits)
        made[each.key] = _pass_job(each, config, models, context, node)
    return list(made.values())


def _pass_job(
    each: DiscoveryPass,
    config: DiscoverConfig,
    models: DiscoveryModels,
    context: DiscoveryContext,
    node: Budget,
) -> Job:
    settings = _loop_settings(config, each, models, context)
    model = models.models[each.model_id]
    return Job(
        each.key,
        lambda job: _run_pass(each, settings, model, context, job),
        node,
        fingerprint=digest_parts(
            str(VERSION),
            settings.system,
            settings.task,
            f"{settings.max_turns} {settings.max_output_tokens}",
            models.fingerprints[each.model_id],
            context.engine_version,
            context.ignore_text,
            *(f"{tool.spec.name} {tool.digest}" for tool in settings.tools),
        ),
        needs=(each.sources_key,),
        resources={"sandbox": 1},
        lane=each.model_label,
        title=each.title,
        min_cost=model.min_cost(settings.build_request(settings.first_messages())),
    )


def _loop_settings(
    config: DiscoverConfig, each: DiscoveryPass, models: DiscoveryModels, context: DiscoveryContext
) -> LoopSettings:
    """Return the loop's settings; the prompt has the instructed description, nothing of the golden patch."""
    direction = each.direction.value
    return LoopSettings(
        system=load_prompt("discover_system").render(direction=direction, overlap="0.95"),
        task=load_prompt("discover_task").render(
            direction=direction,
            language=each.instance.language,
            description=context.benchmark.description(each.instance),
        ),
        tools=models.tools,
        max_turns=config.max_turns,
        max_output_tokens=config.max_output_tokens,
    )


@asynccontextmanager
async def open_rule_context(
    instance: Instance, direction: Direction, context: DiscoveryContext, note: Callable[[str], None]
) -> AsyncIterator[RuleContext]:
    """Open the context of the rule agent's tools: both trees, the scanner, and a shell that sees only R."""
    trees: Trees = await checkout_trees(context.benchmark.origin(instance), context.cache)
    yield RuleContext(
        instance=instance,
        direction=direction,
        base=trees.base,
        golden=trees.golden,
        scanner=context.scanner,
        shell=context.open_shell(trees.base),
        facts=Facts(),
        note=note,
        command_memory_bytes=context.command_memory,
    )


async def _run_pass(
    each: DiscoveryPass,
    settings: LoopSettings,
    model: MeteredModel,
    context: DiscoveryContext,
    job: JobContext,
) -> Json:
    """Run the agent loop until it ends for any reason; the rules found by then are the result."""
    state = AgentState(settings.first_messages())
    async with open_rule_context(each.instance, each.direction, context, job.note) as tool_context:
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
        job.end_early(BudgetExceeded(f"the budget was used up after {state.turns} turns"))
    rules = registered_rules(tool_context.facts)
    with job.cleanup_scope():
        text = dump_rules(rule.to_rule() for rule in rules)
        await write_pass_rules(each, context, text)
        return {
            "finish_reason": str(state.end),
            "turns": state.turns,
            "tool_calls": state.tool_calls,
            "rules": len(rules),
            "engine": context.engine_label,
            "yaml": await job.store_text(text),
        }


def describe_pass(outcome: Outcome) -> str:
    """Describe the result of a pass in one line; "" where it has none."""
    value: Any = outcome.value
    if not outcome.usable or value is None:
        return ""
    return f"{value['rules']} rules ({value['finish_reason'].replace('_', ' ')}, {value['turns']} turns)"
