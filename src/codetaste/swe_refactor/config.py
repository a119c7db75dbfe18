"""The section ``[swe_refactor]``: how instances are built (§3.3) and models compared on them (§4)."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Literal

from pydantic import Field, model_validator

from codetaste.core.section import FilePath, Section
from codetaste.core.units import Bytes, Seconds, Usd
from codetaste.refactorings.config import RefactoringMinerConfig
from codetaste.retrieval.config import RetrievalConfig

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Self

RefactoringType = Literal[
    "Extract Method",
    "Move Method",
    "Inline Method",
    "Extract And Move Method",
    "Move And Inline Method",
    "Move And Rename Method",
]
NAME_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$"


class JavaConfig(Section):
    """`[swe_refactor.java]`: how Java projects are analysed, compiled and tested."""

    refactoring_miner: RefactoringMinerConfig = RefactoringMinerConfig()
    """How refactorings are detected."""
    jdt_time_limit: Seconds = Field(default=600.0, gt=0)
    """Time of one request to Eclipse JDT, such as the index of a project."""
    jdt_memory: Bytes = Field(default=2 * 1024**3, ge=64 * 1024**2)
    """Largest heap of a JVM with Eclipse JDT."""
    image: str = ""
    """Image with the JDKs, Maven and Gradle; by default the one that `codetaste image build --java` makes."""
    hosts: tuple[str, ...] = ()
    """Hosts that builds may reach while they fetch dependencies, beside the Maven repository."""
    compile_time_limit: Seconds = Field(default=900.0, gt=0)
    """Time to compile a source tree once."""
    fetch_time_limit: Seconds = Field(default=1800.0, gt=0)
    """Time to fetch all that a source tree needs."""
    test_time_limit: Seconds = Field(default=1800.0, gt=0)
    """Time of all tests of a source tree."""
    jdks: int = Field(default=4, ge=1)
    """How many JDKs are tried at most."""


class BuildConfig(JavaConfig):
    """`[swe_refactor.build]`: pure refactorings in the histories of Java projects become instances."""

    repositories: tuple[FilePath, ...] = Field(min_length=1)
    """Local clones of Java projects, bare or not."""
    commits: str = Field(default="HEAD", min_length=1)
    """The history that is read: a revision such as "main", or a range such as "v1.0..v2.0"."""
    newest: int | None = Field(default=None, ge=1)
    """Only so many of its commits, the newest ones; by default all."""
    types: tuple[RefactoringType, ...] = Field(
        default=(
            "Extract Method",
            "Move Method",
            "Inline Method",
            "Extract And Move Method",
            "Move And Inline Method",
            "Move And Rename Method",
        ),
        min_length=1,
    )
    """Types of refactorings that may become instances."""
    verify: bool = True
    """Step 4: whether candidates are compiled, tested and measured; without it all that step 3 leaves are
    instances, and none is verified."""


class StrategyKind(StrEnum):
    """How a model gets to its answer (§4.2 to §4.4)."""

    SIMPLE = "simple"
    """One prompt with what the instance says of its surroundings."""
    RAG = "rag"
    """The same with similar refactorings of other projects as examples (Appendix F)."""
    MULTI_AGENT = "multi-agent"
    """A developer with tools, and a reviewer that compiles, tests and checks what it answers (Appendix G)."""
    AGENT = "agent"
    """A coding agent in a sandbox with the repository (§4.4)."""


class StrategyConfig(Section):
    """`[[swe_refactor.strategies]]`: one way to get answers. Each model of it is compared with all others."""

    kind: StrategyKind
    """"simple", "rag", "multi-agent" or "agent"."""
    name: str = Field(default="", pattern=r"^$|" + NAME_PATTERN)
    """Its name in tables and keys; by default its kind."""
    models: tuple[str, ...] | None = Field(default=None, min_length=1)
    """Ids of [[models]], of which each answers all instances; by default all of them. Not for "agent"."""
    agents: tuple[str, ...] | None = Field(default=None, min_length=1)
    """Ids of [[agents]], only for "agent"; by default all of them. They have their own budgets."""
    attempts: int = Field(default=1, ge=1, le=1000)
    """Trials of each model at each instance."""
    tries: int = Field(default=1, ge=1, le=20)
    """Replies of "simple" and "rag": one that cannot be used is answered with what is wrong with it. The
    paper has one."""
    budget_usd: Usd | None = None
    """US dollars for one trial. Not for "agent"."""
    time_limit: Seconds = Field(default=30 * 60.0, gt=0)
    """Working time of the answer of one trial; waiting for a permit, a rate limit or money does not count.
    Not for "agent"."""
    max_output_tokens: int = Field(default=8192, ge=256)
    """The cap of one reply. Not for "agent"."""
    retrieval: RetrievalConfig | None = None
    """Where the examples of "rag" come from."""
    reviewer: str | None = None
    """The id of the model that reviews in "multi-agent"; by default it is the developer's."""
    rounds: int = Field(default=3, ge=1, le=20)
    """Answers of the developer in "multi-agent" at most: each but the last one is followed by a review."""
    max_turns: int = Field(default=20, ge=1, le=1000)
    """Replies at most in "multi-agent": of the developer in one round, and of the reviewer in one review."""

    @model_validator(mode="after")
    def _check_kind(self) -> Self:
        kind, given = self.kind, self.model_fields_set
        of_kind = {
            "retrieval": {StrategyKind.RAG},
            "tries": {StrategyKind.SIMPLE, StrategyKind.RAG},
            "reviewer": {StrategyKind.MULTI_AGENT},
            "rounds": {StrategyKind.MULTI_AGENT},
            "max_turns": {StrategyKind.MULTI_AGENT},
            "agents": {StrategyKind.AGENT},
            **dict.fromkeys(
                ("models", "budget_usd", "time_limit", "max_output_tokens"),
                set(StrategyKind) - {StrategyKind.AGENT},
            ),
        }
        for key, kinds in of_kind.items():
            if key in given and kind not in kinds:
                raise ValueError(f'{key} is not for kind = "{kind}"')
        if kind is StrategyKind.RAG and self.retrieval is None:
            raise ValueError('kind = "rag" needs retrieval, with the corpus of examples')
        return self

    @property
    def title(self) -> str:
        """Its name in tables and keys."""
        return self.name or self.kind.value

    @property
    def uses_agents(self) -> bool:
        """Whether coding agents answer, not models."""
        return self.kind is StrategyKind.AGENT

    def model_ids(self, models: Sequence[str]) -> list[str]:
        """Return the ids of all models that it calls, of agents none; ``models`` are all of the config."""
        named = [] if self.uses_agents else [*(self.models or models)]
        named += [self.reviewer] if self.reviewer is not None else []
        return [*named, *(name for _, name in (self.retrieval.models() if self.retrieval else ()))]

    def includes(self, agent_id: str) -> bool:
        """Whether the agent takes part."""
        return self.uses_agents and (self.agents is None or agent_id in self.agents)


class SampleConfig(Section):
    """`[swe_refactor.sample]`: the stratified sample of §4.4 in place of all instances."""

    size: int = Field(default=200, ge=1)
    """How many instances, half of them with at most ten executable lines, in the paper's mix of types."""
    seed: int = 0
    """Which ones."""


class SweRefactorConfig(Section):
    """`[swe_refactor]`: the second benchmark, SWE-Refactor. Either `build` or `strategies`."""

    build: BuildConfig | None = None
    """How its instances are built."""
    instances: FilePath | None = None
    """The file with the instances on which strategies are compared, in the published shape."""
    repositories: tuple[FilePath, ...] = ()
    """Local clones with the commits of these instances, bare or not."""
    select: tuple[str, ...] = ("*",)
    """Globs on the unique ids of the instances that are used."""
    types: tuple[RefactoringType, ...] | None = Field(default=None, min_length=1)
    """Only instances of these types."""
    sample: SampleConfig | None = None
    """Only a stratified sample of them."""
    strategies: tuple[StrategyConfig, ...] = ()
    """The strategies that are compared."""
    java: JavaConfig = JavaConfig()
    """How answers are compiled, tested and checked."""

    @model_validator(mode="after")
    def _check_what(self) -> Self:
        if self.build is not None:
            evaluation = ("instances", "repositories", "select", "types", "sample", "strategies", "java")
            if found := [key for key in evaluation if key in self.model_fields_set]:
                raise ValueError(
                    f"{found[0]} is for strategies, and build is for a config of its own; remove one of both"
                )
            return self
        if not self.strategies:
            raise ValueError("write build, or strategies with instances and repositories")
        if self.instances is None or not self.repositories:
            missing = "instances" if self.instances is None else "repositories"
            raise ValueError(f"strategies need {missing}")
        names = [each.title for each in self.strategies]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"two strategies are named {name!r}: give one a name")
        return self
