"""The section ``[discover]``, the discovery passes that it selects, and their worst-case cost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pydantic import Field

from codetaste.benchmark.layout import Track
from codetaste.core.section import Section
from codetaste.core.units import Seconds, Usd
from codetaste.flows.job_keys import pass_key, sources_key
from codetaste.orchestration.budget.cost import BudgetLimits
from codetaste.rules.registration import Direction

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from decimal import Decimal

    from codetaste.benchmark.instance import Instance

DEFAULT_TOOLS = tuple(f"codetaste.agent.rule_tools:{name}" for name in ("bash_explore", "register", "finish"))


class DiscoverConfig(Section):
    """``[discover]``: models and tools of rule discovery, and their budget and limits."""

    models: tuple[str, ...] = Field(min_length=1)
    """Ids of ``[[models]]``; each model discovers its own set of rules."""
    tools: tuple[str, ...] = Field(default=("default",), min_length=1)
    """Import paths of tools, or ``file.py:name`` beside the config file; "default" names our own three."""
    budget_usd: Usd | None = None
    """US dollars for one instance and model. Each of the two passes has half of it, and what one leaves goes
    to the other."""
    time_limit: Seconds | None = 3 * 3600.0
    """Working time of one instance and model, shared by the passes like ``budget_usd``. Waiting for a permit,
    a rate limit or budget does not count."""
    max_turns: int = Field(default=80, ge=1)
    """Model calls of one pass."""
    max_output_tokens: int = Field(default=8192, ge=256)
    """The cap of one reply."""

    @property
    def pass_limits(self) -> BudgetLimits:
        """The limits that a pass begins with: half of those of both."""
        usd, seconds = self.budget_usd, self.time_limit
        return BudgetLimits(
            usd=None if usd is None else usd / 2, working_s=None if seconds is None else seconds / 2
        )

    @property
    def tool_paths(self) -> tuple[str, ...]:
        """The tools, with those that "default" stands for."""
        return tuple(
            path for each in self.tools for path in (DEFAULT_TOOLS if each == "default" else (each,))
        )


@dataclass(frozen=True, slots=True)
class DiscoveryPass:
    """One discovery job: an instance, a model and a direction."""

    instance: Instance
    model_id: str
    direction: Direction
    model_label: str
    """Display name of the model; that of a scripted model says that it is scripted."""
    description_key: str = ""
    """The key of the job that makes the instructed description; "" where there is one."""

    @property
    def key(self) -> str:
        """The job's key."""
        return pass_key(self.model_id, self.instance, self.direction)

    @property
    def other_key(self) -> str:
        """The key of the pass for the other direction."""
        (other,) = set(Direction) - {self.direction}
        return pass_key(self.model_id, self.instance, other)

    @property
    def sources_key(self) -> str:
        """The key of the job that checks out the instance's two trees."""
        return sources_key(self.instance)

    @property
    def needs(self) -> tuple[str, ...]:
        """The keys of the jobs that must have a result first."""
        return tuple(filter(None, (self.sources_key, self.description_key)))

    @property
    def title(self) -> str:
        """The job's display name."""
        return f"{self.instance.id} {self.group}"

    @property
    def group(self) -> str:
        """The name under which it is counted."""
        return f"{self.direction.value} ({self.model_label})"


def plan_passes(
    config: DiscoverConfig,
    instances: Iterable[Instance],
    labels: Mapping[str, str],
    descriptions: Mapping[tuple[str, Track], str] | None = None,
) -> tuple[DiscoveryPass, ...]:
    """List the passes: two for each instance and model.

    ``labels`` are display names by model id, ``descriptions`` the keys of the jobs that make descriptions, by
    instance id and track.
    """
    made = descriptions or {}
    return tuple(
        DiscoveryPass(
            instance, model_id, direction, labels[model_id], made.get((instance.id, Track.INSTRUCTED), "")
        )
        for instance in instances
        for model_id in dict.fromkeys(config.models)
        for direction in Direction
    )


def worst_case_usd(config: DiscoverConfig, passes: Iterable[DiscoveryPass]) -> Decimal | None:
    """Return the maximum cost of ``passes`` under the section's budget; None where it sets none."""
    if config.budget_usd is None:
        return None
    return config.budget_usd * len({(each.model_id, each.instance.id) for each in passes})
