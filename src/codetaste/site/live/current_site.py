"""``CurrentSite``: the pages of what runs have brought about so far, read again after trials have ended."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import anyio
from anyio import to_thread

from codetaste.benchmark.trial_identity import trial_of_step
from codetaste.core.text import printable
from codetaste.errors import CodetasteError
from codetaste.evaluation.trials.records import ProblemKind, ReadProblem, TrialRecords
from codetaste.report.statistics.merge import merge_runs
from codetaste.results.read import RunResults, read_results
from codetaste.site.build import open_site, site_files
from codetaste.site.live.site_parts import SiteFiles
from codetaste.site.site import NavigationLink, trial_address
from codetaste.swe_refactor.report.merge import MergedRows

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from codetaste.benchmark.benchmark import Benchmark
    from codetaste.site.site import Site

_MIN_INTERVAL_S = 5.0
_MAX_SHARE = 0.02
"""Reading again by itself takes at most this share of a CPU; a reader who opens a page waits less."""
_EAGER_SHARE = 0.25
_EVALUATE = "evaluate/"
_INFER = "infer/"


class Pages(NamedTuple):
    """The site of one reading, its files by address, and trials by run and prefix of their jobs' keys."""

    site: Site
    files: SiteFiles
    trials: Mapping[tuple[Path, str], str]


class CurrentSite:
    """The site of the last reading.

    Attributes:
        pages: what can be shown.
    """

    def __init__(self, roots: Sequence[Path], benchmark: Benchmark | None, title: str) -> None:
        self._roots, self._benchmark, self._title = tuple(roots), benchmark, title
        self._reading = anyio.Lock()
        self._read_at, self._took_s = 0.0, 0.0
        self._ended_jobs = -1
        self.pages = _pages(self._roots, _empty(self._roots, ()), title)

    async def refresh(self, ended_jobs: int, *, eager: bool = False) -> None:
        """Read the runs again if jobs have ended since the last reading, and that was long enough ago.

        Args:
            ended_jobs: how many jobs have ended in all runs.
            eager: whether a reader waits for the result.
        """
        async with self._reading:
            share = _EAGER_SHARE if eager else _MAX_SHARE
            due = self._read_at + max(0.0 if eager else _MIN_INTERVAL_S, self._took_s / share)
            if ended_jobs == self._ended_jobs or (self._read_at and time.monotonic() < due):
                return
            began = time.monotonic()
            self.pages = await to_thread.run_sync(self._read, abandon_on_cancel=True)
            self._ended_jobs = ended_jobs
            self._read_at = time.monotonic()
            self._took_s = self._read_at - began

    def trial_page(self, root: Path, key: str) -> str:
        """Return the address of the page of what the job ``key`` of a run worked on; "" if there is none."""
        identity = trial_of_step(key)
        trial = identity.key if identity is not None else f"{_INFER}{key.removeprefix(_EVALUATE)}"
        return self.pages.trials.get((root, trial), "")

    def _read(self) -> Pages:
        return _pages(self._roots, _read(self._roots, self._benchmark), self._title)


def _pages(roots: Sequence[Path], results: RunResults, title: str) -> Pages:
    """Return the pages of results."""
    site = open_site(results, title, live=True)
    site = replace(site, sections=(NavigationLink("Live", "live/index.html", "v"), *site.sections))
    # Merging may have given agents other names; a folder has one trial.
    addresses = {trial.folder: trial_address(trial) for trial in results.trials.agents}
    trials = {
        (root, record.identity.key): addresses[record.folder]
        for root in roots
        for record in results.records.records
        if record.folder in addresses and record.folder.is_relative_to(root)
    }
    return Pages(site, SiteFiles(site_files(site)), trials)


def _read(roots: Sequence[Path], benchmark: Benchmark | None) -> RunResults:
    """Read all runs; one without results, or one that cannot be read, does not hide the others."""
    try:
        return read_results(roots, benchmark)
    except CodetasteError as error:
        problem = _problem(error)
    readable = [root for root in roots if len(roots) > 1 and _is_readable(root, benchmark)]
    try:
        return read_results(readable, benchmark) if readable else _empty(roots, (problem,))
    except CodetasteError as error:
        return _empty(roots, (_problem(error),))


def _is_readable(root: Path, benchmark: Benchmark | None) -> bool:
    try:
        read_results([root], benchmark)
    except CodetasteError:
        return False
    return True


def _problem(error: CodetasteError) -> ReadProblem:
    location, _, rest = str(error).partition(": ")
    return ReadProblem(ProblemKind.UNREADABLE, printable(location), printable(rest or str(error)))


def _empty(roots: Sequence[Path], problems: tuple[ReadProblem, ...]) -> RunResults:
    nothing = TrialRecords()
    return RunResults(
        tuple(roots), None, nothing, merge_runs(nothing.records), (), (), MergedRows(()), problems
    )
