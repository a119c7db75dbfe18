"""Places of a leaderboard: agents that cannot be told apart share one.

An agent's place is one more than the number of agents that are significantly better by the primary measure,
so that no agent is called better than another one without evidence. Being told apart is no equivalence: of
three agents the first may be better than the last, and neither be told apart from the one between; therefore
each agent also has the list of those from which it is not told apart.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from codetaste.report.statistics.comparison import Comparison


class Place(NamedTuple):
    """The place of a system in one setting.

    ``tied`` are the systems that were tested with it, and from which it cannot be told apart.
    """

    number: int
    tied: tuple[str, ...]


def find_places(comparison: Comparison, setting: str) -> dict[str, Place]:
    """Return the place of every system with a mean in ``setting`` by the primary measure, the best first."""
    means = {
        each.system: each.interval.mean
        for each in comparison.estimates
        if each.setting == setting and each.measure == comparison.primary and each.interval.mean is not None
    }
    better: dict[str, set[str]] = {system: set() for system in means}
    tied: dict[str, set[str]] = {system: set() for system in means}
    for test in comparison.tests:
        if test.setting != setting or test.measure != comparison.primary:
            continue
        if test.significant:
            winner, loser = (test.first, test.second)[:: 1 if test.difference > 0 else -1]
            better[loser].add(winner)
        else:
            tied[test.first].add(test.second)
            tied[test.second].add(test.first)
    order = sorted(means, key=lambda system: (len(better[system]), -means[system], system))
    return {
        system: Place(1 + len(better[system]), tuple(each for each in order if each in tied[system]))
        for system in order
    }
