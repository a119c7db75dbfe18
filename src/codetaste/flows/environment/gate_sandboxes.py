"""Fresh sandboxes for the gates: a candidate's image and scripts with R or R∘X* in /testbed."""

from __future__ import annotations

import shutil
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING

from anyio import to_thread

from codetaste.evaluation.test_runs.gates import OpenSandbox, Side
from codetaste.flows.test_runs.sandboxes import SuiteSandbox, open_suite_sandbox
from codetaste.harness.testbed.testbed import prepare_testbed
from codetaste.source.checkout import checkout_trees
from codetaste.source.tree.store import Tree

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping
    from contextlib import AbstractAsyncContextManager
    from pathlib import Path

    from codetaste.flows.environment.candidates import Candidate
    from codetaste.flows.environment.context import EnvironmentContext
    from codetaste.flows.environment.plan import EnvironmentTask
    from codetaste.harness.testbed.testbed import Testbed
    from codetaste.sandbox.base import Privileges, Sandbox


@asynccontextmanager
async def gate_sandboxes(
    task: EnvironmentTask, candidate: Candidate, context: EnvironmentContext
) -> AsyncIterator[OpenSandbox]:
    """Give what opens the sandboxes of a candidate.

    Raises:
        SourceError: the trees cannot be checked out.
        StorageFull: no space left.
    """
    suites = context.suites
    trees = await checkout_trees(context.benchmark.origin(task.instance), suites.cache)
    testbeds = {
        Side.BASE: await prepare_testbed(Tree(trees.base, trees.base_digest), suites.cache),
        Side.GOLDEN: await prepare_testbed(Tree(trees.golden, trees.golden_digest), suites.cache),
    }
    folder = suites.folder / f"{task.instance.id}-{candidate.scripts.digest[:12]}"
    await to_thread.run_sync(candidate.scripts.write, folder)
    try:
        yield partial(_open, task, candidate, context, testbeds, folder)
    finally:
        await to_thread.run_sync(partial(shutil.rmtree, folder, ignore_errors=True))


def _open(
    task: EnvironmentTask,
    candidate: Candidate,
    context: EnvironmentContext,
    testbeds: Mapping[Side, Testbed],
    folder: Path,
    side: Side,
    privileges: Privileges,
) -> AbstractAsyncContextManager[Sandbox]:
    wanted = SuiteSandbox(
        task.key, candidate.image, folder, privileges, context.suites.network, testbeds[side]
    )
    return open_suite_sandbox(context.suites, wanted)
