"""The page of one trial."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from codetaste.site.html.site_file import SiteFile
from codetaste.site.html.templates import render_page
from codetaste.site.site import trial_address

if TYPE_CHECKING:
    from collections.abc import Iterator

    from codetaste.evaluation.trials.records import TrialRecord
    from codetaste.site.site import Site


def trial_files(site: Site) -> Iterator[SiteFile]:
    """Yield the page of each trial, and the data beside it."""
    for trial in site.results.trials.agents:
        yield SiteFile(trial_address(trial), partial(_page, site, trial))


def _page(site: Site, trial: TrialRecord) -> bytes:
    title = f"{trial.agent} on {trial.instance}"
    return render_page(site, "trial.html", trial_address(trial), title, trial=trial)
