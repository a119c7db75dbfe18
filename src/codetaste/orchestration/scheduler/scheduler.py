"""The scheduler: runs jobs under needs, resources, budgets, deadlines, retries, resume and drain.

The cost of a step does not depend on the number of waiting jobs: a job that ends touches only the jobs that
need it and the heads of the lanes. ``attempt.py`` runs a single attempt; ``resume.py`` applies the journal of
earlier sessions.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Literal

import anyio

from codetaste.errors import Cause, JournalError
from codetaste.orchestration.budget.cost import NamedLimits
from codetaste.orchestration.events import (
    Draining,
    JobFinished,
    JobQueued,
    JobRetrying,
)
from codetaste.orchestration.job import Status
from codetaste.orchestration.retry import retry_delay_s
from codetaste.orchestration.scheduler import resume
from codetaste.orchestration.scheduler.attempt import run_attempt
from codetaste.orchestration.scheduler.leftovers import Leftovers
from codetaste.orchestration.scheduler.ready_queue import ReadyQueue
from codetaste.orchestration.scheduler.scheduled_job import AttemptResult, ScheduledJob
from codetaste.orchestration.scheduler.validation import validate_jobs, validate_kinds

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Iterable, Mapping
    from collections.abc import Set as AbstractSet

    from anyio.abc import TaskGroup

    from codetaste.orchestration.budget.budget import Budget
    from codetaste.orchestration.job import Handler, Job, Outcome
    from codetaste.orchestration.journal.lines import JobLine
    from codetaste.orchestration.journal.recorder import RunRecorder
    from codetaste.orchestration.retry import RetryRule


_LAST_GRACE_S = 2.0  # clean-up time after a second stop request


class Scheduler:
    """Runs all jobs of one session under all limits."""

    def __init__(
        self,
        record: RunRecorder,
        budget: Budget,
        capacities: Mapping[str, float],
        *,
        rerun: AbstractSet[str] | Literal["all"],
        retries: Mapping[Cause, RetryRule],
        rng: random.Random,
    ) -> None:
        self.draining = False
        self._record = record
        self.clock_writer = ClockWriter(record, budget, self._drain_if_running)
        self._queue = ReadyQueue(record, budget, capacities, end_job=self._end_unstarted, wake=self._advance)
        self._rerun, self._retries, self._rng = rerun, retries, rng
        self.handlers: dict[str, Handler] = {}
        """What runs the jobs of each kind."""
        self._budget = budget
        self._added: list[Job] = []
        self._entries: dict[str, ScheduledJob] = {}
        self._leftovers = Leftovers(record)
        self._unfinished = 0
        self._ready: deque[ScheduledJob] = deque()
        self._tasks: TaskGroup | None = None
        self._ended = anyio.Event()

    def add(self, *jobs: Job) -> None:
        """Add jobs; during ``run`` they start as soon as they can.

        Raises:
            ConfigError: a kind has no handler; during ``run``: one of them is invalid. None was added.
        """
        validate_kinds(jobs, self.handlers)
        self._added.extend(jobs)
        if self._tasks is not None:
            self._register()
            self._advance()

    async def run(self) -> dict[str, Outcome]:
        """Run all added jobs until each has ended, and return all outcomes by key.

        Raises:
            ConfigError: see ``validate_jobs``, or a node has two different limits; nothing was started.
            StorageFull: writing the journal failed; its content is valid.
        """
        self._register()
        self._ended = anyio.Event()
        try:
            async with anyio.create_task_group() as self._tasks:
                watch = anyio.CancelScope()
                self._tasks.start_soon(self.clock_writer.run, watch)
                self._advance()
                await self._ended.wait()
                watch.cancel()
        finally:
            self._tasks = None
        failure = self._record.journal.failure
        if failure is not None:
            raise failure
        return {key: entry.outcome for key, entry in self._entries.items() if entry.outcome is not None}

    def resize(self, resource: str, capacity: float) -> None:
        """Set the capacity of ``resource`` for the rest of this session.

        A higher capacity takes effect at once. A lower one does not affect running jobs: fewer start until
        enough have ended. A job that needs more than the capacity runs alone; at 0 no job that needs the
        resource starts.

        Raises:
            ConfigError: the resource is unknown, or the capacity is negative or not finite.
        """
        self._queue.resize(resource, capacity)
        self._advance()

    def drain(self, why: str) -> None:
        """Start no more jobs and cancel the running ones. A second call shortens the clean-up time."""
        if self.draining:
            self._record.grace.shorten(_LAST_GRACE_S)
        else:
            self.draining = True
            self._record.note({"event": "drain", "reason": why})
        self._record.publish(Draining(self._record.grace.seconds, why))
        for entry in (*self._queue.clear(), *self._leftovers.clear()):
            self._cancel_waiting(entry)
        for entry in self._entries.values():
            entry.cancel_scope.cancel()
        self._advance()

    def _register(self) -> None:
        jobs, self._added = self._added, []
        validate_jobs(jobs, self._entries, self._queue.max_capacities)
        each = {"jobs": 1.0} if "jobs" in self._queue.max_capacities else {}
        nodes = [self._budget.open((*job.budget, NamedLimits(job.key, job.limits))) for job in jobs]
        for job, node in zip(jobs, nodes, strict=True):
            resources = {**each, **job.resources} if job.resources else each
            self._entries[job.key] = ScheduledJob(job, node, resources)
            self._announce(self._entries[job.key])
        for job in jobs:
            entry = self._entries[job.key]
            for need in dict.fromkeys(job.needs):
                needed = self._entries[need]
                if needed.outcome is None:
                    needed.dependents.append(entry)
                    entry.needs_left += 1
            if not entry.needs_left:
                self._ready.append(entry)
            if job.leaves_to in self._entries:
                self._leftovers.connect(entry, self._entries[job.leaves_to])
        self._unfinished += len(jobs)

    def repeat(self, keys: Iterable[str]) -> None:
        """Discard the recorded work of these jobs when they are added."""
        if self._rerun != "all":
            self._rerun = self._rerun | set(keys)

    def _announce(self, entry: ScheduledJob) -> None:
        job, record = entry.job, self._record
        if self._rerun == "all" or job.key in self._rerun:
            resume.discard_history(entry, record)
        line: JobLine = {
            "event": "job",
            "key": job.key,
            "title": job.title,
            "lane": job.lane,
            "needs": list(job.needs),
            "path": list(entry.budget.path),
        }
        if job.resources:
            line["resources"] = dict(job.resources)
        record.note(line)
        record.publish(JobQueued(job.key, job.title, job.lane, job.needs, job.group))

    def _advance(self) -> None:
        """Take every step that is possible now: decide about jobs whose needs have ended, start what fits."""
        if self._tasks is None:
            return
        while True:
            while self._ready:
                self._decide(self._ready.popleft())
            entry = None if self.draining else self._queue.pop()
            if entry is not None:
                self._tasks.start_soon(self._execute, entry, name=entry.job.key)
            elif not self._ready:
                break
        if not self._unfinished:
            self._ended.set()

    def _drain_if_running(self, why: str) -> None:
        if not self.draining:
            self.drain(why)

    def _decide(self, entry: ScheduledJob) -> None:
        """Skip, resume, cancel or queue a job whose needs have all ended."""
        needed = [self._entries[need] for need in entry.job.needs]
        unmet = [need.job.key for need in needed if need.outcome is None or not need.outcome.usable]
        if unmet and not self.draining:
            result = AttemptResult(
                Status.SKIPPED, cause=Cause.NEED, error=f"needs {', '.join(unmet)}: no result"
            )
            self._end_unstarted(entry, result)
            return
        if not unmet:
            entry.fingerprint = resume.effective_fingerprint(entry, needed)
            earlier = resume.recorded_outcome(entry, self._record.history)
            if earlier is not None and self._suspend(entry, AttemptResult.of_outcome(earlier)):
                return
            if earlier is not None:
                self._record.note({"event": "resumed", "key": entry.job.key, "status": earlier.status.value})
                self._finish(entry, earlier)
                return
        if self.draining:
            self._cancel_waiting(entry)
        else:
            self._queue.push(entry)

    def _cancel_waiting(self, entry: ScheduledJob) -> None:
        self._end_unstarted(entry, AttemptResult.cancelled("not started"))

    async def _execute(self, entry: ScheduledJob) -> None:
        """Run one attempt; then end the job, or wait (without resources) and queue it again."""
        try:
            outcomes = {need: self._entries[need].outcome for need in entry.job.needs}
            needs = {need: outcome.value if outcome else None for need, outcome in outcomes.items()}
            handler = self.handlers[entry.job.kind]
            result = await run_attempt(entry, handler, needs, self._record)
        finally:
            self._queue.release(entry)
        self._advance()
        delay = self._retry_after(entry, result)
        if delay is not None and await self._back_off(entry, result, delay):
            self._ready.append(entry)
        elif delay is not None:
            await self._end(entry, AttemptResult.cancelled(result.error))
        else:
            await self._end(entry, result)
        self._advance()

    def _retry_after(self, entry: ScheduledJob, result: AttemptResult) -> float | None:
        if result.status is not Status.FAILED or result.final or result.cause is None or self.draining:
            return None
        entry.failures += 1
        delay = retry_delay_s(
            result.cause,
            entry.failures,
            retry_after_s=result.retry_after_s,
            rng=self._rng,
            table=self._retries,
        )
        clock = entry.budget.clock
        in_time = delay is not None and delay < clock.wall_left_s() and clock.time_left_s() > 0
        return delay if in_time else None

    async def _back_off(self, entry: ScheduledJob, result: AttemptResult, delay: float) -> bool:
        """Wait before the next attempt; False if the run is drained meanwhile."""
        key, cause = entry.job.key, result.cause or Cause.FAULT
        number = self._record.history.job(key).attempts
        self._record.note(
            {
                "event": "retry",
                "key": key,
                "attempt": number,
                "cause": cause.value,
                "error": result.error,
                "delay_s": round(delay, 3),
            }
        )
        self._record.publish(JobRetrying(key, number, cause, result.error, delay))
        entry.cancel_scope = anyio.CancelScope()
        with entry.cancel_scope, entry.budget.clock.at_work(), entry.budget.waiting():
            await anyio.sleep(delay)
        slept = not entry.cancel_scope.cancelled_caught
        entry.cancel_scope = anyio.CancelScope()
        return slept and not self.draining

    async def _end(self, entry: ScheduledJob, result: AttemptResult) -> None:
        """Make the end of a job durable, then publish it."""
        if self._suspend(entry, result):
            return
        try:
            await self._record.write(resume.end_record(entry, result))
        except JournalError as error:
            result = AttemptResult(Status.FAILED, cause=Cause.STORAGE, error=str(error))
        self._finish(entry, resume.make_outcome(entry, result, self._record.history))

    def _end_unstarted(self, entry: ScheduledJob, result: AttemptResult) -> None:
        """End a job that was not run, without waiting for the disk: the next session decides the same."""
        if self._suspend(entry, result):
            return
        self._record.note(resume.end_record(entry, result))
        self._finish(entry, resume.make_outcome(entry, result, self._record.history))

    def _suspend(self, entry: ScheduledJob, result: AttemptResult) -> bool:
        """Let a job that its limits ended wait for what another job may leave; False if none may."""
        if self.draining or not self._leftovers.suspend(entry, result):
            return False
        self._pass_on(entry)
        return True

    def _pass_on(self, entry: ScheduledJob) -> None:
        """Give what is left of the job's limits to another, and end the jobs that can get no more."""
        if self.draining:
            return
        continued = self._leftovers.pass_on(entry)
        if continued is not None and not continued.needs_left:
            self._ready.append(continued)
        while (hopeless := self._leftovers.take_hopeless()) is not None:
            entry, result = hopeless
            if result.resumed:
                self._ready.append(entry)
            else:
                self._end_unstarted(entry, result)

    def _finish(self, entry: ScheduledJob, outcome: Outcome) -> None:
        entry.outcome = outcome
        if entry.dependents:
            entry.digest = resume.outcome_digest(outcome)
        self._unfinished -= 1
        for dependent in entry.dependents:
            dependent.needs_left -= 1
            if not dependent.needs_left and dependent.outcome is None:
                self._ready.append(dependent)
        if self._record.observers.has_observers:
            self._record.publish(
                JobFinished(
                    outcome.key,
                    outcome.status,
                    outcome.cause,
                    outcome.error,
                    outcome.resumed,
                    outcome.cost,
                    outcome.shortfall,
                )
            )
        self._pass_on(entry)


_CLOCK_EVERY_S = 5.0  # kill -9 loses at most this much used time


class ClockWriter:
    """Writes the clocks of ``budget`` and all nodes beneath it; calls ``on_failure`` if the journal fails."""

    def __init__(self, record: RunRecorder, budget: Budget, on_failure: Callable[[str], None]) -> None:
        self._record, self._budget, self._on_failure = record, budget, on_failure
        self._clocks: dict[tuple[str, ...], tuple[float, float]] = {}

    async def run(self, scope: anyio.CancelScope) -> None:
        """Run until ``scope`` is cancelled."""
        with scope:
            while True:
                with anyio.move_on_after(_CLOCK_EVERY_S):
                    await self._record.journal.failed.wait()
                    self._on_failure(str(self._record.journal.failure))
                    await anyio.sleep_forever()
                self.write_clocks(limited=True)

    def write_clocks(self, *, limited: bool = False) -> None:
        """Journal the clocks that have advanced, so that used time survives the process.

        ``limited``: only the run's clock and those of nodes with a time limit, so that thousands of jobs that
        wait for hours do not fill the journal.
        """
        moved: list[tuple[list[str], float, float]] = []
        for node in self._budget.walk():
            if limited and node.path and node.limits.wall_s is None and node.limits.working_s is None:
                continue
            clock = (round(node.clock.wall_s, 3), round(node.clock.working_s, 3))
            if self._clocks.get(node.path, (0.0, 0.0)) != clock:
                self._clocks[node.path] = clock
                moved.append((list(node.path), *clock))
        if moved:
            self._record.note({"event": "clocks", "nodes": moved})
