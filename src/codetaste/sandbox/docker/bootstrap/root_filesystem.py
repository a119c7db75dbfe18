"""Root file systems of Debian and Ubuntu, made by mmdebstrap from package mirrors and imported as images.

They need no container registry, and neither root nor the engine to build.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import anyio

from codetaste.core.processes import kill_process_group
from codetaste.errors import SandboxError, ToolMissing
from codetaste.sandbox.base import GID, HOME, OUTPUT, TASK, TESTBED, UID
from codetaste.sandbox.containment.host_view import SYSTEM_PATH
from codetaste.sandbox.docker.images import import_image

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping

    from anyio.abc import Process

    from codetaste.sandbox.docker.engine import ContainerEngine

_LEFT_OUT = ("/usr/share/man/*", "/usr/share/doc/*", "/usr/share/info/*", "/usr/share/locale/*")
_DATE = "1764547200"
"""No file is younger: two builds from the same packages are the same."""
_FOLDERS = " ".join(f'"$1{folder}"' for folder in (TESTBED, TASK, OUTPUT, HOME))
_ERROR_LINES = 5
_ERROR_LINES_S = 2.0
_CHUNK = 1024**2
_END_S = 10.0


@dataclass(frozen=True, slots=True)
class RootFilesystem:
    """What a root file system is made of. It has the user and the folders of a sandbox.

    Attributes:
        suite: of the distribution: "bookworm", "noble".
        packages: beside the minimal system.
        components: of the archive, "" for the distribution's main one.
        mirrors: addresses of archives, or lines as in ``sources.list``; by default those of mmdebstrap.
        keep_mirrors: leave them in the image, for installing more into it.
        user: name of the user with uid 1000.
        kind: value of the label of images that codetaste made.
        labels: more labels of the image.
        apt_options: of apt, which the image keeps, too.
    """

    suite: str
    packages: tuple[str, ...]
    kind: str
    components: str = ""
    mirrors: tuple[str, ...] = ()
    keep_mirrors: bool = True
    user: str = "agent"
    labels: Mapping[str, str] = field(default_factory=dict)
    apt_options: tuple[str, ...] = ()

    def arguments(self) -> tuple[str, ...]:
        """Return the arguments of mmdebstrap, which writes the archive to its standard output."""
        hooks = [
            f'chroot "$1" useradd --uid {UID} --user-group -M --home-dir {HOME} -s /bin/bash {self.user}',
            f"mkdir {_FOLDERS} && chown {UID}:{GID} {_FOLDERS}",
            # mmdebstrap copies those of the host.
            ': >"$1/etc/hostname" && : >"$1/etc/resolv.conf"',
        ]
        if not self.keep_mirrors:
            hooks.append('rm -rf "$1/etc/apt/sources.list" "$1"/etc/apt/sources.list.d/*')
        return (
            "--variant=minbase",
            "--format=tar",
            f"--include={','.join(self.packages)}",
            *((f"--components={self.components}",) if self.components else ()),
            # A build that loses power is repeated anyway.
            "--dpkgopt=force-unsafe-io",
            *(f"--dpkgopt=path-exclude={pattern}" for pattern in _LEFT_OUT),
            '--aptopt=Acquire::Languages "none"',
            *(f"--aptopt={option}" for option in self.apt_options),
            *(f"--customize-hook={hook}" for hook in hooks),
            self.suite,
            "-",
            *self.mirrors,
        )


async def import_root_filesystem(
    engine: ContainerEngine, root: RootFilesystem, name: str, notify: Callable[[str], None]
) -> str:
    """Make a root file system, import it as the image ``name``, and return its id.

    Takes half a minute or more. Root is not needed if this user has subordinate ids (/etc/subuid).

    Args:
        engine: which gets the image.
        root: what to make.
        name: of the image.
        notify: receives progress lines.

    Raises:
        ToolMissing: mmdebstrap is not installed.
        SandboxError: it failed, or the engine refused the image.
    """
    tail: deque[str] = deque(maxlen=_ERROR_LINES)
    program = shutil.which("mmdebstrap")
    if program is None:
        raise ToolMissing("this image is made with mmdebstrap: sudo apt-get install mmdebstrap")
    env = {**os.environ, "SOURCE_DATE_EPOCH": _DATE, "LC_ALL": "C.UTF-8"}
    image_env = {"PATH": SYSTEM_PATH, "LANG": "C.UTF-8"}
    process = await anyio.open_process(
        [program, *root.arguments()], stdin=subprocess.DEVNULL, env=env, start_new_session=True
    )
    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_read_errors, process, tail, notify)
            problem: SandboxError | None = None
            try:
                archive = _archive(process)
                ident = await import_image(
                    engine, archive, name, root.kind, env=image_env, labels=root.labels
                )
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
