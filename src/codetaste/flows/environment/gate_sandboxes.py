"""Fresh sandboxes for the gates: a candidate's image and scripts with R or R∘X* in /testbed."""

from __future__ import annotations

import shutil
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from anyio import to_thread

from codetaste.evaluation.test_runs.gates import OpenSandbox, Side
from codetaste.flows.environment.suites import SuiteSandbox, open_suite_sandbox
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
    from codetaste.flows.environment.suites import SuiteServices
    from codetaste.harness.testbed.testbed import Testbed
    from codetaste.sandbox.base import Privileges, Sandbox


@dataclass(frozen=True, slots=True)
class _Gates:
    """What the sandboxes of one candidate are opened from."""

    key: str
    candidate: Candidate
    suites: SuiteServices
    testbeds: Mapping[Side, Testbed]
    folder: Path

    def open(self, side: Side, privileges: Privileges) -> AbstractAsyncContextManager[Sandbox]:
        """Open a fresh sandbox with the code of one side."""
        image, network = self.candidate.image, self.suites.network
        testbed = self.testbeds[side]
        wanted = SuiteSandbox(self.key, image, self.folder, privileges, network, testbed)
        return open_suite_sandbox(self.suites, wanted)


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
        yield _Gates(task.key, candidate, suites, testbeds, folder).open
    finally:
        await to_thread.run_sync(partial(shutil.rmtree, folder, ignore_errors=True))
