"""Read and write one file in a sandbox with /bin/sh, which every image has.

The sandbox provides the containment. This module ensures that an edit changes the intended file: it is below
/testbed or /output after resolving all links, it is replaced atomically with exactly the given bytes, and it
keeps its mode.
"""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING

from codetaste.errors import ToolError
from codetaste.sandbox.base import OUTPUT, TESTBED, CommandLimits

if TYPE_CHECKING:
    from codetaste.sandbox.base import CommandResult, Sandbox

FILE_BYTES = 4 * 1024**2
"""The largest file that can be edited."""
EDITABLE_FOLDERS = (TESTBED, OUTPUT)
_TIMEOUT_S = 60.0
_ERROR_CHARACTERS = 500
_PATH_BYTES = 4095
_MISSING_EXIT_CODE = 80
_REASONS = {
    81: "it leads out of /testbed and /output",
    82: "it is a directory",
    83: "it is not a regular file",
    84: f"it is larger than {FILE_BYTES:,} bytes; change it with a command",
}
# Sets t to the resolved $1. Parts that do not exist yet are not links; their existing parent must be inside.
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
[ -e "$t" ] || exit {_MISSING_EXIT_CODE}
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


def sandbox_path(path: str) -> str:
    """Return ``path`` (absolute, or relative to /testbed) as a normalised absolute path.

    Raises:
        ToolError: it is outside the editable folders, or not a path.
    """
    raw = encode_utf8(path, "the path")
    whole = posixpath.normpath(posixpath.join(TESTBED, path))
    if not path or b"\0" in raw or len(raw) > _PATH_BYTES:
        raise ToolError("a path has at least one character and at most 4,095 bytes, none of them NUL")
    if not whole.startswith(tuple(f"{folder}/" for folder in EDITABLE_FOLDERS)):
        raise ToolError(f"{path}: only files below {' and '.join(EDITABLE_FOLDERS)} can be edited")
    return whole


def encode_utf8(text: str, what: str) -> bytes:
    """Return ``text`` as UTF-8.

    Raises:
        ToolError: it contains a lone surrogate.
    """
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise ToolError(f"{what} contains half of a surrogate pair, which is not a character") from None


async def read_file(sandbox: Sandbox, path: str) -> bytes | None:
    """Return the content of the file at ``path`` (a result of ``sandbox_path``), None if it does not exist.

    Raises:
        ToolError: the file cannot be edited.
        SandboxError: the sandbox has ended.
    """
    limits = CommandLimits(wall_s=_TIMEOUT_S, output_bytes=FILE_BYTES + 1)
    done = await sandbox.run(["/bin/sh", "-c", _READ, "sh", path], limits=limits)
    if done.exit_code == _MISSING_EXIT_CODE:
        return None
    _check(done, path, "read")
    if done.truncated:
        raise ToolError(f"{path}: it grew while it was read")
    return done.stdout


async def write_file(sandbox: Sandbox, path: str, content: bytes) -> None:
    """Write the file at ``path`` (a result of ``sandbox_path``), and make missing folders.

    Raises:
        ToolError: the file could not be written, and is unchanged.
        SandboxError: the sandbox has ended.
    """
    if len(content) > FILE_BYTES:
        raise ToolError(f"{path}: it would be {_REASONS[84]}")
    command = ["/bin/sh", "-c", _WRITE, "sh", path, str(len(content))]
    done = await sandbox.run(command, limits=CommandLimits(wall_s=_TIMEOUT_S), stdin=content)
    _check(done, path, "written")


def _check(done: CommandResult, path: str, what: str) -> None:
    if done.exit_code in _REASONS:
        raise ToolError(f"{path}: {_REASONS[done.exit_code]}")
    if done.exit_code != 0:
        output = " ".join(done.stderr.decode(errors="replace").split())[:_ERROR_CHARACTERS]
        why = "it took too long" if done.timed_out else output or f"exit code {done.exit_code}"
        raise ToolError(f"{path} could not be {what}: {why}")
