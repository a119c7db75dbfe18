"""Ctrl-C before a command has begun: while Python still imports there is nothing to put in order.

Only the programs call this, first of all; importing codetaste leaves a process' signals alone.
"""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import FrameType

_STOPPED = 130


def leave_quietly() -> None:
    """From now on Ctrl-C ends the process at once with exit code 130, unless it is ignored altogether."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _leave)


def in_good_order() -> bool:
    """From now on Ctrl-C raises KeyboardInterrupt again; whether it did not before."""
    if signal.getsignal(signal.SIGINT) is not _leave:
        return False
    signal.signal(signal.SIGINT, signal.default_int_handler)
    return True


def _leave(_number: int, _frame: FrameType | None) -> None:
    os._exit(_STOPPED)
