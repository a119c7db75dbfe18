"""The place where an install script runs: it can write its tree and /tmp, and sees nothing else that is ours.

A bubblewrap box like those where agents work, but for scripts that a person chose: with the network, this
machine's programs and certificates and the user's registry, and without files and credentials. The same
place, without a network, is where an installed program says its version.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import anyio

from codetaste.errors import SandboxError
from codetaste.sandbox.ca_bundle import find_bundle, variables
from codetaste.sandbox.output import Kept
from codetaste.sandbox.view import SYSTEM_PATH, system_view

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from anyio.abc import Process

NODE = "/opt/node"
HOME = "/tmp/home"  # noqa: S108 - inside
_CA = "/etc/codetaste/ca.pem"
_TMP = "/tmp"  # noqa: S108 - inside
_KEPT_BYTES = 64 * 1024
_NETWORK_FILES = ("/etc/resolv.conf", "/etc/hosts", "/etc/nsswitch.conf", "/etc/host.conf", "/etc/gai.conf")
_CERTIFICATES = ("/etc/ssl", "/etc/pki", "/etc/ca-certificates", "/usr/local/share/ca-certificates")
_ENDS_WITHIN_S = 10.0


@dataclass(frozen=True, slots=True)
class Ended:
    """How a script ended; ``exit_code`` is None when it took too long. Both streams together, bounded."""

    exit_code: int | None
    output: str


@dataclass(frozen=True, slots=True)
class Workshop:
    """Where a script runs.

    Attributes:
        bubblewrap: the program that contains it; None where there is none that works: then nothing does.
        tree: the folder that it may write.
        inside: where it sees that folder.
        scratch: a folder of its own; it is /tmp, and holds its HOME and .npmrc.
        node: a folder with Node and npm, read-only.
        env: variables beside those that every script gets.
    """

    bubblewrap: Path | None
    tree: Path
    inside: str
    scratch: Path
    node: Path
    env: Mapping[str, str] = field(default_factory=dict)

    @property
    def seen_at(self) -> str:
        """Where the script sees its tree."""
        return self.inside if self.bubblewrap else str(self.tree)

    async def run(
        self, command: Sequence[str], env: Mapping[str, str], *, network: bool, wall_s: float
    ) -> Ended:
        """Run ``command`` to its end, or for ``wall_s`` seconds; nothing of it is left then.

        Raises:
            SandboxError: it could not be started.
        """
        argv = [*(self._contained(network=network) if self.bubblewrap else ()), *command]
        try:
            process = await anyio.open_process(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                env=self._environment(env, network=network),
                cwd=self.tree,
                start_new_session=True,
            )
        except OSError as error:
            raise SandboxError(f"cannot start {argv[0]}: {error.strerror}") from error
        kept, code = Kept(_KEPT_BYTES), None
        try:
            with anyio.move_on_after(wall_s):
                await _read(process, kept)
                code = await process.wait()
        finally:
            await _end(process)
        return Ended(code, kept.content().decode(errors="replace"))

    def _environment(self, env: Mapping[str, str], *, network: bool) -> dict[str, str]:
        contained = self.bubblewrap is not None
        scratch, node = (_TMP, NODE) if contained else (str(self.scratch), str(self.node))
        own = {
            "PATH": f"{scratch}/bin:{node}/bin:{SYSTEM_PATH}",
            "HOME": f"{scratch}/home",
            "TMPDIR": scratch,
            "LANG": "C.UTF-8",
            "CI": "1",
            "CODETASTE_NODE": node,
            "NPM_CONFIG_USERCONFIG": f"{scratch}/npmrc",
            "NPM_CONFIG_CACHE": f"{scratch}/npm-cache",
        }
        if network and (bundle := find_bundle("auto")):
            own |= variables(_CA if contained else str(bundle))
        return {**own, **self.env, **env}

    def _contained(self, *, network: bool) -> Iterator[str]:
        view = system_view()
        yield str(self.bubblewrap)
        yield from ("--unshare-all", "--die-with-parent", "--new-session", "--hostname", "workshop")
        yield from ("--cap-drop", "ALL", "--proc", "/proc", "--dev", "/dev")
        for path in view.folders:
            yield from ("--ro-bind", path, path)
        for path, target in view.links:
            yield from ("--symlink", target, path)
        for path in (*view.settings, *_CERTIFICATES):
            yield from ("--ro-bind-try", os.path.realpath(path), path)
        if network:
            yield "--share-net"
            for path in _NETWORK_FILES:
                yield from ("--ro-bind-try", os.path.realpath(path), path)
            if bundle := find_bundle("auto"):
                yield from ("--ro-bind", str(bundle), _CA)
        yield from ("--ro-bind", str(self.scratch / "passwd"), "/etc/passwd")
        yield from ("--ro-bind", str(self.node), NODE, "--bind", str(self.scratch), _TMP)
        yield from ("--bind" if network else "--ro-bind", str(self.tree), self.inside)
        yield from ("--remount-ro", "/", "--chdir", self.inside, "--")


async def _read(process: Process, kept: Kept) -> None:
    with contextlib.suppress(anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError):
        while process.stdout is not None:
            kept.add(await process.stdout.receive())


async def _end(process: Process) -> None:
    """Kill what is left: bubblewrap takes all inside with it; without one, the session that was started."""
    with anyio.move_on_after(_ENDS_WITHIN_S, shield=True):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.aclose()
