"""What a config asks for, all flows together, and what it can take at most; nothing is done yet."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from codetaste.benchmark.catalog import Track
from codetaste.errors import ConfigError
from codetaste.flows import passes as discovery
from codetaste.flows.scorings import scorings
from codetaste.flows.trials import StepKind, Trial, trials, with_needed
from codetaste.mistakes import suggestion

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from codetaste.benchmark.catalog import Benchmark
    from codetaste.benchmark.instance import Instance
    from codetaste.evaluation.config import EvaluateConfig
    from codetaste.flows.passes import DiscoverConfig, Pass
    from codetaste.flows.scorings import Scoring
    from codetaste.flows.trials import Step, TrackConfig
    from codetaste.harness.config import AgentConfig


@dataclass(frozen=True, slots=True)
class Sections:
    """What of a config asks for work: who looks for rules, who works on what, how predictions are scored."""

    discover: DiscoverConfig | None = None
    agents: Sequence[AgentConfig] = ()
    tracks: Sequence[TrackConfig] = ()
    evaluate: EvaluateConfig | None = None


@dataclass(frozen=True, slots=True)
class Agenda:
    """Passes of rule discovery, steps of trials, and predictions to be scored, needed ones included.

    ``chosen`` are the keys that were asked for; the others are only needed by these.
    """

    passes: tuple[Pass, ...] = ()
    steps: tuple[Step, ...] = ()
    scorings: tuple[Scoring, ...] = ()
    chosen: frozenset[str] = frozenset()

    @property
    def trials(self) -> tuple[Trial, ...]:
        """The trials that the steps belong to."""
        return tuple({step.trial.key: step.trial for step in self.steps}.values())

    def worst_case_usd(self, discover: DiscoverConfig | None) -> Decimal | None:
        """Return the most that all of it can cost by the flows' own budgets; None where one has none."""
        found = discovery.worst_case_usd(discover, self.passes) if discover is not None else Decimal(0)
        return None if found is None else found + sum(trial.agent.budget_usd for trial in self.trials)

    def check_descriptions(self, benchmark: Benchmark) -> None:
        """Check that every task has the texts that somebody is to be told.

        Raises:
            ConfigError: one line for each text that is missing, empty or not UTF-8.
        """
        told, problems = list(self._told()), list[str]()
        for track in Track:
            instances = {instance.id: instance for instance, each in told if each is track}
            try:
                benchmark.check_descriptions(instances.values(), track)
            except ConfigError as error:
                problems.extend(error.problems)
        if problems:
            raise ConfigError(*problems)

    def _told(self) -> Iterator[tuple[Instance, Track]]:
        yield from ((each.instance, Track.INSTRUCTED) for each in self.passes)
        for step in self.steps:
            # A judge knows the whole description, whatever the agents know.
            judged = step.kind is StepKind.JUDGE
            yield step.trial.instance, Track.INSTRUCTED if judged else step.trial.track.track


def agenda(
    wanted: Sections, instances: Sequence[Instance], labels: Mapping[str, str], only: Sequence[str] = ()
) -> Agenda:
    """List what is to be done.

    Args:
        wanted: what the config asks for.
        instances: of the benchmark.
        labels: of the models, by id.
        only: globs on keys of jobs; others are left out but for those that these need.

    Raises:
        ConfigError: a glob fits none.
    """
    passes = discovery.plan(wanted.discover, instances, labels) if wanted.discover is not None else ()
    steps = [
        step for trial in trials(wanted.agents, wanted.tracks, instances, labels) for step in trial.steps
    ]
    scored = scorings(wanted.evaluate, steps, instances) if wanted.evaluate is not None else ()
    keys = [
        *(each.key for each in passes),
        *(step.key for step in steps),
        *(scoring.key for scoring in scored),
    ]
    for glob in only:
        if not any(fnmatchcase(key, glob) for key in keys):
            raise ConfigError(f"--only {glob}: fits no job{suggestion(glob, keys)}")
    chosen = frozenset(key for key in keys if not only or any(fnmatchcase(key, glob) for glob in only))
    scored = tuple(each for each in scored if each.key in chosen)
    needed = chosen.union(*(each.needs for each in scored))
    return Agenda(
        tuple(each for each in passes if each.key in needed),
        with_needed(step for step in steps if step.key in needed),
        scored,
        chosen,
    )
