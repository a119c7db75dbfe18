"""The Landlock engine, a fallback where user namespaces are forbidden: an allow-list of files plus a filter.

It protects less than bubblewrap: R stays at its own path, commands can test whether a path with a known name
exists, and temporary files are in the folder of TMPDIR. Contents, listings, writes, the network and other
processes are out of reach.
"""

from __future__ import annotations

import ctypes
import errno
import marshal
import math
import os
import sys
import tempfile
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from codetaste.sandbox.containment.command import OPEN_FILES, SCRATCH_BYTES, CommandSpec, LaunchPlan
from codetaste.sandbox.seccomp.shell_filter import FilterGaps, assemble_shell_filter

if TYPE_CHECKING:
    from collections.abc import Iterator

    from codetaste.sandbox.containment.host_view import HostView

_CREATE_RULESET, _VERSION_FLAG = 444, 1
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_REMOVE, _MAKE_DIR, _MAKE_REG, _MAKE_FIFO, _MAKE_SYM = 1 << 4 | 1 << 5, 1 << 7, 1 << 8, 1 << 10, 1 << 12
_REFER, _TRUNCATE, _IOCTL_DEV = 1 << 13, 1 << 14, 1 << 15
_ABI_1 = (1 << 13) - 1
_READ = _EXECUTE | _READ_FILE | _READ_DIR
_WRITE = _READ | _WRITE_FILE | _REMOVE | _MAKE_DIR | _MAKE_REG | _MAKE_FIFO | _MAKE_SYM | _REFER | _TRUNCATE
_FILE_RIGHTS = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL_DEV
_DEVICE = _READ_FILE | _WRITE_FILE | _TRUNCATE
_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
_ABI_REFER, _ABI_TRUNCATE, _ABI_NET, _ABI_IOCTL, _ABI_SCOPE = 2, 3, 4, 5, 6
_NET = 0b11  # BIND_TCP, CONNECT_TCP
_SCOPED = 0b11  # ABSTRACT_UNIX_SOCKET, SIGNAL
_ATTRIBUTE_SIZES = {1: 8, 2: 8, 3: 8, 4: 16, 5: 16}
_WHOLE_ATTRIBUTES = 24
_LAUNCHER = Path(__file__).with_name("launcher.py")
_TOOLS = ".tools"


def landlock_version() -> int:
    """Return the version of Landlock that the kernel offers.

    Raises:
        OSError: it offers none: ENOSYS (not built in, or hidden by a filter), EOPNOTSUPP (not enabled at
            boot), or another error.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    version: int = libc.syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint(_VERSION_FLAG))
    if version < 1:
        fault = ctypes.get_errno() or errno.ENOSYS
        raise OSError(fault, os.strerror(fault))
    return version


def describe_protections(version: int) -> tuple[str, ...]:
    """Describe what ``version`` protects beyond the read-only view and the missing network."""
    return (
        "signals to other processes: refused by the kernel"
        if version >= _ABI_SCOPE
        else "signals: only to a command's own process group (kill and timeout inside are limited)",
        "truncation: refused by the kernel"
        if version >= _ABI_TRUNCATE
        else "truncation: refused by the filter",
        "existence of files elsewhere can be tested by name; their content and listings cannot be read",
    )


def plan_launch(version: int, spec: CommandSpec) -> LaunchPlan:
    """Return the launch plan of ``spec``, with a new scratch folder that the launcher removes."""
    scratch = Path(tempfile.mkdtemp(prefix="codetaste-sandbox-"))
    tools = scratch / _TOOLS
    tools.mkdir()
    for name, path in spec.tools.items():
        (tools / name).symlink_to(path)
    env = {"TMPDIR": str(scratch), **spec.env, "PATH": f"{tools}:{spec.env.get('PATH', '')}"}
    gaps = FilterGaps(
        files=True, processes=True, signals=version < _ABI_SCOPE, truncate=version < _ABI_TRUNCATE
    )
    status_fd, report_fd = os.pipe()
    plan = {
        "starter": os.getpid(),
        "command": list(spec.command),
        "env": env,
        "cwd": str(spec.tree),
        "scratch": str(scratch),
        "limits": {
            "RLIMIT_CORE": 0,
            "RLIMIT_FSIZE": SCRATCH_BYTES,
            "RLIMIT_DATA": spec.limits.memory_bytes,
            "RLIMIT_CPU": math.ceil(spec.limits.wall_s) * (os.cpu_count() or 1) + 1,
            "RLIMIT_NOFILE": OPEN_FILES,
            "RLIMIT_NPROC": spec.limits.processes,
        },
        "landlock": _ruleset(version, spec, scratch),
        "seccomp": assemble_shell_filter(gaps),
    }
    plan_fd = os.memfd_create("codetaste")
    os.write(plan_fd, marshal.dumps(plan))
    os.lseek(plan_fd, 0, os.SEEK_SET)
    argv = (sys.executable, "-I", "-S", str(_LAUNCHER), str(plan_fd), str(report_fd))
    return LaunchPlan(
        argv, (plan_fd, report_fd), status_fd, has_pid_namespace=False, own_processes=2, scratch=scratch
    )


def _ruleset(version: int, spec: CommandSpec, scratch: Path) -> dict[str, object]:
    handled = _ABI_1
    for right, since in ((_REFER, _ABI_REFER), (_TRUNCATE, _ABI_TRUNCATE), (_IOCTL_DEV, _ABI_IOCTL)):
        handled |= right if version >= since else 0
    return {
        "fs": handled,
        "net": _NET if version >= _ABI_NET else 0,
        "scoped": _SCOPED if version >= _ABI_SCOPE else 0,
        "size": _ATTRIBUTE_SIZES.get(version, _WHOLE_ATTRIBUTES),
        "rules": [(path, access & handled) for path, access in _rules(spec, scratch)],
    }


def _rules(spec: CommandSpec, scratch: Path) -> Iterator[tuple[str, int]]:
    yield from _view_rules(spec.view)
    yield from ((str(path), _READ & _FILE_RIGHTS) for path in spec.tools.values())
    yield from ((path, _DEVICE) for path in _DEVICES)
    yield from ((str(spec.tree), _READ), (str(scratch), _WRITE))


@lru_cache(maxsize=4)
def _view_rules(view: HostView) -> tuple[tuple[str, int], ...]:
    paths = (*view.visible_paths(), *view.settings)
    # The kernel refuses rights of folders for files.
    return tuple((path, _READ if Path(path).is_dir() else _READ & _FILE_RIGHTS) for path in paths)
