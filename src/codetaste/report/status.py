"""How far a run has come, read from its journal: also while another process is at work on it."""

from __future__ import annotations

import time
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

from codetaste.errors import ConfigError, JournalError
from codetaste.orchestration.history import History
from codetaste.orchestration.journal import NAME, read_from
from codetaste.orchestration.storage import owner_of
from codetaste.report.progress import printable
from codetaste.report.run_status import Capacity, JobStatus, ModelStatus, RunStatus, Spend, Wait
from codetaste.report.sights import RATE_WINDOW_S, JobSight, Sights

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from codetaste.orchestration.history import Call, JobHistory

LIVE = frozenset({"queued", "running", "retrying"})
PLACES = {"jobs": "a place among the jobs", "sandbox": "a sandbox", "cpu": "a CPU"}
"""What a queued job waits for, by resource."""
_MINUTE_S = 60.0


class Watched:
    """A run that is looked at again and again: each look reads only what was appended since the last.

    Raises:
        ConfigError: there is no run.
    """

    def __init__(self, run: Path) -> None:
        self.directory = find_run(run)
        self._end = 0
        self.history = History()
        self.sights = Sights(self.history)

    def look(self) -> RunStatus:
        """Return the run's status now.

        Raises:
            JournalError: the journal is damaged.
        """
        path = self.directory / NAME
        # First of all: a run that ends while its journal is read has written everything before it was let go.
        owner = owner_of(self.directory)
        try:
            if path.stat().st_size < self._end:
                # Another run has taken its place.
                self._end, self.history = 0, History()
                self.sights = Sights(self.history)
            for end, line in read_from(path, self._end):
                self.history.apply(line)
                self.sights.apply(line)
                self._end = end
        except (LookupError, TypeError, ValueError, ArithmeticError, AttributeError) as error:
            raise JournalError(f"{path}: a line says what no codetaste writes ({error!r})") from error
        except OSError as error:
            raise JournalError(f"{path}: cannot be read: {error.strerror}") from error
        return _status(self.directory, owner, self.history, self.sights)


def find_run(run: Path) -> Path:
    """Return the folder of the run ``run``: itself, or ``runs/<run>``.

    Raises:
        ConfigError: there is no run.
    """
    directory = next((place for place in (run, Path("runs") / run) if _holds_a_run(place)), None)
    if directory is None:
        known = sorted(path.parent.name for path in Path("runs").glob(f"*/{NAME}"))
        shown = printable(str(run), 200)
        raise ConfigError(f"{shown}: no run there (runs here: {', '.join(known) or 'none'})")
    return directory


def _holds_a_run(folder: Path) -> bool:
    try:
        return (folder / NAME).is_file()
    except OSError:  # a name that can be none, or a folder that may not be entered
        return False


def call_state(call: Call, history: History, *, live: bool) -> str:
    """Return settled, released, in_flight or unknown: what nobody waits for any more may have been billed."""
    if call.state == "reserved":
        return "in_flight" if live and call.session == history.sessions else "unknown"
    return call.state


def model_of(call: Call, lane: str) -> str:
    """Return the id of the model that ``call`` was made to; ``lane`` is who did before calls said so."""
    named = call.note.get("model") if isinstance(call.note, dict) else None
    return str(named) if named else lane


def _status(directory: Path, owner: str, history: History, sights: Sights) -> RunStatus:
    live = bool(owner)
    at = time.time()
    run, by_job, models = Spend(), dict[str, Spend](), dict[str, ModelStatus]()
    model_by_job: dict[str, str] = {}
    for call in history.calls.values():
        lane = history.job(call.key).lane
        model = model_of(call, lane)
        state = call_state(call, history, live=live)
        model_by_job[call.key] = model
        told = models.get(model) or models.setdefault(model, ModelStatus(model))
        job_spend = by_job.get(call.key) or by_job.setdefault(call.key, Spend())
        for spend in (run, job_spend, told.spend):
            spend.add(call, state)
        told.tokens["total"] += call.cost.tokens
        for kind, count in sights.calls[call.call].usage.items():
            told.tokens[kind] += count
    retries: Counter[str] = Counter()
    for key, sight in sights.jobs.items():
        for (name, cause), count in sight.retries.items():
            retries[cause] += count
            if name := name or model_by_job.get(key, ""):
                models.setdefault(name, ModelStatus(name)).retries[cause] += count
    for each in models.values():
        each.price_source = str(sights.prices.get(each.id, {}).get("source", ""))
    taken = _taken(history, sights)
    free = {name: capacity - taken[name] for name, capacity in sights.capacities.items()}
    jobs = tuple(
        _job(
            key,
            job,
            history,
            sights,
            by_job.get(key, Spend()),
            model_by_job.get(key, job.lane),
            free if live else None,
        )
        for key, job in history.jobs.items()
    )
    used_s = history.clocks.get((), (0.0, 0.0))[0] + (max(0.0, at - sights.clock_at) if live else 0.0)
    return RunStatus(
        directory,
        at,
        owner,
        sights.stopping if live else "",
        tuple(sights.sessions),
        run,
        history.limits.usd,
        _rate(sights, at if live else sights.last),
        used_s,
        history.limits.wall_s,
        tuple(sorted(models.values(), key=lambda model: model.id)),
        _capacities(sights, jobs, models, taken) if live else (),
        dict(sights.limits) if live else {},
        dict(retries),
        jobs,
        products(directory),
    )


def _rate(sights: Sights, until: float) -> Decimal:
    """Return the dollars a minute that were settled in the window before ``until``."""
    if not sights.sessions:
        return Decimal(0)
    began = max(sights.sessions[-1].at, until - RATE_WINDOW_S)
    return sights.settled_since(began) / Decimal(max(1.0, until - began)) * Decimal(_MINUTE_S)


def _job(
    key: str,
    job: JobHistory,
    history: History,
    sights: Sights,
    spend: Spend,
    model: str,
    free: Mapping[str, float] | None,
) -> JobStatus:
    """Say how far a job is; ``free`` is what nobody holds of each resource in a live run, None in another."""
    live = free is not None
    sight = sights.jobs.get(key) or JobSight()
    state = job.state if live or job.state not in LIVE else "interrupted"
    needs = tuple(need for need in job.needs if history.job(need).state in {*LIVE, "interrupted"})
    retries: Counter[str] = Counter()
    for (_, cause), count in sight.retries.items():
        retries[cause] += count
    return JobStatus(
        key,
        model,
        state,
        sight.since,
        job.attempts,
        spend,
        () if free is None else tuple(_waits(job, sight, needs, sights, state, free)),
        needs if state in {"queued", "interrupted"} else (),
        dict(retries),
        sight.cause,
        "" if state == "done" else job.error,
    )


def _waits(
    job: JobHistory,
    sight: JobSight,
    needs: tuple[str, ...],
    sights: Sights,
    state: str,
    free: Mapping[str, float],
) -> Iterable[Wait]:
    if state == "queued":
        yield from (Wait(need, sight.since) for need in needs)
        if not needs:
            ends = [sights.jobs[need].since for need in job.needs if need in sights.jobs]
            yield Wait(PLACES[_short_of(sight.resources, free)], max([sight.since, *ends]))
    elif state == "retrying":
        yield Wait(f"its next try, {sight.retry_delay_s:.0f} s after the last", sight.since)
    for what, begun in sight.waits.items():
        yield Wait(what, begun[0])


def _short_of(wanted: Mapping[str, float], free: Mapping[str, float]) -> str:
    """Return the resource that a queued job waits for: the first of which it wants more than is free."""
    if free.get("jobs", 0.0) < 1:
        return "jobs"
    short = (name for name, amount in wanted.items() if name in PLACES and amount > free.get(name, amount))
    return next(short, "jobs")


def _taken(history: History, sights: Sights) -> Counter[str]:
    """Return how much the jobs that run hold of each resource."""
    taken: Counter[str] = Counter()
    for key, job in history.jobs.items():
        if job.state == "running":
            taken["jobs"] += 1
            for resource, amount in sights.job(key).resources.items():
                taken[resource] += amount  # type: ignore[assignment]  # amounts are floats
    return taken


def _capacities(
    sights: Sights, jobs: Iterable[JobStatus], models: Mapping[str, ModelStatus], taken: Counter[str]
) -> tuple[Capacity, ...]:
    for name, model in models.items():
        taken[f"model {name}"] = model.spend.calls["in_flight"]
    waiting = _waiting(jobs, models)
    return tuple(
        Capacity(resource, limit, float(taken[resource]), waiting[resource])
        for resource, limit in sights.capacities.items()
    )


def _waiting(jobs: Iterable[JobStatus], models: Iterable[str]) -> Counter[str]:
    """Count who waits for what there is only so much of at once."""
    waiting: Counter[str] = Counter()
    for job in jobs:
        for wait in job.waits:
            waiting.update(resource for resource, place in PLACES.items() if wait.what == place)
            waiting.update(
                f"model {name}"
                for name in models
                if wait.what == f"a slot of {name}" or wait.what.startswith(f"{name}: ")
            )
    return waiting


def products(directory: Path) -> tuple[Path, ...]:
    """Return the folders of a run that hold what it found, each in the published layout."""
    predicted = directory / "outputs"
    found = sorted(table.parent for table in directory.glob("*/*/instances.csv"))
    return (*found, predicted) if predicted.is_dir() else tuple(found)
