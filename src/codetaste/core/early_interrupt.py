"""Ctrl-C while Python is still importing: exit at once, since there is nothing to clean up.

Only program entry points call this, before anything else; importing codetaste changes no signal handlers.
"""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import FrameType

_STOPPED = 130


def exit_on_sigint() -> None:
    """Make Ctrl-C end the process at once with exit code 130, unless SIGINT is ignored."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _exit)


def restore_sigint() -> bool:
    """Make Ctrl-C raise KeyboardInterrupt again; returns whether that changed the handler."""
    if signal.getsignal(signal.SIGINT) is not _exit:
        return False
    signal.signal(signal.SIGINT, signal.default_int_handler)
    return True


def _exit(_number: int, _frame: FrameType | None) -> None:
    os._exit(_STOPPED)
