"""The bubblewrap command line of a local sandbox: the host's system, read-only, and writable folders.

As root, bubblewrap makes namespaces without a user namespace, and the supervisor becomes the real uid 1000,
which owns no file of root. For other users uid 1000 in the sandbox is mapped to their own uid.
"""

from __future__ import annotations

import os
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from codetaste.sandbox.base import GID, HOME, UID
from codetaste.sandbox.containment.bubblewrap import host_view_options, plan_bubblewrap
from codetaste.sandbox.containment.host_view import SYSTEM_PATH, find_ripgrep, host_view
from codetaste.sandbox.local.folders import TMP
from codetaste.sandbox.seccomp.sandbox_filter import assemble_sandbox_filter

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from codetaste.sandbox.base import SandboxSpec
    from codetaste.sandbox.containment.command import LaunchPlan
    from codetaste.sandbox.supervisor.client import SupervisorClient

OWN_PROCESSES = 16
"""Processes and threads of bubblewrap, the guard, and the supervisor."""
_TOOLS = "/opt/codetaste/bin"
"""What container images have and hosts may lack: the last folder of PATH."""
SANDBOX_PATH = f"{SYSTEM_PATH}:{_TOOLS}"
_SHARED_MEMORY_BYTES = 256 * 1024**2
_BLOCK = 512
_SETTINGS = (
    "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf",
    "/etc/ca-certificates",
    "/etc/pki/tls/certs",
    "/etc/pki/ca-trust",
    "/etc/protocols",
    "/etc/services",
    "/etc/mime.types",
)
_FILES = {
    "/etc/passwd": f"root:x:0:0:root:/root:/bin/sh\nagent:x:{UID}:{GID}:agent:{HOME}:/bin/bash\n"
    "nobody:x:65534:65534::/nonexistent:/bin/false\n",
    "/etc/group": f"root:x:0:\nagent:x:{GID}:\nnogroup:x:65534:\n",
    "/etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n",
}
_HOSTS = "127.0.0.1 localhost sandbox\n::1 localhost\n"
_LIMITS_SCRIPT = 'ulimit -f {blocks}; {processes}exec "$@"'
_PROCESS_LIMIT = "ulimit -p {count} 2>/dev/null || ulimit -u {count}; "


def is_privileged() -> bool:
    """Return whether sandboxes are made with root's privileges, not in a user namespace."""
    return os.geteuid() == 0


def base_environment(spec: SandboxSpec) -> dict[str, str]:
    """Return the variables of every command in the sandbox."""
    own = {"HOME": HOME, "USER": "agent", "LOGNAME": "agent", "SHELL": "/bin/bash", "TMPDIR": TMP}
    return {"PATH": SANDBOX_PATH, "LANG": "C.UTF-8", **own, **spec.egress.env, **spec.env}


def plan_sandbox_launch(
    program: Path, spec: SandboxSpec, supervisor: SupervisorClient, folders: Mapping[str, Path]
) -> LaunchPlan:
    """Return how to start a sandbox under the bubblewrap at ``program``.

    Raises:
        OSError: no descriptor is left.
    """
    network = spec.egress.network
    files = _FILES if network else {**_FILES, "/etc/hosts": _HOSTS}
    settings = (*_SETTINGS, "/etc/hosts", "/etc/resolv.conf") if network else _SETTINGS
    mounts = {mount.target: mount.source for mount in (*supervisor.mounts, *spec.mounts)}
    if rg := find_ripgrep():
        mounts[f"{_TOOLS}/rg"] = rg.resolve()
    options = (
        *_namespaces(network=network),
        *("--seccomp", assemble_sandbox_filter()),
        *_folders((*mounts, *folders, *_SETTINGS, "/run/x", f"{_TOOLS}/python")),
        *host_view_options(host_view()),
        *(
            part
            for path, text in files.items()
            for part in ("--perms", "0644", "--file", text.encode(), path)
        ),
        *(part for path in settings if Path(path).exists() for part in ("--ro-bind", path, path)),
        # The memory of /dev is not counted: only what is mounted there is writable.
        *("--dev", "/dev", "--perms", "1777", "--size", str(_SHARED_MEMORY_BYTES), "--tmpfs", "/dev/shm"),  # noqa: S108
        *("--remount-ro", "/dev", "--proc", "/proc"),
        *(part for target, source in mounts.items() for part in ("--ro-bind", str(source), target)),
        *(part for path, folder in folders.items() for part in ("--bind", str(folder), path)),
        *("--symlink", "/usr/bin/python3", f"{_TOOLS}/python"),
        *("--symlink", TMP, "/var/tmp", "--symlink", "/run", "/var/run"),  # noqa: S108 (inside)
        *("--remount-ro", "/", "--chdir", "/", "--clearenv"),
        *(part for pair in base_environment(spec).items() for part in ("--setenv", *pair)),
    )
    # For sandboxes of root the kernel would count all processes of uid 1000 on the host together.
    processes = "" if is_privileged() else _PROCESS_LIMIT.format(count=spec.processes + OWN_PROCESSES)
    script = _LIMITS_SCRIPT.format(blocks=spec.disk_bytes // _BLOCK, processes=processes)
    command = ("/bin/sh", "-c", script, "sh", *supervisor.argv)
    return plan_bubblewrap(program, options, command, own_processes=OWN_PROCESSES)


def _namespaces(*, network: bool) -> Iterator[str]:
    yield from (
        "--unshare-ipc",
        "--unshare-pid",
        "--unshare-uts",
        "--unshare-cgroup-try",
        "--hostname",
        "sandbox",
    )
    if not network:
        yield "--unshare-net"
    # The supervisor's shell must be the first process, because that adopts orphans.
    yield from ("--as-pid-1", "--die-with-parent", "--new-session", "--cap-drop", "ALL")
    if is_privileged():
        yield from ("--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID")
    else:
        yield from ("--unshare-user", "--uid", str(UID), "--gid", str(GID))


def _folders(paths: tuple[str, ...]) -> Iterator[str]:
    """Create the parents of ``paths``: those that bubblewrap creates itself may be closed to uid 1000."""
    above = {str(parent) for path in paths for parent in PurePosixPath(path).parents if parent.name}
    for folder in sorted({*above, "/var"}):
        yield from ("--perms", "0755", "--dir", folder)
