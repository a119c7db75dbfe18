"""The context of the environment flow."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from codetaste.environment.images.names import ImageStage, image_name
from codetaste.environment.leak_search.secrets import NO_SECRETS, Secrets
from codetaste.errors import SandboxMissing
from codetaste.flows.agents.runners import CliAgentRunner
from codetaste.flows.inputs import InputSource

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from codetaste.benchmark.benchmark import Benchmark
    from codetaste.environment.config import EnvironmentConfig
    from codetaste.flows.agents.run import AgentServices
    from codetaste.flows.context import ModelSet
    from codetaste.flows.environment.plan import EnvironmentTask
    from codetaste.flows.environment.suites import SuiteServices
    from codetaste.harness.adapter import Adapter
    from codetaste.llm.prompts import Prompts

DOCKER, PODMAN = "docker", "podman"


@dataclass(frozen=True, slots=True)
class EnvironmentContext:
    """What all environments of a run share.

    Attributes:
        benchmark: the source of the instances, and of existing scripts.
        config: the section ``[environment]``.
        base_image: the image that environments are made from.
        suites: opens the sandboxes of the gates.
        hosts: what the agent and the setup scripts reach, as entries of the allow list.
        agents: what the runs of agents share.
        models: the open models.
        prompts: the prompts.
        secrets: the keys of the models, which no image may have.
    """

    benchmark: Benchmark
    config: EnvironmentConfig
    base_image: str
    suites: SuiteServices
    hosts: tuple[str, ...]
    agents: AgentServices
    models: ModelSet
    prompts: Prompts
    secrets: Secrets = NO_SECRETS

    @property
    def source(self) -> InputSource:
        """What the inputs of jobs are taken from."""
        return InputSource(self.benchmark, self.prompts, self.models.fingerprints)

    @property
    def out(self) -> Path:
        """The run's folder."""
        return self.agents.out

    @property
    def adapters(self) -> dict[str, Adapter]:
        """The adapters of the CLI agents, by agent id."""
        runners = self.agents.runners.items()
        return {name: each.adapter for name, each in runners if isinstance(each, CliAgentRunner)}

    async def check_engine(self, tasks: Iterable[EnvironmentTask]) -> None:
        """Check that images can be made if one of ``tasks`` needs that.

        Raises:
            SandboxMissing: sandboxes are no containers, or there is no base image.
            SandboxError: the engine does not answer.
        """
        building = [each for each in tasks if each.builds]
        if building and self.suites.sandboxes.kind not in {DOCKER, PODMAN}:
            raise SandboxMissing(
                "execution environments are container images, and commands run in "
                f"{self.suites.sandboxes.kind} here: start Docker or Podman, check the engine and socket of "
                "[sandbox] or of the command's options, and build the base image with "
                "codetaste image build --polyglot"
            )
        if building and not await self._has_images(building):
            raise SandboxMissing(
                f"{self.base_image}: no such image in {self.suites.sandboxes.kind}; environments are made "
                "from it: build it with codetaste image build --polyglot, or name another one "
                "(environment.image, or --image)"
            )

    async def _has_images(self, building: Iterable[EnvironmentTask]) -> bool:
        """Whether there is the base image, or everything that would be made from it."""
        # It loads the library of container engines, which only runs with environments need.
        from codetaste.environment.images.existing import find_image, find_published_image  # noqa: PLC0415

        sandboxes = self.suites.sandboxes
        if await find_image(sandboxes, self.base_image):
            return True
        for each in building:
            name = image_name(each.instance, ImageStage.RUNTIME)
            if each.proves or not await find_published_image(sandboxes, name):
                return False
        return True
