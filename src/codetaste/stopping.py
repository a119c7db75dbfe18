"""Ctrl-C, a termination and a terminal that goes away: in good order, then faster, then at once."""

from __future__ import annotations

import signal
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import anyio

if TYPE_CHECKING:
    from collections.abc import Iterator

    from anyio.abc import TaskStatus

    from codetaste.orchestration.session import Session

_STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_PATIENCE = 2


@contextmanager
def like_ctrl_c() -> Iterator[None]:
    """Let a termination and a terminal that goes away raise KeyboardInterrupt, as Ctrl-C does."""
    ours = [number for number in _STOPPING if signal.getsignal(number) is signal.SIG_DFL]
    for number in ours:
        signal.signal(number, signal.default_int_handler)
    try:
        yield
    finally:
        for number in ours:
            signal.signal(number, signal.SIG_DFL)


@dataclass(slots=True)
class Stop:
    """Why the user stopped the run, "" if nobody did, and what there is to be stopped."""

    why: str = ""
    asked: int = 0
    session: Session | None = None
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)

    def ask(self, why: str) -> None:
        """Stop in good order at the first request; cut clean-up short at the second; give up at the third."""
        self.why, self.asked = why, self.asked + 1
        if self.session is None or self.asked > _PATIENCE:
            self.scope.cancel()
        else:
            self.session.drain(why)


async def listen(stop: Stop, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
    """Let Ctrl-C, a termination, and a terminal that goes away stop the run at any time."""
    try:
        with anyio.open_signal_receiver(*_STOPPING) as signals:
            task_status.started()
            async for number in signals:
                stop.ask(signal.Signals(number).name)
    finally:
        if stop.asked:
            # An impatient Ctrl-C that comes while the process is leaving must not spoil its exit code.
            for number in _STOPPING:
                signal.signal(number, signal.SIG_IGN)
