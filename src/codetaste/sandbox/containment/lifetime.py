"""The life of a contained program: its status, its end with codetaste, and the end of its namespace.

A guard in its process group kills the group when codetaste dies. Every child would have to ask for the signal
of a dying parent (PR_SET_PDEATHSIG) itself, and a parent that dies before that leaves it running. The guard
reads from a pipe whose other end only codetaste holds; it closes when codetaste closes it, or dies.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
from dataclasses import dataclass
from typing import TYPE_CHECKING

import anyio

from codetaste.core.processes import process_stat

if TYPE_CHECKING:
    from anyio.abc import Process


# A pipe reopened through /proc does not wait for a writer, so a guard that starts late sees the end as well.
# A line in the pipe means a regular end. Otherwise the program is stopped first, so that it starts no more
# children; then every process that inherited the pipe is killed by pid, because it may have left the group
# and lost its parent before it set its own PR_SET_PDEATHSIG.
_GUARD_SCRIPT = """
{
  read -r _ </proc/self/fd/"$0" && exit
  read -r me _ _ parent group _ </proc/self/stat
  [ "$parent" = $$ ] && kill -STOP $$
  for round in 1 2 3; do
    for link in /proc/[0-9]*/fd/"$0"; do
      pid=${link#/proc/}; pid=${pid%%/*}
      [ "$pid" != "$me" ] && [ "$link" -ef /proc/self/fd/"$0" ] && kill -KILL "$pid"
    done
  done
  [ "$parent" = $$ ] && kill -KILL $$
  [ "$group" = $$ ] && kill -KILL 0
} >/dev/null 2>&1 &
exec "$@"
"""

_GONE_WITHIN_S, _REPORT_WITHIN_S = 1.0, 2.0

GUARD_PROCESSES = 1
"""Number of processes of a guard."""


@dataclass(slots=True)
class ParentDeathGuard:
    """The two ends of the pipe: the program inherits ``read_fd``, codetaste keeps ``write_fd``."""

    read_fd: int
    write_fd: int

    def wrap(self, argv: tuple[str, ...]) -> tuple[str, ...]:
        """Return ``argv`` under guard; start it as the leader of a new session, so that no child escapes."""
        return ("/bin/sh", "-c", _GUARD_SCRIPT, str(self.read_fd), *argv)

    def release(self) -> None:
        """End the guard after the end of the program. May be called again."""
        if self.write_fd >= 0:
            with contextlib.suppress(OSError):
                os.write(self.write_fd, b"over\n")
            os.close(self.write_fd)
            self.write_fd = -1

    async def release_and_wait(self) -> None:
        """End the guard and wait until it is gone, at most a second on a busy machine."""
        if self.write_fd < 0:
            return
        with contextlib.suppress(OSError):
            os.write(self.write_fd, b"over\n")
        # The guard is the last process to hold the other end.
        poll = select.poll()
        poll.register(self.write_fd, 0)
        with anyio.move_on_after(_GONE_WITHIN_S, shield=True):
            while not poll.poll(0):  # noqa: ASYNC110 (the loop gets no event of a pipe without a reader)
                await anyio.sleep(0.002)
        os.close(self.write_fd)
        self.write_fd = -1

    def close(self) -> None:
        """End the guard, and close the end that a program would have inherited."""
        self.release()
        os.close(self.read_fd)


def make_guard() -> ParentDeathGuard:
    """Return a guard for one program."""
    return ParentDeathGuard(*os.pipe())


async def kill_namespace(process: Process, report: StatusPipe) -> None:
    """Kill the first process in the namespace of ``process``, and wait for ``process``."""
    with contextlib.suppress(ProcessLookupError, FileNotFoundError):
        with anyio.move_on_after(_REPORT_WITHIN_S):
            # Polled, because the pid arrives within a millisecond or two.
            while report.first_pid() is None and process.returncode is None:  # noqa: ASYNC110
                await anyio.sleep(0.002)
        first_pid = report.first_pid()
        if first_pid is not None and int(process_stat(first_pid)[1]) == process.pid:
            os.kill(first_pid, signal.SIGKILL)
    await process.wait()


async def wait_gone(pid: int) -> None:
    """Wait until ``pid`` has ended; the first process of a namespace ends after all others."""
    try:
        descriptor = os.pidfd_open(pid)
    except OSError:
        return
    try:
        await anyio.wait_readable(descriptor)
    finally:
        os.close(descriptor)


class StatusPipe:
    """The reading end of the status pipe; reading never blocks."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._text = b""
        os.set_blocking(descriptor, False)

    def first_pid(self) -> int | None:
        """Return the pid, on the host, of the first process in the namespace; None while there is none."""
        value = self._values().get("child-pid")
        return value if isinstance(value, int) else None

    def exit_code(self) -> int | None:
        """Return the command's exit code (128 + n for signal n); None if there is none (yet)."""
        value = self._values().get("exit-code")
        return value if isinstance(value, int) else None

    def error(self) -> str:
        """Return why the command could not be contained, "" if nothing was reported."""
        return str(self._values().get("error", ""))

    def close(self) -> None:
        """Read what is left and close the pipe."""
        self._values()
        os.close(self._descriptor)
        self._descriptor = -1

    def _values(self) -> dict[str, object]:
        while self._descriptor >= 0:
            try:
                chunk = os.read(self._descriptor, 4096)
            except BlockingIOError:
                break
            if not chunk:
                break
            self._text += chunk
        values: dict[str, object] = {}
        for line in self._text.split(b"\n")[:-1]:
            values.update(json.loads(line))
        return values
