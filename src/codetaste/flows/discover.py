"""Rule discovery: for each instance and model, an additive and a reductive pass (CodeTaste §3.4, A.3).

The agent sees the task description and the base codebase, never the golden patch. The passes are independent
jobs; each leaves one rule file in the published layout under ``discover/<model id>/``.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import anyio

from codetaste.agent.facts import Facts
from codetaste.agent.loop import Brief, Conversation, End, converse
from codetaste.agent.rule_tools import RuleContext, registered_rules
from codetaste.errors import BudgetExceeded, DeadlineExceeded
from codetaste.flows.products import write_found
from codetaste.flows.sources import digest, sources_job
from codetaste.flows.transcript import write_transcript
from codetaste.llm.prompts import load_prompt
from codetaste.orchestration.job import Job
from codetaste.orchestration.money import Limits
from codetaste.rules.dump import dump_rules
from codetaste.source.trees import materialise

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable, Mapping
    from pathlib import Path

    from codetaste.agent.tool import Tool
    from codetaste.benchmark.catalog import Benchmark
    from codetaste.benchmark.instance import Instance
    from codetaste.flows.passes import DiscoverConfig, Pass
    from codetaste.llm.metered import MeteredModel
    from codetaste.orchestration.budget import Budget
    from codetaste.orchestration.job import JobContext, Json, Outcome
    from codetaste.rules.scan import Scanner
    from codetaste.rules.verdict import Direction
    from codetaste.sandbox.sandbox import Sandbox
    from codetaste.source.trees import Trees

VERSION = 1
"""Raise it when this module changes what a pass with the same prompts and tools comes to."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What all passes of a run share.

    Attributes:
        benchmark: where the tasks come from.
        out: the run's folder.
        cache: where trees are kept between runs.
        scanner: matches rules against trees.
        shell: opens a shell that sees one tree.
        command_memory: bytes that one command of it may use.
        engine_version: the rule engine's; counts depend on it.
        engine: which program that is, for the record.
        ignore: the text of the benchmark's ignore file; counts depend on it too.
        warnings: what a person should know.
    """

    benchmark: Benchmark
    out: Path
    cache: Path
    scanner: Scanner
    shell: Callable[[Path], Sandbox]
    command_memory: int
    engine_version: str
    engine: str
    ignore: str
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Crew:
    """Who works: the models by id, what decides each one's replies (a hash), and the tools."""

    models: Mapping[str, MeteredModel]
    digests: Mapping[str, str]
    tools: tuple[Tool, ...]


def jobs(
    config: DiscoverConfig, passes: Iterable[Pass], crew: Crew, around: Surroundings, budget: Budget
) -> list[Job]:
    """Make the jobs of ``passes``, and one for the sources of each instance, below ``budget``."""
    made: dict[str, Job] = {}
    limits = Limits(usd=config.budget_usd, working_s=config.time_limit)
    for each in passes:
        if each.sources not in made:
            made[each.sources] = sources_job(
                each.sources, each.instance, around.benchmark, around.cache, budget
            )
        node = budget.child(f"{each.model_id}/{each.instance.id}", limits)
        made[each.key] = _pass_job(each, config, crew, around, node)
    return list(made.values())


def _pass_job(each: Pass, config: DiscoverConfig, crew: Crew, around: Surroundings, node: Budget) -> Job:
    brief = _brief(config, each, crew, around)
    model = crew.models[each.model_id]
    return Job(
        each.key,
        lambda job: _run(each, brief, model, around, job),
        node,
        fingerprint=digest(
            str(VERSION),
            brief.system,
            brief.task,
            f"{brief.max_turns} {brief.max_output_tokens}",
            crew.digests[each.model_id],
            around.engine_version,
            around.ignore,
            *(f"{tool.spec.name} {tool.digest}" for tool in brief.tools),
        ),
        needs=(each.sources,),
        resources={"sandbox": 1},
        lane=each.label,
        title=each.title,
        least=model.least_cost(brief.request(brief.opening())),
    )


def _brief(config: DiscoverConfig, each: Pass, crew: Crew, around: Surroundings) -> Brief:
    """What the agent is told: the instructed description, and nothing of the golden patch."""
    direction = each.direction.value
    return Brief(
        system=load_prompt("discover_system").render(direction=direction, overlap="0.95"),
        task=load_prompt("discover_task").render(
            direction=direction,
            language=each.instance.language,
            description=around.benchmark.description(each.instance),
        ),
        tools=crew.tools,
        max_turns=config.max_turns,
        max_output_tokens=config.max_output_tokens,
    )


@asynccontextmanager
async def rule_context(
    instance: Instance, direction: Direction, around: Surroundings, note: Callable[[str], None]
) -> AsyncIterator[RuleContext]:
    """Open what the rule agent's tools work on: both trees, the scanner, and a shell on R alone."""
    trees: Trees = await materialise(around.benchmark.origin(instance), around.cache)
    shell = around.shell(trees.base)
    try:
        yield RuleContext(
            instance=instance,
            direction=direction,
            base=trees.base,
            golden=trees.golden,
            scanner=around.scanner,
            shell=shell,
            facts=Facts(),
            note=note,
            command_memory=around.command_memory,
        )
    finally:
        with anyio.move_on_after(5, shield=True):
            await shell.aclose()


async def _run(each: Pass, brief: Brief, model: MeteredModel, around: Surroundings, job: JobContext) -> Json:
    """Let the agent look for rules until something ends it; what it found is kept either way."""
    conversation = Conversation(brief.opening())
    async with rule_context(each.instance, each.direction, around, job.note) as context:
        try:
            with job.budget.deadline() as scope:
                await converse(brief, model, context, job, conversation)
            if scope.cancelled_caught:
                conversation.end = End.TIMEOUT
        finally:
            with job.cleaning_up():
                await write_transcript(around.out, job.key, each.label, brief, conversation)
    if conversation.end is End.TIMEOUT:
        job.cut_short(DeadlineExceeded(f"the time limit ended it after {conversation.turns} turns"))
    elif conversation.end is End.BUDGET_EXCEEDED:
        job.cut_short(BudgetExceeded(f"the budget ended it after {conversation.turns} turns"))
    rules = registered_rules(context.facts)
    with job.cleaning_up():
        text = dump_rules(rule.to_rule() for rule in rules)
        await write_found(each, around, text)
        return {
            "finish_reason": str(conversation.end),
            "turns": conversation.turns,
            "tool_calls": conversation.tool_calls,
            "rules": len(rules),
            "engine": around.engine,
            "yaml": await job.keep(text),
        }


def found(outcome: Outcome) -> str:
    """Say what a pass came to, "" where it has no result."""
    value: Any = outcome.value
    if not outcome.usable or value is None:
        return ""
    return f"{value['rules']} rules ({value['finish_reason'].replace('_', ' ')}, {value['turns']} turns)"
