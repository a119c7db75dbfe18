"""Structured logs: what happened in each job, one JSON object a line, for programs and for looking back.

``logs/<job key>.jsonl`` has what is of a job, ``logs/run.jsonl`` the rest. An observer gathers what happens
and a task writes it a few times a second, in a worker thread: nobody waits for a log, and one that cannot be
written harms nothing. What must survive the process is in the journal; what was said is in the transcripts.
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
from codetaste.report.log_lines import line_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable

    from codetaste.orchestration.events import Event

EVERY_S = 0.25
MOST = 20_000
"""How many lines may wait to be written; more are counted and left out."""
_LAST_S = 5.0
_NAME_BYTES = 150
_END = ".jsonl"
_encode = json.JSONEncoder(separators=(",", ":"), default=str).encode


class _Line(NamedTuple):
    at: float
    level: str
    key: str
    attempt: int
    event: str
    fields: dict[str, Any]


class Logs:
    """The observer that gathers lines. ``warn`` is told once that logs cannot be written."""

    def __init__(self, folder: Path, warn: Callable[[str], None]) -> None:
        self._folder, self._warn = folder, warn
        self._waiting: list[_Line] = []
        self._dropped = 0
        self._attempts: dict[str, int] = {}
        self._warned = False
        self._urgent = anyio.Event()
        self._writing = anyio.Lock()

    def __call__(self, event: Event) -> None:
        """Take in an event."""
        if isinstance(event, JobStarted):
            self._attempts[event.key] = event.attempt
        said = line_of(event)
        if said is None:
            return
        self.add(said.level, said.key, said.event, said.fields)
        if isinstance(event, JobFinished):
            self._attempts.pop(event.key, None)
            self._urgent.set()

    def add(self, level: str, key: str, event: str, fields: dict[str, Any]) -> None:
        """Put a line behind those that wait to be written; from any thread."""
        if len(self._waiting) >= MOST:
            self._dropped += 1
            return
        self._waiting.append(_Line(time.time(), level, key, self._attempts.get(key, 0), event, fields))

    async def run(self) -> None:
        """Write what was gathered, now and then, and soon after a job has ended."""
        while True:
            with anyio.move_on_after(EVERY_S):
                await self._urgent.wait()
            self._urgent = anyio.Event()
            await self.flush()

    async def flush(self) -> None:
        """Write all that was gathered; takes seconds at most."""
        async with self._writing:
            lines, self._waiting = self._waiting, []
            if self._dropped:
                lines.append(_Line(time.time(), "warning", "", 0, "dropped", {"lines": self._dropped}))
                self._dropped = 0
            if not lines:
                return
            try:
                # Not torn by a cancellation; and a disk that hangs holds nobody up for long.
                with anyio.move_on_after(_LAST_S, shield=True):
                    await to_thread.run_sync(self._write, lines, abandon_on_cancel=True)
            except OSError as error:
                if not self._warned:
                    self._warned = True
                    self._warn(f"logs cannot be written, the run goes on: {error.filename}: {error.strerror}")

    def _write(self, lines: Iterable[_Line]) -> None:
        """Append the lines to their files; one that cannot be written does not keep the others from it."""
        files: dict[str, list[str]] = {}
        for line in lines:
            files.setdefault(line.key, []).append(_text(line))
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
    """Puts the program's own warnings into the run's log, and says them as Python would have."""

    def __init__(self, logs: Logs, warn: Callable[[str], None]) -> None:
        super().__init__(logging.WARNING)
        self._logs, self._warn = logs, warn

    def emit(self, record: logging.LogRecord) -> None:
        """Take one record."""
        try:
            text = record.getMessage()
            fields: dict[str, Any] = {"logger": record.name, "text": text}
            error = record.exc_info[1] if record.exc_info else None
            if error is not None:
                fields["traceback"] = "".join(traceback.format_exception(error))
                text = f"{text}: {type(error).__name__}: {error}"
            self._logs.add(record.levelname.lower(), "", "warning", fields)
            self._warn(text)
        except Exception:  # noqa: BLE001 - what the standard library asks of a handler
            self.handleError(record)


@asynccontextmanager
async def logged(folder: Path, warn: Callable[[str], None]) -> AsyncIterator[Logs]:
    """Log a run below ``folder`` while the block lasts; yields the observer to subscribe.

    ``warn`` is given what a person should know, such as that the logs cannot be written.
    """
    logs = Logs(folder, warn)
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
    """Return the path of a job's log in the folder of logs; of what belongs to no job for the key ""."""
    if not key:
        return f"run{_END}"
    *folders, name = [_part(part) for part in key.split("/")]
    return "/".join([*folders, f"{'%run' if not folders and name == 'run' else name}{_END}"])


def _part(part: str) -> str:
    """Return a file name for one part of a key: no two parts share one, and none leads anywhere else."""
    name = quote(part, safe="@+=,", errors="backslashreplace") or "%"
    if not name.strip("."):
        name = name.replace(".", "%2E")
    if name.endswith(_END):
        name = f"{name.removesuffix(_END)}%2Ejsonl"
    if len(name) > _NAME_BYTES:
        digest = sha256(part.encode("utf-8", "backslashreplace")).hexdigest()[:16]
        name = f"{name[:_NAME_BYTES]}%{digest}"
    return name


def _text(line: _Line) -> str:
    at = datetime.fromtimestamp(line.at, UTC).isoformat(timespec="milliseconds")
    head: dict[str, Any] = {"t": at.replace("+00:00", "Z"), "level": line.level}
    if line.key:
        head |= {"job": line.key, "attempt": line.attempt}
    return _encode({**head, "event": line.event, **line.fields}) + "\n"


def logs_folder(directory: Path) -> Path:
    """Return where the logs of the run in ``directory`` lie."""
    return Path(directory, "logs")
