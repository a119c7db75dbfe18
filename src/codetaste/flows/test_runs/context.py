"""What all test runs of a run share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from codetaste.environment.runtime import RuntimeEnvironment
    from codetaste.evaluation.test_runs.suite import SuiteLimits
    from codetaste.sandbox.base import Egress, SandboxProvider
    from codetaste.sandbox.config import SandboxConfig

SUITES_FOLDER = ".suites"
"""The folder of a run for what sandboxes of test runs have mounted; it is removed at the end."""


@dataclass(frozen=True, slots=True)
class SuiteServices:
    """What test runs need.

    Attributes:
        sandboxes: opens their sandboxes, in a container engine.
        sandbox_config: the section ``[sandbox]``.
        cache: the folder where trees and testbeds are cached between runs.
        folder: a folder of the run for the scripts that sandboxes mount, and for patched trees.
        network: what a test run reaches if its environment needs the network: the registries of this host.
        home: files in HOME with the settings of tools for these, by path.
        limits: time limits of the scripts.
        cpus: cores of one test run.
        memory_bytes: memory at which a test run is killed.
        memory_reserved_bytes: memory that a test run is guaranteed.
    """

    sandboxes: SandboxProvider
    sandbox_config: SandboxConfig
    cache: Path
    folder: Path
    network: Egress
    home: Mapping[str, bytes]
    limits: SuiteLimits
    cpus: float
    memory_bytes: int
    memory_reserved_bytes: int

    def scripts_folder(self, environment: RuntimeEnvironment) -> Path:
        """Return the folder with the scripts of an environment, which the job of its image has written."""
        return self.folder / environment.key
