"""What all passes of rule discovery share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from codetaste.flows.inputs import InputSource

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from codetaste.agent.tool import Tool
    from codetaste.benchmark.benchmark import Benchmark
    from codetaste.flows.context import ModelSet, ScanContext
    from codetaste.flows.discover.plan import DiscoverConfig
    from codetaste.llm.prompts import Prompts
    from codetaste.sandbox.base import Shell


@dataclass(frozen=True, slots=True)
class RuleToolServices:
    """What the rule agent's tools work with.

    Attributes:
        benchmark: the source of the tasks.
        scan: matches rules against trees.
        open_shell: opens a shell that sees one tree.
        command_memory: bytes of memory that one shell command may use.
    """

    benchmark: Benchmark
    scan: ScanContext
    open_shell: Callable[[Path], Shell]
    command_memory: int


@dataclass(frozen=True, slots=True)
class DiscoveryContext:
    """The context that all discovery passes of a run share; ``out`` is the run's folder."""

    out: Path
    config: DiscoverConfig
    models: ModelSet
    tools: tuple[Tool, ...]
    prompts: Prompts
    services: RuleToolServices

    @property
    def benchmark(self) -> Benchmark:
        """The source of the tasks."""
        return self.services.benchmark

    @property
    def source(self) -> InputSource:
        """What the inputs of passes are taken from."""
        return InputSource(self.benchmark, self.prompts, self.models.fingerprints)
