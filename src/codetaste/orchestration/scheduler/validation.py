"""Validation of the job graph before anything starts: duplicates, unknown needs, cycles, capacities."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

from codetaste.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from codetaste.orchestration.job import Job


def validate_kinds(jobs: Sequence[Job], handlers: Collection[str]) -> None:
    """Check that each kind of ``jobs`` is among ``handlers``, the kinds that have a handler.

    Raises:
        ConfigError: one line for each unknown kind.
    """
    unknown = {job.kind: job.key for job in jobs if job.kind not in handlers}
    if unknown:
        known = ", ".join(sorted(handlers)) or "none"
        raise ConfigError(
            *(f"job {key}: no handler for the kind {kind!r}; known: {known}" for kind, key in unknown.items())
        )


def validate_jobs(jobs: Sequence[Job], known: Collection[str], capacities: Mapping[str, float]) -> None:
    """Validate ``jobs`` that are added to a run with the job keys ``known``.

    Raises:
        ConfigError: duplicate keys, unknown needs, dependency cycles, demands beyond capacity.
    """
    new = {job.key: job for job in jobs}
    problems = [
        *_duplicates(jobs, known),
        *_resource_problems(jobs, capacities),
        *_unknown_needs(jobs, {*known, *new}),
    ]
    if not problems:
        problems.extend(_cycles(new))
    if problems:
        raise ConfigError(*problems)


def _duplicates(jobs: Sequence[Job], known: Collection[str]) -> Iterator[str]:
    seen: set[str] = set()
    for job in jobs:
        if job.key in seen or job.key in known:
            yield f"job {job.key}: added twice; keys must be unique in a run"
        seen.add(job.key)


def _resource_problems(jobs: Sequence[Job], capacities: Mapping[str, float]) -> Iterator[str]:
    for job in jobs:
        for resource, amount in job.resources.items():
            capacity = capacities.get(resource)
            if capacity is None:
                known = ", ".join(sorted(capacities)) or "none"
                yield f"job {job.key}: unknown resource {resource!r}; available: {known}"
            elif not 0 <= amount <= capacity:
                yield f"job {job.key}: needs {amount:g} {resource}, but the capacity is {capacity:g}"


def _unknown_needs(jobs: Sequence[Job], keys: Collection[str]) -> Iterator[str]:
    for job in jobs:
        for need in job.needs:
            if need not in keys:
                near = difflib.get_close_matches(need, keys, n=1)
                hint = f"; did you mean {near[0]}?" if near else ""
                yield f"job {job.key}: needs {need}, which is not a job of this run{hint}"


def _cycles(jobs: Mapping[str, Job]) -> Iterator[str]:
    """Report jobs that can never start because they need each other (Kahn's algorithm)."""
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
        # Every remaining job needs another remaining job: following needs must lead into a cycle.
        walk = [min(needs)]
        while (step := min(needs[walk[-1]])) not in walk:
            walk.append(step)
        cycle = [*walk[walk.index(step) :], step]
        yield f"jobs need each other in a cycle: {' → '.join(cycle)}"
