"""The folder that a box has mounted to be controlled by: a socket, and the program that connects to it."""

from __future__ import annotations

import os
import shutil
import socket
from pathlib import Path

SOCKET = "warden.sock"
PROGRAMS = ("warden.mjs", "warden_processes.mjs")
"""The first is run, the others are parts of it."""


def open_door(folder: Path) -> socket.socket:
    """Make ``folder``; return its socket, listening. Any uid may connect, as far as the folder is reached.

    Raises:
        OSError: the folder is there already, or cannot be made.
    """
    folder.mkdir()
    folder.chmod(0o755)
    for name in PROGRAMS:
        shutil.copyfile(Path(__file__).with_name(name), folder / name)
        (folder / name).chmod(0o644)
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    here = os.open(folder, os.O_PATH | os.O_DIRECTORY)
    try:
        # However long the path is: a socket's own may have 107 bytes.
        listening.bind(f"/proc/self/fd/{here}/{SOCKET}")
        (folder / SOCKET).chmod(0o666)
        listening.listen()
        listening.setblocking(False)  # noqa: FBT003
    except BaseException:
        listening.close()
        raise
    finally:
        os.close(here)
    return listening
