"""The context of the environment flow."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

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

    def check_engine(self, tasks: Iterable[EnvironmentTask]) -> None:
        """Check that images can be made if one of ``tasks`` needs that.

        Raises:
            SandboxMissing: sandboxes are no containers.
        """
        if self.suites.sandboxes.kind not in {DOCKER, PODMAN} and any(each.builds for each in tasks):
            raise SandboxMissing(
                "execution environments are container images, and commands run in "
                f"{self.suites.sandboxes.kind} here: start Docker or Podman, check the engine and socket of "
                "[sandbox] or of the command's options, and build the base image with "
                "codetaste image build --polyglot"
            )
