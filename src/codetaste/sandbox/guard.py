"""Nothing outlives us: a guard in a program's process group that kills the group when we are gone.

A signal that a dying parent sends to its children (PR_SET_PDEATHSIG) has to be asked for by each of them, and
who dies in between leaves them running. A guard reads from a pipe that only we can close: by ending it, or by
ending.
"""

from __future__ import annotations

import contextlib
import os
import select
from dataclasses import dataclass

import anyio

# A pipe opened anew through /proc does not wait for a writer, so a guard that comes late sees the end too.
# A word means that all is well. Otherwise the program is stopped first, so that it has no more children; then
# whoever inherited our pipe is killed by name, for it may have left the group, lost its parent, and not yet
# asked to die with it.
_GUARDED = """
{
  read -r _ </proc/self/fd/"$0" && exit
  read -r me _ _ parent group _ </proc/self/stat
  [ "$parent" = $$ ] && kill -STOP $$
  for round in 1 2 3; do
    for held in /proc/[0-9]*/fd/"$0"; do
      pid=${held#/proc/}; pid=${pid%%/*}
      [ "$pid" != "$me" ] && [ "$held" -ef /proc/self/fd/"$0" ] && kill -KILL "$pid"
    done
  done
  [ "$parent" = $$ ] && kill -KILL $$
  [ "$group" = $$ ] && kill -KILL 0
} >/dev/null 2>&1 &
exec "$@"
"""
_GONE_WITHIN_S = 1.0
OWN_PROCESSES = 1
"""How many processes a guard is."""


@dataclass(slots=True)
class Guard:
    """The two ends of the pipe. The program inherits ``reading``; ours is closed once it was started."""

    reading: int
    writing: int

    def over(self, argv: tuple[str, ...]) -> tuple[str, ...]:
        """Return ``argv`` under guard; best started as the leader of a new session, so that none escapes."""
        return ("/bin/sh", "-c", _GUARDED, str(self.reading), *argv)

    def release(self) -> None:
        """End the guard: the program has ended. May be called again."""
        if self.writing >= 0:
            with contextlib.suppress(OSError):
                os.write(self.writing, b"over\n")
            os.close(self.writing)
            self.writing = -1

    async def dismiss(self) -> None:
        """End the guard, and wait until it is gone: for a second at most, on a busy machine."""
        if self.writing < 0:
            return
        with contextlib.suppress(OSError):
            os.write(self.writing, b"over\n")
        # The last one to hold the other end is the guard.
        held = select.poll()
        held.register(self.writing, 0)
        with anyio.move_on_after(_GONE_WITHIN_S, shield=True):
            while not held.poll(0):  # noqa: ASYNC110 (a pipe that nobody reads sets no event)
                await anyio.sleep(0.002)
        os.close(self.writing)
        self.writing = -1

    def close(self) -> None:
        """End the guard, and close the end that a program was to inherit."""
        self.release()
        os.close(self.reading)


def new_guard() -> Guard:
    """Return a guard for one program."""
    return Guard(*os.pipe())
