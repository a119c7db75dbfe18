"""A lean image from a Debian root file system, for hosts that cannot reach a container registry."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections import deque
from typing import TYPE_CHECKING

import anyio

from codetaste.core.processes import kill_process_group
from codetaste.errors import SandboxError, ToolMissing
from codetaste.sandbox.base import GID, HOME, OUTPUT, TASK, TESTBED, UID
from codetaste.sandbox.containment.host_view import SYSTEM_PATH
from codetaste.sandbox.docker.images import import_image
from codetaste.sandbox.docker.spec import LEAN_KIND

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from anyio.abc import Process

    from codetaste.sandbox.docker.engine import ContainerEngine

LEAN_IMAGE = "codetaste/lean:bookworm-2"
"""The default image of sandboxes. The number goes up when its contents change."""
_SUITE = "bookworm"
_PACKAGES = (
    "ca-certificates",
    "curl",
    "git",
    "jq",
    "less",
    "patch",
    "procps",
    "python-is-python3",
    "python3",
    "ripgrep",
    "unzip",
    "xz-utils",
)
_LEFT_OUT = ("/usr/share/man/*", "/usr/share/doc/*", "/usr/share/info/*", "/usr/share/locale/*")
_DATE = "1764547200"
"""No file is younger: two builds from the same packages are the same."""
_FOLDERS = " ".join(f'"$1{folder}"' for folder in (TESTBED, TASK, OUTPUT, HOME))
_HOOKS = (
    f'chroot "$1" useradd --uid {UID} --user-group -M --home-dir {HOME} --shell /bin/bash agent',
    f"mkdir {_FOLDERS} && chown {UID}:{GID} {_FOLDERS}",
    # mmdebstrap copies those of the host.
    ': >"$1/etc/hostname" && : >"$1/etc/resolv.conf"',
)
_NO_MIRRORS = 'rm -rf "$1/etc/apt/sources.list" "$1"/etc/apt/sources.list.d/*'
_ERROR_LINES = 5
_ERROR_LINES_S = 2.0
_CHUNK = 1024**2
_END_S = 10.0


async def build_lean_image(
    engine: ContainerEngine, name: str, notify: Callable[[str], None], *, mirrors: bool = True
) -> str:
    """Build the lean image from the package mirrors of the host, and return its id.

    Takes half a minute. Root is not needed if this user has subordinate ids (/etc/subuid).

    Args:
        engine: which gets the image.
        name: of the image.
        notify: receives progress lines.
        mirrors: leave the package mirrors in the image, for installing more into it.

    Raises:
        ToolMissing: mmdebstrap is not installed.
        SandboxError: it failed, or the engine refused the image.
    """
    tail: deque[str] = deque(maxlen=_ERROR_LINES)
    program = shutil.which("mmdebstrap")
    if program is None:
        raise ToolMissing("a lean image is made with mmdebstrap: sudo apt-get install mmdebstrap")
    argv = [
        program,
        "--variant=minbase",
        "--format=tar",
        f"--include={','.join(_PACKAGES)}",
        # A build that loses power is repeated anyway.
        "--dpkgopt=force-unsafe-io",
        *(f"--dpkgopt=path-exclude={pattern}" for pattern in _LEFT_OUT),
        '--aptopt=Acquire::Languages "none"',
        *(f"--customize-hook={hook}" for hook in (_HOOKS if mirrors else (*_HOOKS, _NO_MIRRORS))),
        _SUITE,
        "-",
    ]
    env = {**os.environ, "SOURCE_DATE_EPOCH": _DATE, "LC_ALL": "C.UTF-8"}
    image_env = {"PATH": SYSTEM_PATH, "LANG": "C.UTF-8"}
    process = await anyio.open_process(argv, stdin=subprocess.DEVNULL, env=env, start_new_session=True)
    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_read_errors, process, tail, notify)
            problem: SandboxError | None = None
            try:
                ident = await import_image(engine, _archive(process), name, LEAN_KIND, image_env)
            except SandboxError as error:
                problem = error
                with anyio.move_on_after(_ERROR_LINES_S):
                    await process.wait()
            else:
                await process.wait()
            failed = process.returncode
            tasks.cancel_scope.cancel()
    finally:
        with anyio.CancelScope(shield=True):
            with anyio.move_on_after(_END_S):
                if process.returncode is None:
                    process.terminate()  # not KILL at once: it has mounts to undo
                await process.wait()
            await kill_process_group(process, _END_S)
    if failed:
        raise SandboxError(f"mmdebstrap ended with {failed}: {' / '.join(tail)}")
    if problem is not None:
        raise problem
    return ident


async def _archive(process: Process) -> AsyncIterator[bytes]:
    stream = process.stdout
    with contextlib.suppress(anyio.EndOfStream):
        while stream is not None:
            yield await stream.receive(_CHUNK)


async def _read_errors(process: Process, tail: deque[str], notify: Callable[[str], None]) -> None:
    rest = b""
    with contextlib.suppress(anyio.EndOfStream):
        while process.stderr is not None:
            *lines, rest = (rest + await process.stderr.receive()).splitlines(keepends=True) or [b""]
            if rest.endswith((b"\n", b"\r")):
                lines, rest = [*lines, rest], b""
            for line in filter(None, (raw.decode(errors="replace").strip() for raw in lines)):
                tail.append(line)
                notify(line)
