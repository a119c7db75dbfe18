"""What several flows share: the open models of a run, and the rule engine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from codetaste.llm.config import ModelConfig
    from codetaste.llm.metering.metered import MeteredModel
    from codetaste.rules.engine.install import RuleEngine
    from codetaste.rules.scan.model import Scanner


@dataclass(frozen=True, slots=True)
class ModelSet:
    """The open models of a run, their configs, and hashes of what determines their replies; all by id."""

    models: Mapping[str, MeteredModel]
    configs: Mapping[str, ModelConfig]
    fingerprints: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class ScanContext:
    """What is needed to match rules.

    Attributes:
        cache: the folder where trees are cached between runs.
        scanner: matches rules against trees and caches the results.
        engine: the rule engine; counts depend on its version.
        ignore_text: text of the benchmark's ignore file; counts depend on it.
    """

    cache: Path
    scanner: Scanner
    engine: RuleEngine
    ignore_text: str
