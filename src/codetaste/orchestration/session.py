"""``Session``: one process working on one run directory, with its journal, budget, observers and scheduler.

::

    async with open_session(directory, BudgetLimits(usd=Decimal(5)), capacities={"jobs": 64}) as session:
        session.add_handlers({"discover": discover})
        budget = (NamedLimits("discover", BudgetLimits(usd=Decimal(1))),)
        session.add(Job("discover/koajs__koa-1234/additive", "discover", budget, fingerprint))
        outcomes = await session.run()
"""

from __future__ import annotations

import os
import random
import socket
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Literal

import anyio
import anyio.to_thread

from codetaste.core.files import remove_stale_files
from codetaste.core.text import one_line
from codetaste.errors import CodetasteError, leaf_errors
from codetaste.orchestration.budget.budget import Budget
from codetaste.orchestration.budget.cost import BudgetLimits
from codetaste.orchestration.events import FanOut
from codetaste.orchestration.grace import Grace
from codetaste.orchestration.journal.blobs import BLOBS_FOLDER, Blobs
from codetaste.orchestration.journal.history import History
from codetaste.orchestration.journal.journal import open_journal
from codetaste.orchestration.journal.recorder import RunRecorder
from codetaste.orchestration.retry import RETRY_TABLE
from codetaste.orchestration.scheduler.resume import limits_to_json
from codetaste.orchestration.scheduler.scheduler import Scheduler

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Mapping
    from collections.abc import Set as AbstractSet
    from pathlib import Path

    from codetaste.errors import Cause
    from codetaste.orchestration.events import Observer
    from codetaste.orchestration.job import Handler, Job, Outcome
    from codetaste.orchestration.retry import RetryRule


class Session:
    """The open run of a command; created by ``open_session``."""

    def __init__(self, record: RunRecorder, budget: Budget, scheduler: Scheduler) -> None:
        self.record, self.budget, self.scheduler = record, budget, scheduler

    @property
    def history(self) -> History:
        """The state folded from the journal so far, this session included."""
        return self.record.history

    def observe(self, observer: Observer) -> None:
        """Deliver all further events to ``observer``."""
        self.record.observers.add(observer)

    def add_handlers(self, handlers: Mapping[str, Handler]) -> None:
        """Add what runs the jobs of each kind; needed before such jobs are added."""
        self.scheduler.handlers.update(handlers)

    def repeat(self, keys: Iterable[str]) -> None:
        """Discard the recorded work of these jobs, which are added later."""
        self.scheduler.repeat(keys)

    def add(self, *jobs: Job) -> None:
        """Add jobs: before ``run``, or from inside a running job.

        Raises:
            ConfigError: a kind has no handler; during ``run``: one of them is invalid. None was added.
        """
        self.scheduler.add(*jobs)

    async def run(self, jobs: Iterable[Job] = ()) -> dict[str, Outcome]:
        """Run ``jobs`` and all added jobs until each has ended; returns outcomes by key.

        Raises:
            ConfigError: unknown kinds or needs, cycles, too large demands, different limits of one node;
                nothing was started.
            StorageFull: writing the journal failed. Jobs that had finished before are not lost.
        """
        self.scheduler.add(*jobs)
        return await self.scheduler.run()

    async def set_limits(self, limits: BudgetLimits) -> None:
        """Replace the limits of the whole run for this session; see ``Budget.set_limits``.

        Raises:
            ValueError: a limit is negative or not finite.
            StorageFull: the limits could not be recorded; the old ones stay.
        """
        await self.record.write({"event": "limits", "limits": limits_to_json(limits.check())})
        self.budget.set_limits(limits)
        self.record.publish_money_change("", self.budget)

    def note(self, text: str) -> None:
        """Show a line of text about the whole run to all observers and write it to the journal."""
        self.record.note_text("", text)

    def resize(self, resource: str, capacity: float) -> None:
        """Set the capacity of ``resource`` for the rest of this session; see ``Scheduler.resize``.

        Raises:
            ConfigError: the resource is unknown, or the capacity is negative or not finite.
        """
        self.scheduler.resize(resource, capacity)

    def drain(self, why: str = "stopped by the user") -> None:
        """Start no more jobs and cancel the running ones; resumable. A second call shortens clean-up."""
        self.scheduler.drain(why)


@asynccontextmanager
async def open_session(
    directory: Path,
    limits: BudgetLimits | None = None,
    *,
    capacities: Mapping[str, float] | None = None,
    observers: Iterable[Observer] = (),
    rerun: AbstractSet[str] | Literal["all"] = frozenset(),
    grace_s: float = 20.0,
    retries: Mapping[Cause, RetryRule] = RETRY_TABLE,
    rng: random.Random | None = None,
) -> AsyncIterator[Session]:
    """Lock ``directory`` and continue where its journal ends.

    Args:
        directory: the run directory, created if missing.
        limits: of the whole run, earlier sessions included.
        capacities: capacity of each resource; "jobs" bounds the number of running jobs, each takes one.
        observers: called with every event.
        rerun: keys of jobs whose recorded work is discarded, or "all".
        grace_s: seconds that clean-up may take, and that a job may exceed its deadline.
        retries: the retry table.
        rng: source of jitter.

    Raises:
        RunBusy: another process works on the directory.
        JournalError: the journal is damaged or has another format.
    """
    history = History()
    async with open_journal(directory, history.apply) as journal:
        await anyio.to_thread.run_sync(remove_stale_files, directory)
        grace = Grace(grace_s)
        record = RunRecorder(
            journal=journal,
            history=history,
            blobs=Blobs(directory / BLOBS_FOLDER),
            observers=FanOut(*observers),
            grace=grace,
        )
        budget = Budget.root(limits or BudgetLimits(), prior=history.prior_charges())
        pid, host = os.getpid(), socket.gethostname()
        row = limits_to_json(budget.limits)
        await record.write({"event": "session", "pid": pid, "host": host, "limits": row})
        if journal.repaired:
            record.note_text("", journal.repaired)
        chance = rng or random.Random()  # noqa: S311  # jitter, not a secret
        scheduler = Scheduler(record, budget, capacities or {}, rerun=rerun, retries=retries, rng=chance)
        with budget.clock.at_work():
            try:
                yield Session(record, budget, scheduler)
            except (CodetasteError, ExceptionGroup) as error:
                text = "; ".join(one_line(each) for each in leaf_errors(error))
                record.note({"event": "session_failed", "error": text})
                raise
            finally:
                scheduler.clock_writer.write_clocks()
