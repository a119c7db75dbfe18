"""``CurrentSite``: the pages of what runs have brought about so far, read again after trials have ended."""

from __future__ import annotations

import time
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import anyio

from codetaste.errors import CodetasteError
from codetaste.evaluation.trials.records import TrialRecords
from codetaste.report.statistics.merge import merge_runs
from codetaste.results.problems import make_problem
from codetaste.results.read import RunResults, read_results
from codetaste.site.build import open_site, site_files
from codetaste.site.live.background import Workers
from codetaste.site.live.result_pages import result_pages, subject_of_job
from codetaste.site.live.site_parts import SiteFiles
from codetaste.site.site import NavigationLink
from codetaste.swe_refactor.report.merge import MergedRows

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from codetaste.benchmark.benchmark import Benchmark
    from codetaste.site.live.background import BackgroundCall
    from codetaste.site.live.result_pages import Subject
    from codetaste.site.site import Site

_MIN_INTERVAL_S = 5.0
_MAX_WAIT_S = 600.0
_MAX_SHARE = 0.004
"""Reading again by itself takes at most this share of a CPU; a reader who opens a page waits less."""
_EAGER_SHARE = 0.25


class ResultPage(NamedTuple):
    """The address of a page with a result, and the number of the reading that found it first."""

    address: str
    reading: int


class Pages(NamedTuple):
    """What one reading found.

    Attributes:
        reading: its number; 0 is before the first one.
        site: the site.
        files: its files by address.
        results: the pages with the results of jobs.
    """

    reading: int
    site: Site
    files: SiteFiles
    results: Mapping[Subject, ResultPage]


class CurrentSite:
    """The site of the last reading.

    Attributes:
        pages: what can be shown.
    """

    def __init__(self, roots: Sequence[Path], benchmark: Benchmark | None, title: str) -> None:
        self._roots, self._benchmark, self._title = tuple(roots), benchmark, title
        self._workers = Workers(1)
        self._reading: BackgroundCall[None] | None = None
        self._read_at, self._took_s = -_MAX_WAIT_S, 0.0
        self._ended_jobs = -1
        self.pages = self._make(_empty(self._roots), None)

    async def refresh(self, ended_jobs: int, wait_s: float = 0.0) -> None:
        """Read the runs again if jobs have ended since the last reading, and that was long enough ago.

        Args:
            ended_jobs: how many jobs have ended in all runs.
            wait_s: how long a reader waits for the result; 0 for one who asks again.
        """
        if self._reading is None or self._reading.has_ended:
            least_s, share = (0.0, _EAGER_SHARE) if wait_s else (_MIN_INTERVAL_S, _MAX_SHARE)
            due = self._read_at + min(max(least_s, self._took_s / share), _MAX_WAIT_S)
            if ended_jobs == self._ended_jobs or time.monotonic() < due:
                return
            self._reading = self._workers.start("read", partial(self._read, ended_jobs))
        with anyio.move_on_after(wait_s):
            await self._reading.result()

    def result_page(self, run: Path, key: str) -> ResultPage | None:
        """Return the page with the result of the job ``key`` of a run; None if there is none."""
        return self.pages.results.get(subject_of_job(run, key))

    def _read(self, ended_jobs: int) -> None:
        began = time.thread_time()
        try:
            self.pages = self._make(_read(self._roots, self._benchmark, self.pages.site.results), self.pages)
        finally:
            self._ended_jobs = ended_jobs
            self._took_s = time.thread_time() - began
            self._read_at = time.monotonic()

    def _make(self, results: RunResults, earlier: Pages | None) -> Pages:
        site = open_site(results, self._title, live=True)
        site = replace(site, sections=(NavigationLink("Live", "live/index.html", "v"), *site.sections))
        reading = 0 if earlier is None else earlier.reading + 1
        known = {} if earlier is None else earlier.results
        found = {}
        for subject, address in result_pages(self._roots, results):
            before = known.get(subject)
            same = before is not None and before.address == address
            found[subject] = before if before is not None and same else ResultPage(address, reading)
        return Pages(reading, site, SiteFiles(site_files(site)), found)


def _read(roots: Sequence[Path], benchmark: Benchmark | None, earlier: RunResults) -> RunResults:
    """Read all runs; one without results, or one that cannot be read, does not hide the others.

    Of runs that cannot be read at all now, what was read earlier remains, with the problem.
    """
    try:
        return read_results(roots, benchmark)
    except CodetasteError as error:
        problem = make_problem(str(error))
    readable = [root for root in roots if len(roots) > 1 and _is_readable(root, benchmark)]
    try:
        return read_results(readable, benchmark) if readable else replace(earlier, problems=(problem,))
    except CodetasteError as error:
        return replace(earlier, problems=(make_problem(str(error)),))


def _is_readable(root: Path, benchmark: Benchmark | None) -> bool:
    try:
        read_results([root], benchmark)
    except CodetasteError:
        return False
    return True


def _empty(roots: Sequence[Path]) -> RunResults:
    nothing = TrialRecords()
    return RunResults(tuple(roots), nothing, merge_runs(nothing.records), (), (), MergedRows(()), ())
