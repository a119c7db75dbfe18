"""The trials of one instance, as rows of the table that leads from the page of each to the others."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from markupsafe import Markup, escape

from codetaste.report.statistics.merge import track_mode_of
from codetaste.site.html.address import relative
from codetaste.site.html.templates import render_macro
from codetaste.site.html.visible import visible
from codetaste.site.site import trial_address
from codetaste.site.trial.facts import trial_rates

if TYPE_CHECKING:
    from collections.abc import Sequence

    from codetaste.evaluation.trials.records import TrialRecord
    from codetaste.site.site import Site
    from codetaste.site.trial.facts import ShownNumber

_MAX_ROWS = 60
_RATES = frozenset({"passed", "ifr", "alignment", "prec"})


@dataclass(frozen=True)
class RelatedTrials:
    """The trials of an instance; what a row of each has is made once, for the pages of all."""

    site: Site
    trials: Sequence[TrialRecord]

    def rows(self, own: TrialRecord) -> Markup:
        """Return the rows of all trials but ``own``, its other attempts first; there are at most sixty."""
        page = trial_address(own)
        rows = (
            f'<tr><th scope="row"><a href="{escape(relative(address, page))}">{cells}'
            for trial, address, cells in self._ordered(own)
        )
        return Markup("\n".join(rows))  # noqa: S704 - all parts are escaped or our own

    def _ordered(self, own: TrialRecord) -> list[tuple[TrialRecord, str, str]]:
        others = [each for each in self._made if each[0] is not own]
        same = _setting(own)
        return sorted(others, key=lambda each: _setting(each[0]) != same)[:_MAX_ROWS]

    @cached_property
    def _made(self) -> list[tuple[TrialRecord, str, str]]:
        """Each trial with its address and its cells after the beginning of the link."""
        return [(trial, trial_address(trial), self._cells(trial)) for trial in self.trials]

    def _cells(self, trial: TrialRecord) -> str:
        setting = track_mode_of(trial).title if trial.track else ""
        chip = render_macro("chip", self.site.facet(trial))
        rates = "".join(f'<td class="num">{_text(each.text)}</td>' for each in main_rates(trial))
        return (
            f"{_text(trial.agent)}</a></th><td>{_text(setting)}</td>"
            f'<td class="num">{trial.attempt}</td><td>{_text(trial.run)}</td><td>{chip}</td>{rates}</tr>'
        )


def main_rates(trial: TrialRecord) -> list[ShownNumber]:
    """Return the scores of a trial that other trials are listed with."""
    return [each for each in trial_rates(trial) if each.name in _RATES]


def _setting(trial: TrialRecord) -> tuple[str, str, str]:
    return trial.agent, trial.track, trial.mode


def _text(text: str) -> Markup:
    return escape(visible(text))
