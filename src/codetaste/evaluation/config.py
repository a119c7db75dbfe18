"""``[evaluate]``: how predictions are scored."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import AliasChoices, Field, field_validator, model_validator

from codetaste.core.section import Section
from codetaste.core.units import Bytes, format_size
from codetaste.evaluation.changed_lines import Exclusions
from codetaste.refactorings.config import RefactoringMinerConfig

if TYPE_CHECKING:
    from typing import Self

BENCHMARK_RULES, DISCOVER_PREFIX = "benchmark", "discover/"


class EvaluateConfig(Section):
    """How the trials of a run are scored; the section may be added after the trials have ended."""

    tests: bool = False
    """Whether to run the tests of each instance in containers for PASS, on R, on R∘X* and on each prediction;
    otherwise PASS is computed from recorded results. It needs an execution environment of the instance."""
    baseline_runs: int = Field(default=5, ge=1, le=1000)
    """Test runs on each of R and R∘X* that determine the PASS thresholds (CodeTaste §4.1). A recorded
    baseline counts all of its runs."""
    test_cpus: float = Field(default=1.0, gt=0, le=1024)
    """Cores of one test run; as many runs as the host has cores for are made at once."""
    test_memory: Bytes = Field(default=4 * 1024**3, ge=16 * 1024**2)
    """Memory at which a test run is killed."""
    test_memory_reserved: Bytes = Field(default=1024**3, ge=16 * 1024**2)
    """Memory that a test run is guaranteed: no more runs are made at once than the host has memory for. At
    most `test_memory`, and nine tenths of the host's memory."""
    exclusions: Exclusions = Exclusions.PUBLISHED
    """Which files do not count for precision: those that the published harness leaves out, or none."""
    pseudo_agents: bool = Field(default=True, validation_alias=AliasChoices("pseudo_agents", "references"))
    """Whether to score the golden patch and an empty patch too, as the agents ``golden_agent`` and
    ``null_agent``: they show whether an instance is valid."""
    refactorings: bool = False
    """Whether to compare the refactorings of each prediction with the human's, by RefactoringMiner, where a
    patch changes files in a language that it reads: Java, Python, Kotlin, TypeScript, JavaScript."""
    refactoring_miner: RefactoringMinerConfig = RefactoringMinerConfig()
    """How RefactoringMiner is run for that."""
    rules: str = BENCHMARK_RULES
    """Source of the rules: "benchmark", or "discover/ID" for the rules that this run discovers with the model
    ID."""

    @field_validator("rules")
    @classmethod
    def _check_rules(cls, rules: str) -> str:
        if rules != BENCHMARK_RULES and not (
            rules.startswith(DISCOVER_PREFIX) and len(rules) > len(DISCOVER_PREFIX)
        ):
            raise ValueError('write "benchmark", or "discover/ID" with the id of one of discover.models')
        return rules

    @model_validator(mode="after")
    def _check_memory(self) -> Self:
        if "test_memory_reserved" in self.model_fields_set and self.test_memory_reserved > self.test_memory:
            raise ValueError(
                f"test_memory_reserved is {format_size(self.test_memory_reserved)}, but a test run is killed "
                f"at {format_size(self.test_memory)}: lower it, or raise test_memory"
            )
        return self

    @property
    def guaranteed_memory(self) -> int:
        """Memory that a test run is guaranteed; its default is no more than the run may use."""
        return min(self.test_memory_reserved, self.test_memory)

    @property
    def discovery_model(self) -> str | None:
        """Id of the discovery model whose rules are used, None for the benchmark's rules."""
        return self.rules.removeprefix(DISCOVER_PREFIX) if self.rules.startswith(DISCOVER_PREFIX) else None
