"""Blocking work beside the event loop that does not keep a stopped process alive, as a run may be large."""

from __future__ import annotations

from contextlib import suppress
from threading import Thread
from typing import TYPE_CHECKING, TypeVar

import anyio
from anyio import from_thread
from anyio.lowlevel import current_token

if TYPE_CHECKING:
    from collections.abc import Callable

_Result = TypeVar("_Result")


async def run_in_background(call: Callable[[], _Result]) -> _Result:
    """Return what ``call`` returns, or raise what it raises. Cancelled, it leaves the call to itself.

    The thread is a daemon, unlike anyio's own: only what may be broken off at any point can be run in it.
    """
    token, ended = current_token(), anyio.Event()
    results: list[_Result] = []
    errors: list[BaseException] = []

    def work() -> None:
        try:
            results.append(call())
        except BaseException as error:  # noqa: BLE001 - raised where it is awaited
            errors.append(error)
        with suppress(RuntimeError):  # the loop has ended
            from_thread.run_sync(ended.set, token=token)

    Thread(target=work, daemon=True).start()
    await ended.wait()
    if errors:
        raise errors[0]
    return results[0]
