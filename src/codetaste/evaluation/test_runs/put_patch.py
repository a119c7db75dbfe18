"""Put R∘X̂ into a sandbox that has R: the host has applied the patch, no program of the sandbox does."""

from __future__ import annotations

import io
import os
import posixpath
import stat
import tarfile
import time
from typing import TYPE_CHECKING

from anyio import to_thread

from codetaste.errors import SandboxError
from codetaste.harness.testbed.build import member_header
from codetaste.sandbox.base import TESTBED, CommandLimits
from codetaste.source.tree.overlay import overlay_path

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from codetaste.sandbox.base import Sandbox
    from codetaste.source.tree.overlay import OverlayTree

_WITHIN_S = 300.0
# A file of R∘X̂ may be where R has a folder.
_REMOVE = """
cd /testbed || exit 1
while IFS= read -r -d '' path; do
    if [ -d "$path" ] && ! [ -L "$path" ]; then rm -rf -- "$path"; else rm -f -- "$path"; fi || exit 1
    case $path in */*) rmdir -p --ignore-fail-on-non-empty -- "${path%/*}" 2>/dev/null ;; esac
done
exit 0
"""


async def put_patch(sandbox: Sandbox, tree: OverlayTree) -> None:
    """Turn R in /testbed into ``tree``. Changed files get the current time, so that builds see them.

    Raises:
        SandboxError: it could not be done.
    """
    if not tree.changed and not tree.deleted:
        return
    names = sorted(tree.deleted | tree.changed)
    listing = b"".join(os.fsencode(name) + b"\0" for name in names)
    done = await sandbox.run(
        ["/bin/bash", "-c", _REMOVE], stdin=listing, limits=CommandLimits(wall_s=_WITHIN_S), workdir="/"
    )
    if done.exit_code != 0:
        reason = " ".join(done.stderr.decode(errors="replace").split())[:300]
        raise SandboxError(f"the patch cannot be put into the sandbox: {reason or 'removing files failed'}")
    if tree.changed:
        await sandbox.put(_archive(tree))


async def _archive(tree: OverlayTree) -> AsyncIterator[bytes]:
    now_s, folders = int(time.time()), set[str]()
    for name in sorted(tree.changed):
        yield await to_thread.run_sync(_members, tree, name, now_s, folders)
    yield b"\0" * 2 * tarfile.BLOCKSIZE


def _members(tree: OverlayTree, name: str, now_s: int, folders: set[str]) -> bytes:
    """Return the members of one file, after those of its folders that no earlier file had."""
    into, above = io.BytesIO(), posixpath.dirname(name)
    missing = []
    while above and above not in folders:
        folders.add(above)
        missing.append(above)
        above = posixpath.dirname(above)
    for folder in reversed(missing):
        into.write(member_header(_inside(folder), tarfile.DIRTYPE, mtime_s=now_s))
    path = overlay_path(tree, name)
    status = path.lstat()
    if stat.S_ISLNK(status.st_mode):
        target = os.readlink(os.fsencode(path))  # noqa: PTH115 - a Path would change the target
        into.write(member_header(_inside(name), tarfile.SYMTYPE, link=target, mtime_s=now_s))
    else:
        content, mode = path.read_bytes(), 0o755 if status.st_mode & 0o100 else 0o644
        into.write(member_header(_inside(name), tarfile.REGTYPE, mode=mode, size=len(content), mtime_s=now_s))
        into.write(content + b"\0" * (-len(content) % tarfile.BLOCKSIZE))
    return into.getvalue()


def _inside(name: str) -> bytes:
    return TESTBED[1:].encode() + b"/" + os.fsencode(name)
