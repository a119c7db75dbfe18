"""What all descriptions of a run share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from codetaste.flows.inputs import InputSource

if TYPE_CHECKING:
    from pathlib import Path

    from codetaste.benchmark.benchmark import Benchmark
    from codetaste.flows.context import ModelSet
    from codetaste.flows.describe.plan import DescribeConfig
    from codetaste.llm.prompts import Prompts

DESCRIPTIONS_FOLDER = "describe"
"""The folder of a run with the descriptions that it has made."""


@dataclass(frozen=True, slots=True)
class DescriptionContext:
    """The context of the descriptions; ``out`` is the run's folder, ``cache`` has the checked out trees."""

    out: Path
    cache: Path
    config: DescribeConfig
    benchmark: Benchmark
    models: ModelSet
    prompts: Prompts

    @property
    def source(self) -> InputSource:
        """What the inputs of descriptions are taken from."""
        return InputSource(self.benchmark, self.prompts, self.models.fingerprints)

    @property
    def folder(self) -> Path:
        """The folder, in the published layout, that the descriptions are written to."""
        return self.out / DESCRIPTIONS_FOLDER
