"""``AgentRun``: one run of one agent in one fresh sandbox, whose output is extracted on every ending.

::

    async with PatchRun(spec, services, job) as run:
        await run.run_agent()
    run.patch
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from codetaste.benchmark.layout import DESCRIPTION_FILES, FinishReason, Track
from codetaste.environment.system_services import system_services
from codetaste.errors import CodetasteError, ModelSetupError, SandboxError
from codetaste.evaluation.test_runs.suite import MAX_SETUP_S
from codetaste.flows.agents.inputs import OWN_LOOP_PROMPT
from codetaste.flows.agents.result import AgentRunResult, utc_now
from codetaste.harness.testbed.testbed import prepare_testbed, testbed_archive
from codetaste.orchestration.retry import mark_given_up
from codetaste.sandbox.base import TASK
from codetaste.sandbox.provider import sandbox_spec
from codetaste.source.checkout import checkout_trees
from codetaste.source.tree.store import Tree

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path
    from types import TracebackType
    from typing import Self

    from anyio import CapacityLimiter

    from codetaste.environment.images.runtime import RuntimeEnvironment
    from codetaste.harness.config import AgentConfig
    from codetaste.harness.testbed.testbed import Testbed
    from codetaste.llm.messages import Request
    from codetaste.orchestration.job import JobContext
    from codetaste.sandbox.base import Egress, Mount, Sandbox, SandboxProvider, SandboxSpec
    from codetaste.sandbox.config import SandboxConfig
    from codetaste.source.origin import Origin

DESCRIPTION_PATH = f"{TASK}/{DESCRIPTION_FILES[Track.INSTRUCTED]}"
"""Path of the task description in the sandbox; the agent's prompt has the same text."""
_LEAST_LIFETIME_S = 6 * 3600.0


class SandboxNeeds(NamedTuple):
    """What an agent needs of its sandbox: mounts, and a way to its model."""

    mounts: tuple[Mount, ...]
    egress: Egress


class AgentRunner(Protocol):
    """How one agent of the config is run: by the own loop, or as a CLI agent in the sandbox."""

    @property
    def version(self) -> str:
        """The version of the agent: codetaste's own, or the CLI agent's release."""
        ...

    @property
    def published_name(self) -> dict[str, Any]:
        """Its ``name``, ``version`` and ``provider`` in ``agent_config.json``."""
        ...

    @property
    def limits(self) -> Mapping[str, int]:
        """Limits that it enforces itself: a run that one of them cut continues once it is raised."""
        ...

    def first_request(self, task: str, system_prompt: str = OWN_LOOP_PROMPT) -> Request | None:
        """Return a request that costs no more than the first model call; None where that is unknown."""
        ...

    async def prepare(self) -> SandboxNeeds:
        """Install the agent if necessary, and return what it needs of its sandbox.

        Raises:
            ToolMissing: the CLI agent cannot be installed on this host.
        """
        ...

    async def run(self, run: AgentRun) -> None:
        """Run the agent in ``run.sandbox`` and fill in ``run.result``."""
        ...


@dataclass(frozen=True, slots=True)
class AgentServices:
    """What all agent runs of one session share.

    Attributes:
        out: the run's folder.
        cache: the folder where trees and testbeds are cached between runs.
        sandboxes: opens the sandboxes that agents run in.
        sandbox_config: the section ``[sandbox]``.
        runners: how each agent is run, by agent id.
        extraction_limiter: limits concurrent patch extractions, because each has a list of R's files in
            memory, and all agents may end at the same moment.
    """

    out: Path
    cache: Path
    sandboxes: SandboxProvider
    sandbox_config: SandboxConfig
    runners: Mapping[str, AgentRunner]
    extraction_limiter: CapacityLimiter


@dataclass(frozen=True, slots=True)
class AgentRunSpec:
    """What is run: an agent, the code that it gets, and its whole prompt.

    ``model_label`` is the display name of its model. ``name`` distinguishes several runs of one job; "" where
    there is one. ``track`` and ``mode`` are those of its trial. ``system_prompt`` names the system prompt of
    the own loop. ``environment`` is that of the instance; without it the sandbox has the config's image.
    """

    agent: AgentConfig
    origin: Origin
    task: str
    model_label: str
    name: str = ""
    track: str = ""
    mode: str = ""
    system_prompt: str = OWN_LOOP_PROMPT
    environment: RuntimeEnvironment | None = None


@dataclass(slots=True)
class AgentRun(ABC):
    """One agent run. The sandbox has R and the task, and nothing else of the instance.

    Leaving the block extracts the output from the stopped sandbox, on every ending: success, time limit,
    budget, crash, a sandbox that died, cancellation. A subclass decides what the output is, and removes
    ``token`` from it: that of the run's session at the gateway, b"" without one.
    """

    spec: AgentRunSpec
    services: AgentServices
    job: JobContext
    result: AgentRunResult = field(default_factory=AgentRunResult)
    token: bytes = b""
    sandbox: Sandbox = field(init=False)
    testbed: Testbed = field(init=False)
    _stack: AsyncExitStack = field(default_factory=AsyncExitStack, init=False)
    _ended: bool = field(default=False, init=False)
    _extracted: bool = field(default=False, init=False)
    _extraction_error: CodetasteError | None = field(default=None, init=False)

    @abstractmethod
    async def extract(self) -> None:
        """Take the output from the stopped sandbox.

        Raises:
            SandboxError: the sandbox cannot be read.
        """

    async def collect(self) -> None:
        """Stop the sandbox and take the output.

        Raises:
            SandboxError: the sandbox cannot be stopped or read.
        """
        await self.sandbox.stop()
        await self.extract()

    @property
    def file_key(self) -> str:
        """The beginning of the names of this run's files in the run's folder."""
        return f"{self.job.key}.{self.spec.name}" if self.spec.name else self.job.key

    async def __aenter__(self) -> Self:
        """Open a sandbox with R and the task.

        Raises:
            SandboxError: the sandbox could not be opened.
            ToolMissing: the CLI agent cannot be installed on this host.
        """
        self.testbed = await self.prepare_testbed()
        needs = await self.services.runners[self.spec.agent.id].prepare()
        async with AsyncExitStack() as stack:
            opening = self.services.sandboxes.open(self.sandbox_spec(needs))
            self.sandbox = await stack.enter_async_context(opening)
            await self.fill(stack)
            stack.push_async_callback(self._stop_and_extract)
            self._stack = stack.pop_all()
        return self

    async def prepare_testbed(self) -> Testbed:
        """Return what /testbed has before the agent starts: R alone."""
        trees = await checkout_trees(self.spec.origin, self.services.cache)
        return await prepare_testbed(Tree(trees.base, trees.base_digest), self.services.cache)

    def sandbox_spec(self, needs: SandboxNeeds) -> SandboxSpec:
        """Return the sandbox that the agent works in."""
        environment = self.spec.environment
        of_environment: dict[str, Any] = {}
        if environment is not None:
            of_environment = {"image": environment.image_id, "privileges": environment.privileges}
        return sandbox_spec(
            self.services.sandbox_config,
            self.job.key,
            mounts=needs.mounts,
            egress=needs.egress,
            lifetime_s=max(_LEAST_LIFETIME_S, 4 * self.spec.agent.time_limit),
            **of_environment,
        )

    async def fill(self, stack: AsyncExitStack) -> None:
        """Put R and the task into the sandbox, and start what the environment's tests need.

        Raises:
            SandboxError: the sandbox cannot be filled, or the environment does not start.
        """
        environment = self.spec.environment
        prepared = environment is not None and environment.testbed_commit == self.testbed.commit
        description = {DESCRIPTION_PATH: f"{self.spec.task}\n".encode()}
        await self.sandbox.put(testbed_archive(self.testbed, description, with_tree=not prepared))
        if environment is not None:
            services = system_services(self.sandbox, environment.privileges, MAX_SETUP_S)
            if problem := await stack.enter_async_context(services):
                raise SandboxError(f"the environment {environment.image} does not start: {problem}")

    async def run_agent(self) -> None:
        """Run the agent until it ends, or until its time or its sandbox does."""
        try:
            with self.job.budget.deadline() as scope:
                await self.services.runners[self.spec.agent.id].run(self)
            if scope.cancelled_caught:
                self.result.finish_reason = FinishReason.TIMEOUT
            else:
                self._ended = True
        except SandboxError:
            if self.sandbox.end is None:
                raise

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Extract the output and close the sandbox; an exception in flight has precedence over new ones.

        Raises:
            SandboxError: the output cannot be extracted, or the sandbox died without the agent's fault.
            ModelUnavailable: the provider stayed unusable after all retries.
        """
        await self._stack.__aexit__(kind, error, trace)
        if error is None:
            self._raise_fault()

    async def _stop_and_extract(self) -> None:
        try:
            if self._ended:
                await self._try_extract()
        finally:
            if not self._extracted:
                with self.job.cleanup_scope():
                    await self._try_extract()

    async def _try_extract(self) -> None:
        """Stop the sandbox and extract the output; an error must not hide why the run ended."""
        self.result.finished_at = self.result.finished_at or utc_now()
        try:
            await self.collect()
        except CodetasteError as error:
            self._extraction_error = error
        self._extracted = True

    def _raise_fault(self) -> None:
        """Raise if the run has no valid result although the agent is not to blame."""
        result, end = self.result, self.sandbox.end
        unclear = result.finish_reason in {FinishReason.UNKNOWN, FinishReason.EXECUTION_ERROR}
        if end and end.reason.caused_by_agent and unclear:
            result.finish_reason, result.message = FinishReason.EXECUTION_ERROR, f"the sandbox ended: {end}"
        if not self._extracted:
            raise SandboxError("the agent's output could not be collected from its sandbox in time")
        if self._extraction_error is not None:
            raise self._extraction_error
        if end and not end.reason.caused_by_agent:
            raise SandboxError(f"the sandbox ended: {end}")
        failure = result.last_failure
        if failure is None or not failure.cause.is_infrastructure:
            return
        # With a model that has answered, a request that does not suit it is the agent's own mistake.
        of_agent = isinstance(failure, ModelSetupError) and failure.setting == "options"
        if not (result.turns and (of_agent or result.finish_reason.by_limit)):
            raise mark_given_up(failure)
