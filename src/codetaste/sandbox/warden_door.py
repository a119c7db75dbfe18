"""The control folder of a sandbox, which it has mounted: a socket, and the supervisor that connects to it."""

from __future__ import annotations

import os
import shutil
import socket
from pathlib import Path

SOCKET_NAME = "warden.sock"
PROGRAM_FILES = ("warden.mjs", "warden_processes.mjs")
"""The first is run, the others are imported by it."""


def make_control_socket(folder: Path) -> socket.socket:
    """Create ``folder`` and return its listening socket; any uid that reaches the folder may connect.

    Raises:
        OSError: the folder exists already, or cannot be created.
    """
    folder.mkdir()
    folder.chmod(0o755)
    for name in PROGRAM_FILES:
        shutil.copyfile(Path(__file__).with_name(name), folder / name)
        (folder / name).chmod(0o644)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    folder_fd = os.open(folder, os.O_PATH | os.O_DIRECTORY)
    try:
        # By descriptor, because the path of a socket may have only 107 bytes.
        listener.bind(f"/proc/self/fd/{folder_fd}/{SOCKET_NAME}")
        (folder / SOCKET_NAME).chmod(0o666)
        listener.listen()
        listener.setblocking(False)  # noqa: FBT003
    except BaseException:
        listener.close()
        raise
    finally:
        os.close(folder_fd)
    return listener
