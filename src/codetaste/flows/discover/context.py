"""What all passes of rule discovery share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from codetaste.agent.tool import Tool
    from codetaste.benchmark.benchmark import Benchmark
    from codetaste.llm.metering.metered import MeteredModel
    from codetaste.rules.scan.model import Scanner
    from codetaste.sandbox.base import Shell


@dataclass(frozen=True, slots=True)
class DiscoveryContext:
    """The context that all discovery passes of a run share.

    Attributes:
        benchmark: the source of the tasks.
        out: the run's folder.
        cache: the folder where trees are cached between runs.
        scanner: matches rules against trees.
        open_shell: opens a shell that sees one tree.
        command_memory: bytes of memory that one shell command may use.
        engine_version: version of the rule engine; counts depend on it.
        engine_label: name and version of the rule engine, as recorded in results.
        ignore_text: text of the benchmark's ignore file; counts depend on it.
        warnings: messages for the user.
    """

    benchmark: Benchmark
    out: Path
    cache: Path
    scanner: Scanner
    open_shell: Callable[[Path], Shell]
    command_memory: int
    engine_version: str
    engine_label: str
    ignore_text: str
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DiscoveryModels:
    """Models by id, a fingerprint of what determines each model's replies, and the rule agent's tools."""

    models: Mapping[str, MeteredModel]
    fingerprints: Mapping[str, str]
    tools: tuple[Tool, ...]
