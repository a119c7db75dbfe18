"""``Site``: what all pages are made of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from codetaste.site.html.address import file_name

if TYPE_CHECKING:
    from codetaste.evaluation.trials.records import TrialRecord
    from codetaste.results.read import RunResults


class NavigationLink(NamedTuple):
    """A part of the site in its navigation."""

    title: str
    address: str


@dataclass(frozen=True, slots=True)
class Site:
    """The results that are shown, and how.

    Attributes:
        results: what was read.
        title: of the site.
        sections: the navigation.
        live: whether a server shows it while runs go on.
    """

    results: RunResults
    title: str
    sections: tuple[NavigationLink, ...] = ()
    live: bool = False


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
