"""``RepositoryRun``: an agent in a sandbox with the files before a commit, and what builds them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from anyio import to_thread

from codetaste.flows.agents.patch_run import PatchRun
from codetaste.flows.agents.run import DESCRIPTION_PATH
from codetaste.harness.testbed.testbed import prepare_testbed, testbed_archive
from codetaste.source.tree.opaque_names import opaque_name
from codetaste.source.tree.store import Tree, cached_tree
from codetaste.swe_refactor.trials.agent.changes import may_be_answer

if TYPE_CHECKING:
    from contextlib import AsyncExitStack
    from pathlib import Path

    from codetaste.flows.agents.run import SandboxNeeds
    from codetaste.harness.testbed.testbed import Testbed
    from codetaste.sandbox.base import SandboxSpec
    from codetaste.swe_refactor.trials.agent.project import ProjectAccess
    from codetaste.swe_refactor.trials.sources import InstanceSource


@dataclass(slots=True)
class RepositoryRun(PatchRun):
    """One run of an agent on an instance.

    Attributes:
        source: where the instance is from.
        access: how its project is built.
        tree: the files before, on the host.
    """

    source: InstanceSource = field(kw_only=True)
    access: ProjectAccess = field(kw_only=True)
    tree: Tree = field(init=False)

    async def prepare_testbed(self) -> Testbed:
        """Return the files before as a repository of one commit: nothing else of the history is in it."""
        cache = self.services.cache
        self.tree = await _base_tree(self.source, cache)
        return await prepare_testbed(self.tree, cache)

    def sandbox_spec(self, needs: SandboxNeeds) -> SandboxSpec:
        """Return the sandbox: with the dependencies, and with the JDK of the build."""
        spec = super(RepositoryRun, self).sandbox_spec(needs)
        return replace(spec, mounts=(*spec.mounts, *self.access.mounts), env=self.access.env)

    async def fill(self, stack: AsyncExitStack) -> None:  # noqa: ARG002 - there are no services to end
        """Put the files, the task and the settings of the build tool into the sandbox.

        Raises:
            SandboxError: the sandbox cannot be filled.
        """
        files = {DESCRIPTION_PATH: f"{self.spec.task}\n".encode(), **self.access.files}
        await self.sandbox.put(testbed_archive(self.testbed, files))
        await self.access.copy_dependencies(self.sandbox)

    def counts(self, path: str) -> bool:
        """Return whether a new file can be a part of the answer."""
        return may_be_answer(path, self.tree.path)


async def _base_tree(source: InstanceSource, cache: Path) -> Tree:
    async def fill(into: Path) -> None:
        await source.repository.export(source.base_commit, into)

    cache = await to_thread.run_sync(cache.absolute)
    key = await to_thread.run_sync(opaque_name, cache, f"git-{source.base_commit}")
    return await cached_tree(cache, key, fill)
