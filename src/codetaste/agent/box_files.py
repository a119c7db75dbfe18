"""Reading and writing one file inside a box, with nothing but the shell that every image has.

The box contains; what is kept here is that an edit changes the file that was meant: below /testbed or /output
once all links are resolved, whole or not at all, with its mode, and byte for byte what was asked for.
"""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING

from codetaste.errors import ToolError
from codetaste.sandbox.box import OUTPUT, TESTBED
from codetaste.sandbox.sandbox import Limits

if TYPE_CHECKING:
    from codetaste.sandbox.box import Box
    from codetaste.sandbox.sandbox import Completed

FILE_BYTES = 4 * 1024**2
"""The largest file that can be edited."""
PLACES = (TESTBED, OUTPUT)
_WITHIN_S = 60.0
_SAID_CHARACTERS = 500
_PATH_BYTES = 4095
_MISSING = 80
_REFUSED = {
    81: "it leads out of /testbed and /output",
    82: "it is a directory",
    83: "it is no regular file",
    84: f"it is larger than {FILE_BYTES:,} bytes; change it by a command",
}
# Sets t to what $1 resolves to. A part that is not there yet is no link; what is above it must lie inside.
_RESOLVE = """
LC_ALL=C; export LC_ALL
nl='
'
up=$1; rest=
while ! [ -e "$up" ] && ! [ -L "$up" ]; do rest=/${up##*/}$rest; up=${up%/*}; done
t=$(readlink -f "$up" && printf x) || exit 81
t=${t%"${nl}x"}$rest
case $t in /testbed/?* | /output/?*) ;; *) exit 81 ;; esac
"""
_READ = f"""{_RESOLVE}
[ -d "$t" ] && exit 82
[ -e "$t" ] || exit {_MISSING}
[ -f "$t" ] || exit 83
size=$(wc -c <"$t") || exit 1
[ "$size" -le {FILE_BYTES} ] || exit 84
exec cat "$t"
"""
_WRITE = f"""{_RESOLVE}
folder=${{t%/*}}
new=$folder/.codetaste-edit-$$
mkdir -p "$folder" || exit 1
trap 'rm -f "$new"' 0
trap 'exit 1' 1 2 15
rm -f "$new"
(set -C; cat >"$new") || exit 1
size=$(wc -c <"$new") || exit 1
[ "$size" -eq "$2" ] || {{ echo "only $size of $2 bytes could be written" >&2; exit 1; }}
if [ -e "$t" ]; then mode=$(stat -c %a "$t") && chmod "$mode" "$new" || exit 1; fi
mv -f "$new" "$t"
"""


def place(path: str) -> str:
    """Return ``path``, relative to /testbed or whole, in the one form that the box is asked for.

    Raises:
        ToolError: it lies elsewhere, or is no path.
    """
    raw = encoded(path, "the path")
    whole = posixpath.normpath(posixpath.join(TESTBED, path))
    if not path or b"\0" in raw or len(raw) > _PATH_BYTES:
        raise ToolError("a path has at least one character and at most 4,095 bytes, none of them NUL")
    if not whole.startswith(tuple(f"{folder}/" for folder in PLACES)):
        raise ToolError(f"{path}: only files below {' and '.join(PLACES)} can be edited")
    return whole


def encoded(text: str, what: str) -> bytes:
    """Return ``text`` as UTF-8.

    Raises:
        ToolError: it has none.
    """
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise ToolError(f"{what} holds half of a surrogate pair, which is no character") from None


async def read_file(box: Box, path: str) -> bytes | None:
    """Return what the file at ``path``, as :func:`place` gives it, holds; None where there is none.

    Raises:
        ToolError: it cannot be edited, whatever is changed in it.
        SandboxError: the box is gone.
    """
    limits = Limits(wall_s=_WITHIN_S, output_bytes=FILE_BYTES + 1)
    done = await box.run(["/bin/sh", "-c", _READ, "sh", path], limits=limits)
    if done.exit_code == _MISSING:
        return None
    _check(done, path, "read")
    if done.truncated:
        raise ToolError(f"{path}: it grew while it was read")
    return done.stdout


async def write_file(box: Box, path: str, content: bytes) -> None:
    """Replace or make the file at ``path``, as :func:`place` gives it; folders that are missing are made.

    Raises:
        ToolError: it could not be written, and is as it was.
        SandboxError: the box is gone.
    """
    if len(content) > FILE_BYTES:
        raise ToolError(f"{path}: it would be {_REFUSED[84]}")
    command = ["/bin/sh", "-c", _WRITE, "sh", path, str(len(content))]
    done = await box.run(command, limits=Limits(wall_s=_WITHIN_S), stdin=content)
    _check(done, path, "written")


def _check(done: Completed, path: str, what: str) -> None:
    if done.exit_code in _REFUSED:
        raise ToolError(f"{path}: {_REFUSED[done.exit_code]}")
    if done.exit_code != 0:
        said = " ".join(done.stderr.decode(errors="replace").split())[:_SAID_CHARACTERS]
        why = "it took too long" if done.timed_out else said or f"exit code {done.exit_code}"
        raise ToolError(f"{path} could not be {what}: {why}")
