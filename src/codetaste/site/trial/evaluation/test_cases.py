"""The tests of a trial one by one, where its run has a report of them, beside those of R and R∘X*."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from codetaste.benchmark.trial_identity import trial_of_step
from codetaste.errors import CodetasteError
from codetaste.evaluation.test_runs.cases import CaseStatus
from codetaste.orchestration.journal.blobs import BLOBS_FOLDER, Blobs

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from codetaste.site.trial.transcript.trial_jobs import TrialJobs

_MAX_LISTED = 200
_FIRST = (CaseStatus.ERROR, CaseStatus.FAILED)


@dataclass(frozen=True, slots=True)
class ShownCase:
    """One test: its name, how it ended, and how it ended without the patch and with the golden one."""

    name: str
    status: str
    base: str
    golden: str


@dataclass(frozen=True, slots=True)
class TestCases:
    """The tests of a trial.

    Attributes:
        counts: how many ended how.
        listed: tests that failed, then those that ended otherwise than without the patch; up to 200.
        more: how many of these are not listed.
    """

    counts: tuple[tuple[str, int], ...]
    listed: tuple[ShownCase, ...]
    more: int


def read_test_cases(jobs: TrialJobs) -> TestCases | None:
    """Return the tests of a trial; None if its run has no report of them. Blocking."""
    trial = trial_of_step(f"{jobs.key}/execute")
    if jobs.run is None or trial is None:
        return None
    own = _cases(jobs, f"tests/{trial.name}")
    if not own:
        return None
    base, golden = (_cases(jobs, f"tests/{side}/{trial.instance}/1") for side in ("base", "golden"))
    shown = [
        ShownCase(name, status, base.get(name, ""), golden.get(name, ""))
        for name, status in own.items()
        if status in _FIRST or (base and base.get(name, "") != status)
    ]
    shown.sort(key=lambda each: (each.status not in _FIRST, each.name))
    counts = Counter(own.values())
    return TestCases(
        tuple((status.value, counts[status.value]) for status in CaseStatus if counts[status.value]),
        tuple(shown[:_MAX_LISTED]),
        max(0, len(shown) - _MAX_LISTED),
    )


def _cases(jobs: TrialJobs, key: str) -> Mapping[str, str]:
    """Return the status of each test in the result of a job, by name."""
    result = jobs.result(key)
    digest = result.get("cases") if isinstance(result, dict) else None
    if jobs.run is None or not isinstance(digest, str):
        return {}
    return _stored(jobs.run, digest)


@lru_cache(maxsize=4)  # trials of one instance share the tests of R and R∘X*
def _stored(run: Path, digest: str) -> Mapping[str, str]:
    try:
        value: Any = json.loads(Blobs(run / BLOBS_FOLDER).read(digest))
    except (CodetasteError, ValueError, RecursionError):
        return {}
    known = set(CaseStatus)
    return {
        name: status
        for name, status in (value.items() if isinstance(value, dict) else ())
        if isinstance(status, str) and status in known
    }
