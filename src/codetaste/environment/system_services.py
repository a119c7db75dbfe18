"""Run ``setup_system.sh`` of an environment as root, and what it starts, beside the commands of the user."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import anyio

from codetaste.core.concurrency import background_tasks
from codetaste.errors import SandboxError
from codetaste.sandbox.base import CommandLimits, Privileges
from codetaste.sandbox.output import BoundedOutput

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from codetaste.sandbox.base import Sandbox

_FOREVER_S = 1e6
_OUTPUT_BYTES = 64 * 1024
# It does not end, so that no process that it started is taken for a leftover of a command.
_SCRIPT = """
cd /testbed
/scripts/setup_system.sh >&2
printf 'ended %s\\n' "$?"
exec sleep infinity
"""


@asynccontextmanager
async def system_services(sandbox: Sandbox, privileges: Privileges, within_s: float) -> AsyncIterator[str]:
    """Run ``setup_system.sh`` as root; what it starts runs until the block ends.

    Gives why the script failed, "" if it did not. Without privileges nothing is done: the user's shell runs
    the script then.

    Args:
        sandbox: an open sandbox with the scripts at /scripts.
        privileges: those of the sandbox.
        within_s: time limit of the script, seconds.
    """
    if privileges is Privileges.NONE:
        yield ""
        return
    received, ended = BoundedOutput(_OUTPUT_BYTES), anyio.Event()

    async def take(piece: bytes) -> None:
        received.add(piece)
        if b"\n" in piece:
            ended.set()

    async def serve() -> None:
        limits = CommandLimits(wall_s=_FOREVER_S, output_bytes=_OUTPUT_BYTES)
        try:
            await sandbox.run(["/bin/bash", "-c", _SCRIPT], limits=limits, sink=take, root=True)
        except SandboxError:
            pass  # the command that needs the sandbox reports its end
        finally:
            ended.set()

    async with background_tasks() as tasks:
        tasks.start_soon(serve)
        with anyio.move_on_after(within_s):
            await ended.wait()
        yield _problem(received.content(), within_s, ended=ended.is_set())


def _problem(output: bytes, within_s: float, *, ended: bool) -> str:
    if not ended:
        return f"setup_system.sh did not end within {within_s:.0f} s"
    code = output.partition(b"ended ")[2].split(b"\n")[0].decode(errors="replace")
    return "" if code == "0" else f"setup_system.sh ended with exit code {code or 'unknown'}"
