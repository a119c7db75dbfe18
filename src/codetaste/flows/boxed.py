"""One agent's work on one task in a fresh box: opened, filled, worked in, and harvested however it ends."""

from __future__ import annotations

from typing import TYPE_CHECKING

from codetaste.errors import CodetasteError, ModelUnavailable, SandboxError
from codetaste.flows.effort import BUDGET, EXECUTION_ERROR, SUCCESS, TIMEOUT, UNKNOWN, now
from codetaste.flows.players import player_for
from codetaste.harness.testbed import prepared_testbed, testbed_archive
from codetaste.orchestration.retry import give_up
from codetaste.sandbox.box import TASK
from codetaste.sandbox.boxes import box_spec
from codetaste.source.tree import Tree
from codetaste.source.trees import materialise

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from codetaste.flows.effort import Effort
    from codetaste.flows.site import Site
    from codetaste.flows.trials import Step
    from codetaste.harness.testbed import Testbed
    from codetaste.orchestration.job import JobContext
    from codetaste.sandbox.box import Box

DESCRIPTION = f"{TASK}/description.md"
"""Where an agent finds what it is to do, which is also what it is asked."""
_LEAST_LIFETIME_S = 6 * 3600.0
_OWN_FAULTS = ("out of memory", "disk full")


async def work(
    step: Step,
    task: str,
    site: Site,
    job: JobContext,
    effort: Effort,
    collect: Callable[[Box, Testbed], Awaitable[None]],
    name: str = "",
) -> None:
    """Let the agent of ``step`` do ``task`` in a box that nobody has used, and ``collect`` what it leaves.

    The box has R and the task, and nothing else of the instance. ``collect`` is given the stopped box on
    every ending: success, time limit, budget, crash, a box that died, cancellation.

    Args:
        step: who works on what.
        task: the whole prompt.
        site: what all trials share.
        job: whose budget and clock bound it.
        effort: filled in as the work goes on.
        collect: takes what is wanted from the box.
        name: tells several goes of one job apart.

    Raises:
        SandboxError: the box could not be had, or died without a fault of the agent's.
        ModelError: the provider stayed unusable after all retries.
    """
    trees = await materialise(site.benchmark.origin(step.trial.instance), site.cache)
    testbed = await prepared_testbed(Tree(trees.base, trees.base_digest), site.cache)
    player = await player_for(step, site)
    lifetime_s = max(_LEAST_LIFETIME_S, 4 * step.trial.agent.time_limit)
    spec = box_spec(site.sandbox, job.key, mounts=player.mounts, egress=player.egress, lifetime_s=lifetime_s)
    taken: list[CodetasteError | None] = []
    async with site.boxes.open(spec) as box:
        await box.put(testbed_archive(testbed, {DESCRIPTION: f"{task}\n".encode()}))
        try:
            with job.budget.deadline() as scope:
                await player.play(box, task, effort, job, name)
            if scope.cancelled_caught:
                effort.finish_reason = TIMEOUT
            else:
                taken.append(await _collected(box, testbed, collect, effort))
        except SandboxError:
            if not box.ended:
                raise
        finally:
            if not taken:
                with job.cleaning_up():
                    taken.append(await _collected(box, testbed, collect, effort))
    if _by_the_agent(box) and effort.finish_reason in {UNKNOWN, EXECUTION_ERROR}:
        effort.finish_reason, effort.message = EXECUTION_ERROR, f"the box ended: {box.ended}"
    if not taken:
        raise SandboxError("what the agent left could not be taken from its box in time")
    if taken[0] is not None:
        raise taken[0]
    if box.ended and not _by_the_agent(box):
        raise SandboxError(f"the box ended: {box.ended}")
    # A program may call it a success that nobody answered it.
    worked = effort.finish_reason in {BUDGET, TIMEOUT} or (effort.finish_reason == SUCCESS and effort.turns)
    if effort.failed and not worked:
        raise give_up(ModelUnavailable(effort.failed))


async def _collected(
    box: Box, testbed: Testbed, collect: Callable[[Box, Testbed], Awaitable[None]], effort: Effort
) -> CodetasteError | None:
    """Stop the box and take what is wanted; what goes wrong there must not hide why the work ended."""
    effort.finished = effort.finished or now()
    try:
        await box.stop()
        await collect(box, testbed)
    except CodetasteError as error:
        return error
    return None


def _by_the_agent(box: Box) -> bool:
    """Whether the agent itself is to blame for the end of its box: then trying again would not mend it."""
    return box.ended.startswith(_OWN_FAULTS)
