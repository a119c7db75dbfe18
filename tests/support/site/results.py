"""Results of runs as a site gets them, of parts that a test has made."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from codetaste.evaluation.trials.records import TrialRecords
from codetaste.report.statistics.merge import merge_runs
from codetaste.results.read import RunResults
from codetaste.results.trial_studies import read_studies
from codetaste.site.build import open_site, site_files
from codetaste.site.site import Site
from codetaste.swe_refactor.report.merge import MergedRows


def make_site(roots: Sequence[Path] = (), **parts: Any) -> Site:
    """Return the site of results without trials, with these other parts."""
    known = {"passes": (), "environments": (), "answers": MergedRows(()), "problems": ()}
    known["studies"] = read_studies(roots, [])
    return open_site(
        RunResults(tuple(roots), records=TrialRecords(), trials=merge_runs(()), **{**known, **parts}), "runs"
    )


def site_texts(site: Site) -> dict[str, str]:
    """Return the text of each file by address, without assets, packed files and drawings."""
    made = {}
    for file in site_files(site):
        if not file.address.startswith(("assets/", "figures/")):
            made |= {
                each.address: each.make().decode("utf-8")
                for each in file.with_parts()
                if not each.address.endswith(".gz")
            }
    return made
