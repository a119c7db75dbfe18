"""SIGINT, SIGTERM and SIGHUP: the first stops a run cleanly, the second faster, the third at once."""

from __future__ import annotations

import signal
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

import anyio

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from anyio.abc import TaskStatus

    from codetaste.orchestration.session import Session

_STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_MAX_CLEAN_STOPS = 2
_T = TypeVar("_T")


@contextmanager
def signals_raise_keyboard_interrupt() -> Iterator[None]:
    """Make SIGTERM and SIGHUP raise KeyboardInterrupt, as Ctrl-C does."""
    changed = [number for number in _STOP_SIGNALS if signal.getsignal(number) is signal.SIG_DFL]
    for number in changed:
        signal.signal(number, signal.default_int_handler)
    try:
        yield
    finally:
        for number in changed:
            signal.signal(number, signal.SIG_DFL)


@dataclass(slots=True)
class StopRequest:
    """Stop requests of the user: the name of the signal ("" if none came), and what it stops."""

    reason: str = ""
    requests: int = 0
    session: Session | None = None
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)

    def request(self, why: str) -> None:
        """Drain the run at the first request, shorten clean-up at the second, cancel all at the third."""
        self.reason, self.requests = why, self.requests + 1
        if self.session is None or self.requests > _MAX_CLEAN_STOPS:
            self.scope.cancel()
        else:
            self.session.drain(why)


async def listen_for_signals(
    stop: StopRequest, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED
) -> None:
    """Turn each SIGINT, SIGTERM and SIGHUP into a stop request, until cancelled."""
    try:
        with anyio.open_signal_receiver(*_STOP_SIGNALS) as signals:
            task_status.started()
            async for number in signals:
                stop.request(signal.Signals(number).name)
    finally:
        if stop.requests:
            # A further Ctrl-C while the process exits must not change its exit code.
            for number in _STOP_SIGNALS:
                signal.signal(number, signal.SIG_IGN)


async def until_stopped(stop: StopRequest, work: Callable[[], Awaitable[_T]]) -> _T | None:
    """Return the result of ``work``, which signals stop; None if they cancelled it."""
    result: _T | None = None
    async with anyio.create_task_group() as tasks:
        stop.scope = tasks.cancel_scope
        await tasks.start(listen_for_signals, stop)
        result = await work()
        tasks.cancel_scope.cancel()
    return result
