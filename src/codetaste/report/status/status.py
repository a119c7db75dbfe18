"""The status of a run, read from its journal, also while another process runs it."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from codetaste.benchmark.layout import INSTANCES_FILE, OUTPUTS_FOLDER
from codetaste.core.files import open_regular_file
from codetaste.core.text import printable
from codetaste.errors import ConfigError, JournalError
from codetaste.orchestration.budget.node import CallState
from codetaste.orchestration.journal.history import CallRecord, History, JobState
from codetaste.orchestration.journal.journal import JOURNAL_FILE, check_new, read_lines, replay_line
from codetaste.orchestration.journal.run_lock import lock_owner
from codetaste.report.status.current_job import RESOURCES, job_status
from codetaste.report.status.journal_view import RATE_WINDOW_S, JournalView
from codetaste.report.status.model import Capacity, JobStatus, ModelStatus, RunStatus, Spend

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

_MINUTE_S = 60.0
_MARK_BYTES = 64
"""So much of both ends of what was read of a journal tells whether it is the same one."""


class RunMissing(ConfigError):
    """There is no run at a path, or not yet."""


class RunWatcher:
    """Reads the status of a run repeatedly; each ``poll`` reads only the journal lines since the last one.

    ``observe`` is called with each line once it is part of ``history``. ``replaced`` counts how often another
    journal has taken the place of the one that was read.

    Raises:
        ConfigError: the run does not exist.
    """

    def __init__(self, run: Path, observe: Callable[[Mapping[str, Any]], None] | None = None) -> None:
        self.directory = find_run(run)
        self.replaced = 0
        self._observe = observe
        self._marks = (b"", b"")
        self._owner = ""
        self._forget()

    def _forget(self) -> None:
        self._end, self.history, self.view = 0, History(), JournalView()
        self._calls = defaultdict[str, list[CallRecord]](list)
        """The calls of each job."""
        self._changed: dict[str, None] | None = None
        """The jobs that lines since the last status are about; None if all may have changed."""

    def poll(self) -> RunStatus:
        """Return the run's status now.

        Raises:
            JournalError: the journal is damaged.
        """
        self.read_on()
        return self.status()

    def read_on(self) -> bool:
        """Read what the journal has more than at the last time; return whether it has.

        Raises:
            JournalError: the journal is damaged.
        """
        path = self.directory / JOURNAL_FILE
        # The owner is read first: a run that ends meanwhile has written all its lines before it unlocks.
        self._owner = lock_owner(self.directory)
        try:
            grown = self._read_lines(path)
            if not any(job.attempts for job in self.history.jobs.values()):
                check_new(path, self._end)
        except (LookupError, TypeError, ValueError, ArithmeticError, AttributeError) as error:
            raise JournalError(
                f"{path}: a line is not in the format that codetaste writes ({error!r}); "
                "repair or remove that line"
            ) from error
        except OSError as error:
            raise JournalError(f"{path}: cannot be read: {error.strerror}") from error
        return grown

    def _read_lines(self, path: Path) -> bool:
        began = self._end
        if self._end and self._marks != _marks(path, self._end):
            # Another run has replaced it.
            began = -1
            self._forget()
            self.replaced += 1
        try:
            for end, line in read_lines(path, self._end):
                replay_line(path, line, self.history.apply)
                self.view.apply(line)
                self._end = end
                self._note_change(line)
                if self._observe is not None:
                    self._observe(line)
        finally:
            self._marks = _marks(path, self._end)
        return self._end != began

    def _note_change(self, line: Mapping[str, Any]) -> None:
        if line["event"] == "session":
            self._changed = None  # it interrupts the jobs of the one before
        if line["event"] == "reserved":
            self._calls[line["key"]].append(self.history.calls[line["call"]])
        key, call = line.get("key"), line.get("call")
        if not isinstance(key, str) and isinstance(call, str) and call in self.history.calls:
            key = self.history.calls[call].key
        if self._changed is not None and isinstance(key, str) and key in self.history.jobs:
            self._changed[key] = None

    def status(self) -> RunStatus:
        """Return the run's status as of the last line that was read, also before a damaged one."""
        self._changed, self._shown_owner = {}, self._owner
        return _status(self.directory, self._owner, self.history, self.view)

    def changed_jobs(self) -> tuple[JobStatus, ...] | None:
        """Return the jobs that lines since the last status are about, or None if others have changed too.

        It takes a fraction of the time of ``status``, which counts all calls. What a queued job waits for may
        have changed without a line about it.
        """
        if self._changed is None or self._owner != self._shown_owner:
            return None
        history, view, live = self.history, self.view, bool(self._owner)
        free = _free(view, _in_use(history, view)) if live else None
        jobs = []
        for key in self._changed:
            spend, model = Spend(), None
            for call in self._calls.get(key, ()):
                spend.add(call, call_state(call, history, live=live))
                model = model_of_call(call, history.job(key).lane)
            jobs.append(job_status(key, history, view, spend, model, free))
        self._changed = {}
        return tuple(jobs)


def _marks(path: Path, end: int) -> tuple[bytes, bytes]:
    """Return the beginning of a journal, which has a time, and the bytes before its ``end``.

    Raises:
        OSError: it cannot be read.
    """
    with open_regular_file(path) as file:
        head = file.read(min(end, _MARK_BYTES))
        file.seek(max(0, end - _MARK_BYTES))
        return head, file.read(min(end, _MARK_BYTES))


def find_run(run: Path) -> Path:
    """Return the folder of the run ``run``: the path itself, or ``runs/<run>``.

    Raises:
        RunMissing: the run does not exist.
        ConfigError: its folder may not be read.
    """
    for directory in (run, Path("runs") / run):
        try:
            if (directory / JOURNAL_FILE).is_file():
                return directory
        except PermissionError:
            raise ConfigError(f"{printable(str(directory), 200)}: you may not read this folder") from None
        except (OSError, ValueError):  # an invalid file name
            continue
    known = sorted(path.parent.name for path in Path("runs").glob(f"*/{JOURNAL_FILE}"))
    shown = printable(str(run), 200)
    raise RunMissing(f"{shown}: no run there (runs here: {', '.join(known) or 'none'})")


def call_state(call: CallRecord, history: History, *, live: bool) -> CallState:
    """Return the state of ``call``; when its process ended in flight, it may have been billed."""
    ended = not live or call.session != history.sessions
    return CallState.UNKNOWN if ended and call.state is CallState.IN_FLIGHT else call.state


def model_of_call(call: CallRecord, lane: str) -> str:
    """Return the model id of ``call``; ``lane`` where the note of the call does not name it."""
    named = call.note.get("model") if isinstance(call.note, dict) else None
    return str(named) if named else lane


def _status(directory: Path, owner: str, history: History, view: JournalView) -> RunStatus:
    live = bool(owner)
    at = time.time()

    run, by_job, models = Spend(), defaultdict[str, Spend](Spend), dict[str, ModelStatus]()
    model_by_job: dict[str, str] = {}
    for call in history.calls.values():
        model = model_of_call(call, history.job(call.key).lane)
        state = call_state(call, history, live=live)
        model_by_job[call.key] = model
        status = models.get(model) or models.setdefault(model, ModelStatus(model))
        for spend in (run, by_job[call.key], status.spend):
            spend.add(call, state)
        status.tokens["total"] += call.cost.tokens
        status.tokens.update(view.calls[call.call].usage)

    retries: Counter[str] = Counter()
    for key, times in view.jobs.items():
        for (name, cause), count in times.retries.items():
            retries[cause] += count
            if name := name or model_by_job.get(key, ""):
                models.setdefault(name, ModelStatus(name)).retries[cause] += count
    for each in models.values():
        each.price_source = str(view.prices[each.id]["source"]) if each.id in view.prices else ""

    in_use = _in_use(history, view)
    free = _free(view, in_use)
    jobs = tuple(
        job_status(key, history, view, by_job[key], model_by_job.get(key), free if live else None)
        for key in history.jobs
    )
    used_s = history.clocks.get((), (0.0, 0.0))[0] + (max(0.0, at - view.clock_at) if live else 0.0)
    return RunStatus(
        directory,
        at,
        owner,
        view.stop_reason if live else "",
        view.error,
        tuple(view.sessions),
        run,
        history.limits.usd,
        _rate(view, at if live else view.last_at),
        used_s,
        history.limits.wall_s,
        tuple(sorted(models.values(), key=lambda model: model.id)),
        _capacities(view, jobs, models, in_use) if live else (),
        dict(view.limits) if live else {},
        dict(retries),
        jobs,
        find_products(directory),
    )


def _in_use(history: History, view: JournalView) -> defaultdict[str, float]:
    """Return how much of each resource the running jobs use."""
    in_use: defaultdict[str, float] = defaultdict(float)
    for key, job in history.jobs.items():
        if job.state is JobState.RUNNING:
            for resource, amount in {"jobs": 1.0, **view.job(key).resources}.items():
                in_use[resource] += amount
    return in_use


def _free(view: JournalView, in_use: Mapping[str, float]) -> dict[str, float]:
    return {name: capacity - in_use.get(name, 0.0) for name, capacity in view.capacities.items()}


def _rate(view: JournalView, until: float) -> Decimal:
    """Return the dollars settled per minute in the window before ``until``."""
    if not view.sessions:
        return Decimal(0)
    began = max(view.sessions[-1].at, until - RATE_WINDOW_S)
    return view.settled_since(began) / Decimal(max(1.0, until - began)) * Decimal(_MINUTE_S)


def _capacities(
    view: JournalView,
    jobs: Iterable[JobStatus],
    models: Mapping[str, ModelStatus],
    in_use: defaultdict[str, float],
) -> tuple[Capacity, ...]:
    for name, model in models.items():
        in_use[f"model {name}"] = float(model.spend.calls[CallState.IN_FLIGHT])
    waits = (each.wait for job in jobs for each in job.waits)
    waiting = Counter(
        f"model {wait.detail}" if wait.reason.of_model else wait.reason.value
        for wait in waits
        if wait.reason.of_model or wait.reason in RESOURCES
    )
    return tuple(
        Capacity(resource, limit, in_use[resource], waiting[resource])
        for resource, limit in view.capacities.items()
    )


def find_products(directory: Path) -> tuple[Path, ...]:
    """Return the result folders of a run, each in the published layout."""
    outputs = directory / OUTPUTS_FOLDER
    benchmarks = sorted(table.parent for table in directory.glob(f"*/*/{INSTANCES_FILE}"))
    return (*benchmarks, outputs) if outputs.is_dir() else tuple(benchmarks)
