"""``Site``: what all pages are made of."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Concatenate, NamedTuple, ParamSpec, TypeVar

from codetaste.benchmark.layout import GOLDEN
from codetaste.report.statistics.aggregate import Aggregation
from codetaste.report.statistics.comparison import compare_systems
from codetaste.report.statistics.merge import track_mode_of, track_mode_order
from codetaste.report.statistics.view import aggregate_trials
from codetaste.results.rows.rule_rows import rule_rows
from codetaste.results.trial_outcomes import read_outcomes
from codetaste.site.html.address import file_name
from codetaste.site.overview.rule_tallies import tally_rules

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from codetaste.evaluation.trials.records import ReadProblem, TrialRecord
    from codetaste.report.statistics.comparison import Comparison
    from codetaste.report.statistics.view import AggregatedTrials
    from codetaste.results.outcome import OutcomeFacet
    from codetaste.results.read import RunResults
    from codetaste.results.rows.rule import RuleVerdict
    from codetaste.results.trial_outcomes import TrialOutcomes
    from codetaste.site.overview.rule_tallies import RuleTally

P = ParamSpec("P")
T = TypeVar("T")


class NavigationLink(NamedTuple):
    """A part of the site in its navigation; ``g`` and then ``key`` go to it."""

    title: str
    address: str
    key: str = ""


@dataclass(frozen=True)
class Site:
    """The results that are shown, and how.

    What several pages need is computed once, when it is first needed.

    Attributes:
        results: what was read.
        title: of the site.
        sections: the navigation.
        live: whether a server shows it while runs go on.
        redacted: whether its files are written without what looks like a key.
    """

    results: RunResults
    title: str
    sections: tuple[NavigationLink, ...] = ()
    live: bool = False
    redacted: bool = False

    @cached_property
    def views(self) -> dict[Aggregation, AggregatedTrials]:
        """The trials under both aggregations; empty without trials."""
        trials = self.results.trials
        return {each: aggregate_trials(trials, each) for each in Aggregation} if trials.agents else {}

    @cached_property
    def comparisons(self) -> dict[Aggregation, Comparison]:
        """The agents compared under both aggregations, as ``codetaste report`` does."""
        return {aggregation: compare_systems(view) for aggregation, view in self.views.items()}

    @cached_property
    def mode_comparison(self) -> Comparison:
        """The tracks and modes of each agent compared, strict, as the table "modes" has them."""
        return compare_systems(self.views[Aggregation.STRICT], "track_mode")

    @cached_property
    def trials(self) -> tuple[TrialRecord, ...]:
        """The trials of agents, by instance, agent (the best first), track and mode, and attempt."""
        view = self.views.get(Aggregation.STRICT)
        ranks = {agent: rank for rank, agent in enumerate(view.ranked_agents())} if view else {}

        def order(trial: TrialRecord) -> tuple[object, ...]:
            return (
                trial.instance,
                ranks[trial.agent],
                *track_mode_order(track_mode_of(trial)),
                trial.attempt,
            )

        return tuple(sorted(self.results.trials.agents, key=order))

    @cached_property
    def trials_by_instance(self) -> Mapping[str, Sequence[TrialRecord]]:
        """The trials of each instance, in the order of ``trials``."""
        found: defaultdict[str, list[TrialRecord]] = defaultdict(list)
        for trial in self.trials:
            found[trial.instance].append(trial)
        return found

    @cached_property
    def _outcomes(self) -> TrialOutcomes:
        return read_outcomes(self.results)

    @cached_property
    def days(self) -> tuple[str, ...]:
        """The days (UTC, ISO 8601) on which the runs' first job began and the last one ended; () unknown."""
        jobs = [job for run in self._outcomes.jobs.values() for job in run.jobs.values()]
        times = [time for job in jobs for time in (job.started_at, job.ended_at) if time]
        return (min(times)[:10], max(times)[:10]) if times else ()

    @cached_property
    def rule_verdicts(self) -> Sequence[RuleVerdict]:
        """Whether each trial satisfies each rule. Blocking, and seconds long, when it is first read."""
        return rule_rows(self.results, counted=False)[0]

    @cached_property
    def rule_tallies(self) -> Mapping[str, Sequence[RuleTally]]:
        """How many trials satisfy each rule, by instance. Blocking when it is first read."""
        return tally_rules(self.rule_verdicts, GOLDEN)

    @cached_property
    def problems(self) -> tuple[ReadProblem, ...]:
        """What could not be read."""
        return self.results.problems

    @cached_property
    def _made(self) -> dict[tuple[object, ...], Any]:
        return {}

    def once(self, make: Callable[Concatenate[Site, P], T], *arguments: P.args, **named: P.kwargs) -> T:
        """Return what ``make`` returns for the site and hashable arguments; it is called once for them."""
        key = (make, *arguments, *named.items())
        if key not in self._made:
            self._made[key] = make(self, *arguments, **named)
        made: T = self._made[key]
        return made

    @cached_property
    def _facets(self) -> dict[Path, OutcomeFacet]:
        """The facets of the trials that were asked for, by folder: each is on many pages."""
        return {}

    def labels(self, trial: TrialRecord) -> tuple[str, ...]:
        """Return the failure labels that agents gave a trial, in words."""
        return self.results.studies.of(trial).label_words

    def facet(self, trial: TrialRecord) -> OutcomeFacet:
        """Return what became of a trial."""
        if trial.folder not in self._facets:
            self._facets[trial.folder] = self._outcomes.of(trial)
        return self._facets[trial.folder]


def trial_folder(trial: TrialRecord) -> str:
    """Return the folder of a trial's page and data: ``trials/RUN/AGENT/TRACK-MODE/INSTANCE/ATTEMPT``."""
    parts = (
        trial.run,
        trial.agent,
        f"{trial.track}-{trial.mode}" if trial.mode else trial.track or "any",
        trial.instance,
        str(trial.attempt),
    )
    return "/".join(["trials", *map(file_name, parts)])


def trial_address(trial: TrialRecord) -> str:
    """Return the address of a trial's page; ``#L…``, ``#rule-…`` and ``#event-…`` name places in it."""
    return f"{trial_folder(trial)}/index.html"


def agent_address(agent: str) -> str:
    """Return the address of an agent's page."""
    return f"agents/{file_name(agent)}/index.html"


def setting_name(setting: str) -> str:
    """Return the part of addresses for a track and mode, by its title: "open-plan"."""
    return file_name(setting.lower().replace(" ", "-"))


def setting_address(setting: str) -> str:
    """Return the address of the page of a track and mode, by its title."""
    return f"settings/{setting_name(setting)}/index.html"


def instance_folder(instance: str) -> str:
    """Return the folder of an instance's page and data: its golden patch and rules are there once."""
    return f"instances/{file_name(instance)}"


def instance_address(instance: str) -> str:
    """Return the address of an instance's page; ``#rule-ID`` names a rule."""
    return f"{instance_folder(instance)}/index.html"
