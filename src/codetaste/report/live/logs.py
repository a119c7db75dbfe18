"""Structured logs: the events of each job, one JSON object a line.

``logs/<job key>.jsonl`` has the events of a job, ``logs/run.jsonl`` all others. An observer collects the
lines and a task writes them a few times a second in a worker thread, so that no job waits for a log, and a
log that cannot be written does not harm the run. State that must survive the process is in the journal; the
text of conversations is in the transcripts.
"""

from __future__ import annotations

import json
import logging
import time
import traceback
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote

import anyio
from anyio import to_thread

from codetaste.orchestration.events import JobFinished, JobStarted
from codetaste.orchestration.journal.reading import LOGS_FOLDER
from codetaste.report.live.log_lines import LogLine, log_line

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable

    from codetaste.orchestration.events import Event

WRITE_INTERVAL_S = 0.25
MAX_PENDING_LINES = 20_000
"""Maximum number of unwritten lines; further lines are counted and dropped."""
_WRITE_TIMEOUT_S = 5.0
_NAME_BYTES = 150
_END = ".jsonl"
_encode = json.JSONEncoder(separators=(",", ":"), default=str).encode


class _Pending(NamedTuple):
    at: float
    attempt: int
    line: LogLine


class LogWriter:
    """The observer that collects and writes lines. ``warn`` is called once if logs cannot be written."""

    def __init__(self, folder: Path, warn: Callable[[str], None]) -> None:
        self._folder, self._warn = folder, warn
        self._waiting: list[_Pending] = []
        self._dropped = 0
        self._attempts: dict[str, int] = {}
        self._warned = False
        self._urgent = anyio.Event()
        self._writing = anyio.Lock()

    def __call__(self, event: Event) -> None:
        """Observe an event."""
        if isinstance(event, JobStarted):
            self._attempts[event.key] = event.attempt
        line = log_line(event)
        if line is None:
            return
        self.add(line)
        if isinstance(event, JobFinished):
            self._attempts.pop(event.key, None)
            self._urgent.set()

    def add(self, line: LogLine) -> None:
        """Add a line to those that wait to be written; may be called from any thread."""
        if len(self._waiting) >= MAX_PENDING_LINES:
            self._dropped += 1
            return
        self._waiting.append(_Pending(time.time(), self._attempts.get(line.key, 0), line))

    async def run(self) -> None:
        """Write the collected lines periodically, and as soon as a job has ended."""
        while True:
            with anyio.move_on_after(WRITE_INTERVAL_S):
                await self._urgent.wait()
            self._urgent = anyio.Event()
            await self.flush()

    async def flush(self) -> None:
        """Write all collected lines; gives up after a few seconds."""
        async with self._writing:
            lines, self._waiting = self._waiting, []
            if self._dropped:
                dropped = LogLine("warning", "", "dropped", {"lines": self._dropped})
                lines.append(_Pending(time.time(), 0, dropped))
                self._dropped = 0
            if not lines:
                return
            try:
                # A cancellation must not tear the write, and a hanging disk must not block the run for long.
                with anyio.move_on_after(_WRITE_TIMEOUT_S, shield=True):
                    await to_thread.run_sync(self._write, lines, abandon_on_cancel=True)
            except OSError as error:
                if not self._warned:
                    self._warned = True
                    self._warn(
                        f"logs cannot be written, the run continues: {error.filename}: {error.strerror}"
                    )

    def _write(self, lines: Iterable[_Pending]) -> None:
        """Append the lines to their files; an error of one file does not stop the others."""
        files: dict[str, list[str]] = {}
        for at, attempt, line in lines:
            moment = datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds")
            head: dict[str, Any] = {"t": moment.replace("+00:00", "Z"), "level": line.level}
            if line.key:
                head |= {"job": line.key, "attempt": attempt}
            text = _encode({**head, "event": line.event, **line.fields}) + "\n"
            files.setdefault(line.key, []).append(text)
        failure: OSError | None = None
        for key, texts in files.items():
            path = self._folder / log_name(key)
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                with path.open("ab", buffering=0) as file:
                    file.write("".join(texts).encode("ascii"))
            except OSError as error:
                error.filename = error.filename or str(path)
                failure = error
        if failure is not None:
            raise failure


class _Warnings(logging.Handler):
    """Writes warnings of Python's ``logging`` into the run's log, and passes them to ``warn``."""

    def __init__(self, logs: LogWriter, warn: Callable[[str], None]) -> None:
        super().__init__(logging.WARNING)
        self._logs, self._warn = logs, warn

    def emit(self, record: logging.LogRecord) -> None:
        """Write one record."""
        try:
            text = record.getMessage()
            fields: dict[str, Any] = {"logger": record.name, "text": text}
            error = record.exc_info[1] if record.exc_info else None
            if error is not None:
                fields["traceback"] = "".join(traceback.format_exception(error))
                text = f"{text}: {type(error).__name__}: {error}"
            self._logs.add(LogLine(record.levelname.lower(), "", "warning", fields))
            self._warn(text)
        except Exception:  # noqa: BLE001 - the standard library requires this of a handler
            self.handleError(record)


@asynccontextmanager
async def run_logs(folder: Path, warn: Callable[[str], None]) -> AsyncIterator[LogWriter]:
    """Write the logs of a run to ``folder`` inside the block; yield the observer to subscribe.

    ``warn`` receives messages for the user, such as that the logs cannot be written.
    """
    logs = LogWriter(folder, warn)
    handler = _Warnings(logs, warn)
    logging.getLogger().addHandler(handler)
    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(logs.run)
            try:
                yield logs
            finally:
                tasks.cancel_scope.cancel()
    finally:
        logging.getLogger().removeHandler(handler)
        with anyio.CancelScope(shield=True):
            await logs.flush()


def log_name(key: str) -> str:
    """Return the path of a job's log in the logs folder; the key "" stands for events of no job."""
    if not key:
        return f"run{_END}"
    *folders, name = [_file_name(part) for part in key.split("/")]
    return "/".join([*folders, f"{'%run' if not folders and name == 'run' else name}{_END}"])


def _file_name(part: str) -> str:
    """Return a file name for one part of a key; names are unique and never lead out of the folder."""
    name = quote(part, safe="@+=,", errors="backslashreplace") or "%"
    if not name.strip("."):
        name = name.replace(".", "%2E")
    if name.endswith(_END):
        name = f"{name.removesuffix(_END)}%2Ejsonl"
    if len(name) > _NAME_BYTES:
        digest = sha256(part.encode("utf-8", "backslashreplace")).hexdigest()[:16]
        name = f"{name[:_NAME_BYTES]}%{digest}"
    return name


def logs_folder(directory: Path) -> Path:
    """Return the logs folder of the run in ``directory``."""
    return Path(directory, LOGS_FOLDER)
