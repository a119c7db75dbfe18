"""The trials that ``[[swe_refactor.strategies]]`` selects: strategy × model × instance × attempt."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from codetaste.benchmark.instances_csv import is_path_name
from codetaste.core.hashing import json_digest
from codetaste.core.text import did_you_mean, one_line
from codetaste.errors import ConfigError
from codetaste.orchestration.budget.cost import BudgetLimits
from codetaste.swe_refactor.dataset.format import read_instances
from codetaste.swe_refactor.report.sample.stratified import draw_sample
from codetaste.swe_refactor.report.trial_row import TrialKey

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence
    from decimal import Decimal
    from pathlib import Path

    from codetaste.harness.config import AgentConfig
    from codetaste.swe_refactor.config import StrategyConfig, SweRefactorConfig
    from codetaste.swe_refactor.dataset.instance import RefactoringInstance

_COMMIT = re.compile("[0-9a-f]{40}|[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class StrategyTrial:
    """One attempt of a model, in one strategy, at one instance.

    Attributes:
        strategy: how it gets to its answer.
        system: id of the model, or of the agent.
        model_id: id of the model; of an agent that of its model.
        model_label: display name of the model.
        scripted: whether the model is scripted.
        instance: the instance.
        digest: of the instance.
        attempt: from 1.
        agent: the agent, of a strategy with agents.
    """

    strategy: StrategyConfig
    system: str
    model_id: str
    model_label: str
    scripted: bool
    instance: RefactoringInstance
    digest: str
    attempt: int
    agent: AgentConfig | None = None

    @property
    def _key(self) -> TrialKey:
        return TrialKey(self.strategy.title, self.system, self.instance.unique_id, self.attempt)

    @property
    def name(self) -> str:
        """What identifies it within the run."""
        return self._key.name

    @property
    def answer_key(self) -> str:
        """The key of the job that gets the answer."""
        return self._key.answer_key

    @property
    def score_key(self) -> str:
        """The key of the job that measures the answer."""
        return f"score/{self.name}"

    @property
    def base_key(self) -> str:
        """The key of the job that builds the files before the instance's commit."""
        return f"base/{self.instance.unique_id}"

    @property
    def install_key(self) -> str:
        """The key of the job that installs the agent's program; "" without one."""
        return "" if self.agent is None or self.agent.uses_own_loop else f"install/{self.agent.id}"

    @property
    def group(self) -> str:
        """The name under which its answer is counted."""
        hint = ", scripted" if self.scripted and self.system != "scripted" else ""
        return f"{self.strategy.title} by {self.system}{hint}"

    @property
    def title(self) -> str:
        """The display name."""
        again = f", attempt {self.attempt}" if self.attempt > 1 else ""
        instance = self.instance
        owner = instance.class_name_before.rpartition(".")[2]
        return f"{instance.type} {owner}#{instance.method_name} {self.group}{again}"

    @property
    def worst_case_usd(self) -> Decimal | None:
        """What it can cost; None without a budget, or if models describe or embed all examples for it."""
        retrieval = self.strategy.retrieval
        return None if retrieval is not None and retrieval.models() else self.limits.usd

    @property
    def limits(self) -> BudgetLimits:
        """The limits of its answer."""
        if self.agent is not None:
            return BudgetLimits(usd=self.agent.budget_usd, working_s=self.agent.time_limit)
        return BudgetLimits(usd=self.strategy.budget_usd, working_s=self.strategy.time_limit)


@dataclass(frozen=True, slots=True)
class ModelNames:
    """Display names of models by id, and the ids of scripted ones."""

    models: Mapping[str, str]
    scripted: Collection[str]


def select_instances(section: SweRefactorConfig, base_dir: Path) -> tuple[RefactoringInstance, ...]:
    """Return the instances that the section selects, in the order of their file. Blocking.

    Raises:
        ConfigError: the file cannot be used, or nothing is selected; keys are those of the section.
    """
    assert section.instances is not None  # noqa: S101 - the section checks it
    path = base_dir / section.instances.expanduser()
    found = _of_patterns(read_instances(path), section.select)
    for each in found:
        if not is_path_name(each.unique_id):
            raise ConfigError(f"{path}: uniqueId {one_line(each.unique_id)} cannot be the name of a file")
        if not _COMMIT.fullmatch(each.commit_id):
            raise ConfigError(f"{path}: {each.unique_id}: commitId is no full commit hash")
        if not each.diff_locations:
            raise ConfigError(f"{path}: {each.unique_id}: diffLocations is empty")
    if section.types is not None:
        found = tuple(each for each in found if each.type in section.types)
    if section.sample is not None:
        chosen = set(draw_sample(found, section.sample.size, section.sample.seed).ids)
        found = tuple(each for each in found if each.unique_id in chosen)
    if not found:
        raise ConfigError(f"{path}: no instance is selected; see swe_refactor.select and swe_refactor.types")
    return found


def _of_patterns(
    instances: Sequence[RefactoringInstance], patterns: Sequence[str]
) -> tuple[RefactoringInstance, ...]:
    ids = [each.unique_id for each in instances]
    problems = [
        f"swe_refactor.select: {pattern!r} matches no instance{did_you_mean(pattern, ids)}"
        for pattern in patterns
        if not any(fnmatchcase(name, pattern) for name in ids)
    ]
    if problems:
        raise ConfigError(*problems)
    return tuple(
        each for each in instances if any(fnmatchcase(each.unique_id, pattern) for pattern in patterns)
    )


def resolve_strategies(
    section: SweRefactorConfig, base_dir: Path, agents: Sequence[AgentConfig], names: ModelNames
) -> tuple[StrategyTrial, ...]:
    """List the trials of ``[swe_refactor]``, whose paths are relative to ``base_dir``. Blocking.

    Raises:
        ConfigError: one line for each problem, with its key.
    """
    problems = [
        f"swe_refactor.repositories: {path}: no such folder"
        for path in section.repositories
        if not (base_dir / path.expanduser()).is_dir()
    ]
    instances: tuple[RefactoringInstance, ...] = ()
    try:
        instances = select_instances(section, base_dir)
    except ConfigError as error:
        problems.extend(f"swe_refactor.instances: {problem}" for problem in error.problems)
    if problems:
        raise ConfigError(*problems)
    return plan_strategies(section.strategies, instances, agents, names)


def plan_strategies(
    strategies: Iterable[StrategyConfig],
    instances: Sequence[RefactoringInstance],
    agents: Sequence[AgentConfig],
    names: ModelNames,
) -> tuple[StrategyTrial, ...]:
    """List the trials, those of one instance together.

    Args:
        strategies: of the config.
        instances: the selected ones.
        agents: all agents.
        names: of all models.
    """
    systems: list[tuple[StrategyConfig, str, str, AgentConfig | None]] = []
    for strategy in strategies:
        if strategy.uses_agents:
            wanted = [each for each in agents if strategy.includes(each.id)]
            systems.extend((strategy, each.id, each.model, each) for each in wanted)
        else:
            systems.extend((strategy, each, each, None) for each in strategy.models or names.models)
    digests = [(each, json_digest(dict(each.document))) for each in instances]
    return tuple(
        StrategyTrial(
            strategy,
            system,
            model,
            names.models[model],
            model in names.scripted,
            instance,
            digest,
            attempt,
            agent,
        )
        for instance, digest in digests
        for strategy, system, model, agent in systems
        for attempt in range(1, strategy.attempts + 1)
    )
