"""Whether a set of jobs can be run at all: every fault is found before anything starts."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

from codetaste.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from codetaste.orchestration.job import Job


def check_jobs(jobs: Sequence[Job], known: Collection[str], capacities: Mapping[str, float]) -> None:
    """Check jobs that are to be added beside those whose keys are ``known``.

    Raises:
        ConfigError: keys given twice, needs that nobody meets, circles, demands beyond capacity.
    """
    new = {job.key: job for job in jobs}
    problems = [*_doubles(jobs, known), *_resources(jobs, capacities), *_unmet(jobs, {*known, *new})]
    if not problems:
        problems.extend(_circles(new))
    if problems:
        raise ConfigError(*problems)


def _doubles(jobs: Sequence[Job], known: Collection[str]) -> Iterator[str]:
    seen: set[str] = set()
    for job in jobs:
        if job.key in seen or job.key in known:
            yield f"job {job.key}: added twice; keys must be unique in a run"
        seen.add(job.key)


def _resources(jobs: Sequence[Job], capacities: Mapping[str, float]) -> Iterator[str]:
    for job in jobs:
        for resource, amount in job.resources.items():
            capacity = capacities.get(resource)
            if capacity is None:
                yield f"job {job.key}: nobody provides the resource {resource!r}"
            elif not 0 <= amount <= capacity:
                yield f"job {job.key}: asks for {amount:g} {resource}, there can only be {capacity:g}"


def _unmet(jobs: Sequence[Job], keys: Collection[str]) -> Iterator[str]:
    for job in jobs:
        for need in job.needs:
            if need not in keys:
                near = difflib.get_close_matches(need, keys, n=1)
                hint = f"; did you mean {near[0]}?" if near else ""
                yield f"job {job.key}: needs {need}, which is not a job of this run{hint}"


def _circles(jobs: Mapping[str, Job]) -> Iterator[str]:
    """Find the jobs that can never start because they need each other (Kahn's algorithm)."""
    needs = {key: {need for need in job.needs if need in jobs} for key, job in jobs.items()}
    dependents: dict[str, list[str]] = {key: [] for key in jobs}
    for key, needed in needs.items():
        for need in needed:
            dependents[need].append(key)
    ready = [key for key, needed in needs.items() if not needed]
    while ready:
        done = ready.pop()
        del needs[done]
        for key in dependents[done]:
            needs[key].discard(done)
            if not needs[key]:
                ready.append(key)
    if needs:
        # Every one left needs another one left: walking along needs must come back to where it was.
        walk = [min(needs)]
        while (step := min(needs[walk[-1]])) not in walk:
            walk.append(step)
        circle = [*walk[walk.index(step) :], step]
        yield f"jobs need each other in a circle: {' → '.join(circle)}"
