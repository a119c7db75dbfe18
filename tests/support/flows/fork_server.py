"""Commands of codetaste as forks of a process that has imported it: a start takes 0.1 CPU seconds, not 1.5.

Each is a process of its own with folder, variables, streams and exit status as after ``subprocess.Popen``,
and ends as any interpreter does. Only its command line and its variables in /proc are those of the server,
which is this module run as a program.
"""

from __future__ import annotations

import atexit
import gc
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, cast

RUN = ("-m", "codetaste.run")
PRELOADED = (
    "anyio._backends._asyncio",
    "jinja2",
    "ruamel.yaml",
    "codetaste.cli.app",
    "codetaste.run.__main__",
    "codetaste.run.earlier_work",
    "codetaste.run.execute",
)
_STDOUT, _STDERR = 12, 14
"""Where ``Popen._execute_child`` gets the ends of the pipes that the command writes to."""
_STATUS_BYTES = 4
_MAX_REQUEST = 2**18


class ForkedProcess(subprocess.Popen[str]):
    """A command that the server runs in a fork: ``-m MODULE …`` or ``-c PROGRAM …``."""

    def __init__(self, command: Sequence[str], *, cwd: Path, env: Mapping[str, str]) -> None:
        self._request = json.dumps({"command": [*command], "cwd": str(cwd), "env": {**env}}).encode()
        super().__init__([*command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def _execute_child(self, _command: Sequence[str], *more: Any) -> None:
        self._status, status = os.pipe()
        ends = [more[_STDOUT], more[_STDERR], status]
        socket.send_fds(_server(), [self._request], ends)
        for end in ends:
            os.close(end)
        self.pid = int.from_bytes(os.read(self._status, _STATUS_BYTES), "big")
        assert self.pid, "the server of forked commands has ended"
        self._child_created = True

    def _try_wait(self, wait_flags: int) -> tuple[int, int]:
        if wait_flags & os.WNOHANG and not select.select([self._status], [], [], 0)[0]:
            return 0, 0
        status = os.read(self._status, _STATUS_BYTES)
        os.close(self._status)
        return self.pid, int.from_bytes(status, "big")

    def _internal_poll(self, *_: object, **__: object) -> int | None:
        if self.returncode is None:
            pid, status = self._try_wait(os.WNOHANG)
            if pid:
                self.returncode = os.waitstatus_to_exitcode(status)
        return cast("int | None", self.returncode)


@cache
def _server() -> socket.socket:
    """Start the server of this process, which ends with it."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        server = subprocess.Popen(
            [sys.executable, "-W", "error", __file__, str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            # The threads of numpy's library would make a fork unsafe.
            env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
        )
    atexit.register(server.wait)
    atexit.register(ours.close)
    return ours


def _serve(connection: socket.socket) -> dict[str, Any] | None:
    """Fork for each request, and return it in the new process; return None when there are no more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # so that no keeper stays as a zombie
    for name in PRELOADED:
        import_module(name)
    gc.collect()
    gc.freeze()
    while True:
        request, files, *_ = socket.recv_fds(connection, _MAX_REQUEST, 3)
        if not request:
            connection.close()
            return None
        if os.fork() == 0 and _is_command(*files):
            connection.detach()
            os.closerange(3, os.sysconf("SC_OPEN_MAX"))
            return cast("dict[str, Any]", json.loads(request))
        for file in files:
            os.close(file)


def _is_command(stdout: int, stderr: int, status: int) -> bool:
    """Fork again: return True in the command, and report its id and its status from the process between."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    pid = os.fork()
    if pid == 0:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        os.dup2(stdout, 1)
        os.dup2(stderr, 2)
        return True
    os.close(stdout)
    os.close(stderr)
    os.write(status, pid.to_bytes(_STATUS_BYTES, "big"))
    os.write(status, os.waitpid(pid, 0)[1].to_bytes(_STATUS_BYTES, "big"))
    os._exit(0)


def _run(command: Sequence[str], cwd: str, env: Mapping[str, str]) -> None:
    """Do what a new interpreter does with this command."""
    os.chdir(cwd)
    tempfile.tempdir = None
    os.environ.clear()
    os.environ.update(env)
    sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115 - for the time of this process
    sys.stderr = open(2, "w", 1, errors="backslashreplace", closefd=False)  # noqa: SIM115
    option, what, *arguments = command
    sys.argv[:] = [option, *arguments]
    if option == "-m":
        sys.path.insert(0, cwd)
        sys.modules.pop(f"{what}.__main__", None)
        runpy.run_module(what, run_name="__main__", alter_sys=True)
    else:
        sys.path.insert(0, "")
        sys.modules["__main__"] = main = ModuleType("__main__")
        exec(what, main.__dict__)


if __name__ == "__main__":
    sys.path.pop(0)  # the folder of this file
    found = _serve(socket.socket(fileno=int(sys.argv[1])))
    if found is not None:
        _run(**found)
