"""``[evaluate]``: what predictions are scored with."""

from __future__ import annotations

from pydantic import Field, field_validator

from codetaste.evaluation.exclusions import Exclusions
from codetaste.section import Section

BENCHMARK, DISCOVERED = "benchmark", "discover/"


class EvaluateConfig(Section):
    """How the trials of a run are scored; the section may be added when they are done already."""

    tests: bool = False
    """Whether PASS is wanted from test runs in containers. Nothing runs them yet: PASS is taken from recorded
    test metrics in any case, and true says so in a line."""
    baseline_runs: int = Field(default=5, ge=1, le=1000)
    """Test runs of R and of R∘X* each, that bound what passes (CodeTaste §4.1). Recorded baselines count all
    the runs that they have."""
    exclusions: Exclusions = Exclusions.PUBLISHED
    """Which files do not count for precision: those that the published harness leaves out, or none."""
    references: bool = True
    """Whether the golden patch and an empty one are scored too, as the agents ``golden_agent`` and
    ``null_agent``: they say whether an instance is sound."""
    rules: str = BENCHMARK
    """Whose rules: "benchmark", or "discover/ID" for those that this run finds with the model ID."""

    @field_validator("rules")
    @classmethod
    def _known_source(cls, rules: str) -> str:
        if rules != BENCHMARK and not (rules.startswith(DISCOVERED) and len(rules) > len(DISCOVERED)):
            raise ValueError('write "benchmark", or "discover/ID" with the id of one of discover.models')
        return rules

    @property
    def discovered_by(self) -> str | None:
        """The id of the model whose rules are taken, None for those of the benchmark."""
        return self.rules.removeprefix(DISCOVERED) if self.rules.startswith(DISCOVERED) else None
