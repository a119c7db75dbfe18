"""What a sandbox's /testbed has beside its commit, as git sees it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from codetaste.core.text import printable
from codetaste.errors import SandboxError
from codetaste.sandbox.base import TESTBED, CommandLimits

if TYPE_CHECKING:
    from codetaste.sandbox.base import Sandbox

_GIT = ("git", "-c", "core.fsmonitor=false", "-C", TESTBED)
_STATUS_S, _CLEAN_S = 120.0, 300.0
_MAX_LISTED = 50


async def changed_files(sandbox: Sandbox) -> tuple[str, ...]:
    """Return what ``git status`` lists in /testbed, at most fifty lines.

    Raises:
        SandboxError: the sandbox is gone.
    """
    command = [*_GIT, "status", "--porcelain"]
    done = await sandbox.run(command, limits=CommandLimits(wall_s=_STATUS_S))
    if done.exit_code != 0:
        return (f"git status failed: {printable(done.stderr.decode(errors='replace'))}",)
    lines = [line for line in done.stdout.decode(errors="replace").splitlines() if line.strip()]
    return tuple(map(printable, lines[:_MAX_LISTED]))


async def untracked_files(sandbox: Sandbox) -> tuple[str, ...]:
    """Return the files and folders of /testbed that git neither has nor ignores, at most fifty.

    A folder of which git has no file is one name, with a slash at its end. A name that is not UTF-8 is left
    out. Where git does not work, as in an image without a repository, there is none.

    Raises:
        SandboxError: the sandbox is gone.
    """
    command = [*_GIT, "ls-files", "-z", "--others", "--exclude-standard", "--directory"]
    done = await sandbox.run([*command, "--no-empty-directory"], limits=CommandLimits(wall_s=_STATUS_S))
    listed = done.stdout if done.exit_code == 0 else b""
    names = (name.decode(errors="replace") for name in listed.split(b"\0") if name)
    return tuple(name for name in names if "\ufffd" not in name)[:_MAX_LISTED]


async def clean_testbed(sandbox: Sandbox) -> None:
    """Remove all files of /testbed that git does not have.

    Raises:
        SandboxError: it could not be done.
    """
    done = await sandbox.run([*_GIT, "clean", "-xdffq"], limits=CommandLimits(wall_s=_CLEAN_S))
    if done.exit_code != 0:
        reason = " ".join(done.stderr.decode(errors="replace").split())[:300]
        raise SandboxError(f"/testbed cannot be cleaned: {reason or 'it took too long'}")
