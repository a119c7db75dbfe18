"""``SetupRun``: a setup agent in a container with sudo; its output are the scripts and a setup image."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from anyio import to_thread

from codetaste.environment.images.clean import clean_sandbox
from codetaste.environment.images.existing import forget_image
from codetaste.environment.leak_search.secrets import GATEWAY_TOKEN
from codetaste.environment.project import read_project_names
from codetaste.environment.scripts import MAX_BYTES, SCRIPTS, EnvironmentScripts, read_scripts_archive
from codetaste.errors import ConfigError, SandboxError
from codetaste.flows.agents.run import AgentRun
from codetaste.flows.environment.result import store_scripts
from codetaste.harness.testbed.testbed import prepare_testbed, testbed_archive
from codetaste.sandbox.base import CommandLimits, Privileges
from codetaste.sandbox.docker.provider import commit_sandbox
from codetaste.sandbox.egress import join_egress
from codetaste.sandbox.provider import sandbox_spec
from codetaste.source.checkout import checkout_trees
from codetaste.source.tree.store import Tree

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from contextlib import AsyncExitStack

    from codetaste.environment.project import ProjectNames
    from codetaste.flows.agents.run import SandboxNeeds
    from codetaste.flows.environment.suites import SuiteServices
    from codetaste.harness.testbed.testbed import Testbed
    from codetaste.orchestration.journal.journal import Json
    from codetaste.sandbox.base import SandboxSpec

_CLEAN_S = 120.0
_PREPARE = f"mkdir -p {SCRIPTS} && chown 1000:1000 {SCRIPTS}"
_COMMIT_S = 1800.0
# Files of CLI agents may have the token of their session at the gateway, which is dead by then.
_REMOVE_TOKENS = (
    f"grep -rlsIE --null '{GATEWAY_TOKEN}' /home /root /etc /opt /scripts | xargs -0 -r rm -f --; exit 0"
)


@dataclass(slots=True)
class SetupRun(AgentRun):
    """One run of a setup agent.

    Attributes:
        image: what the sandbox starts from.
        name: of the setup image that it leaves.
        suites: has what it reaches besides its model.
        scripts: what it wrote; None with a ``problem``.
        setup_image: id of the image, "" if none could be made.
        problem: why there is no environment to try.
        names: of the repository's own packages, which are not in the image.
    """

    image: str = field(kw_only=True)
    name: str = field(kw_only=True)
    suites: SuiteServices = field(kw_only=True)
    scripts: EnvironmentScripts | None = field(default=None, init=False)
    setup_image: str = field(default="", init=False)
    problem: str = field(default="the agent left no scripts", init=False)
    names: ProjectNames = field(default_factory=dict, init=False)

    async def prepare_testbed(self) -> Testbed:
        """Return a repository of two commits: HEAD~1 is R, HEAD is R∘X*."""
        trees = await checkout_trees(self.spec.origin, self.services.cache)
        self.names = await to_thread.run_sync(read_project_names, trees.base, trees.golden)
        base, golden = Tree(trees.base, trees.base_digest), Tree(trees.golden, trees.golden_digest)
        return await prepare_testbed(base, self.services.cache, golden)

    def sandbox_spec(self, needs: SandboxNeeds) -> SandboxSpec:
        """Return the sandbox: with sudo, and with the registries."""
        return sandbox_spec(
            self.services.sandbox_config,
            self.job.key,
            image=self.image,
            privileges=Privileges.SUDO,
            mounts=needs.mounts,
            egress=join_egress(needs.egress, self.suites.network),
            lifetime_s=4 * self.spec.agent.time_limit + 3600.0,
        )

    async def fill(self, stack: AsyncExitStack) -> None:
        """Put the code and the task into the sandbox, and make a folder for the scripts.

        Raises:
            SandboxError: the sandbox cannot be filled.
        """
        await super(SetupRun, self).fill(stack)
        if self.suites.home:
            await self.sandbox.put(testbed_archive(self.testbed, self.suites.home, with_tree=False))
        await self.sandbox.run(["/bin/sh", "-c", _PREPARE], limits=CommandLimits(_CLEAN_S), root=True)

    async def collect(self) -> None:
        """Read the scripts, commit the sandbox without /testbed, and stop it.

        Raises:
            SandboxError: the sandbox is gone, or cannot be committed.
        """
        try:
            await self.extract()
        finally:
            await self.sandbox.stop()

    async def record_scripts(self, scripts: EnvironmentScripts) -> None:
        """Record what the agent left, so that it is not paid again if it cannot be committed."""
        record: Json = {
            "run": self.result.to_json(),
            "image": "",
            "problem": "",
            "scripts": await store_scripts(scripts, self.job),
        }
        await self.job.record(scripts_effect(self.spec.name), record)

    async def extract(self) -> None:
        """Read the scripts and commit the sandbox; what an agent left wrong is the ``problem``."""
        if self.sandbox.end is not None:
            self.problem = f"the sandbox ended: {self.sandbox.end}"
            return
        try:
            self.scripts = await _read_scripts(self)
        except ConfigError as error:
            self.problem = "; ".join(error.problems)
            return
        await self.record_scripts(self.scripts)
        await clean_sandbox(self.sandbox, self.names)
        await self.sandbox.run(["/bin/sh", "-c", _REMOVE_TOKENS], limits=CommandLimits(_CLEAN_S), root=True)
        # An earlier process may have been killed right after its commit.
        await forget_image(self.suites.sandboxes, self.name)
        self.setup_image = await commit_sandbox(self.sandbox, self.name, "setup", within_s=_COMMIT_S)
        self.problem = ""


def scripts_effect(name: str) -> str:
    """Return the name of the effect with what the agent of the run ``name`` left, without an image."""
    return f"{name}/scripts"


async def _read_scripts(run: SetupRun) -> EnvironmentScripts:
    """Read /scripts, which the agent wrote.

    Raises:
        ConfigError: it is not what the contract wants; one line for each fault.
        SandboxError: it cannot be read.
    """
    archive = bytearray()

    async def take(piece: bytes) -> None:
        room = 4 * MAX_BYTES - len(archive)
        archive.extend(piece[:room])

    async def chunks() -> AsyncIterator[bytes]:
        # As long as the token, so that the archive stays one.
        yield bytes(archive).replace(run.token, b"x" * len(run.token))

    command = ["tar", "-C", "/", "-cf", "-", "--", SCRIPTS.lstrip("/")]
    done = await run.sandbox.run(command, limits=CommandLimits(_CLEAN_S), sink=take, root=True)
    if done.exit_code is None:
        raise SandboxError(f"{SCRIPTS} could not be read within {_CLEAN_S:.0f} s")
    return await read_scripts_archive(chunks())
