"""The sandbox of install scripts: a script can write its tree and /tmp, and sees none of the user's files.

It is a bubblewrap sandbox like those of agents, but for scripts that the user chose: with network, the host's
programs and certificates and the user's registry settings, but without credentials. Without network, it also
runs the ``--version`` check of an installed agent.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING

import anyio

from codetaste.core.processes import kill_process_group
from codetaste.errors import SandboxError
from codetaste.sandbox.ca_bundle import find_bundle, trust_variables
from codetaste.sandbox.containment.host_view import SYSTEM_PATH, host_view
from codetaste.sandbox.output import BoundedOutput

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from anyio.abc import Process

NODE_MOUNT = "/opt/node"
HOME_PATH = "/tmp/home"  # noqa: S108 - inside
_CA_PATH = "/etc/codetaste/ca.pem"
_TMP = "/tmp"  # noqa: S108 - inside
_MAX_OUTPUT_BYTES = 64 * 1024
_NETWORK_FILES = ("/etc/resolv.conf", "/etc/hosts", "/etc/nsswitch.conf", "/etc/host.conf", "/etc/gai.conf")
_CERTIFICATES = ("/etc/ssl", "/etc/pki", "/etc/ca-certificates", "/usr/local/share/ca-certificates")
_KILL_TIMEOUT_S = 10.0


@dataclass(frozen=True, slots=True)
class ScriptResult:
    """A script's exit code (None if it took too long), and both output streams together, cut to a limit."""

    exit_code: int | None
    output: str


@dataclass(frozen=True, slots=True)
class InstallSandbox:
    """The sandbox of one script.

    Attributes:
        bubblewrap: the program that contains the script; None if none works: then it runs uncontained.
        tree: the folder that the script may write.
        mount_path: the path of that folder in the sandbox.
        scratch: the script's /tmp, with its HOME and .npmrc.
        node: a folder with Node and npm, read-only.
    """

    bubblewrap: Path | None
    tree: Path
    mount_path: str
    scratch: Path
    node: Path

    @property
    def passwd(self) -> Path:
        """The file that becomes /etc/passwd, where no script can replace it by a link to another file."""
        return self.scratch.with_name("passwd")

    @property
    def tree_path(self) -> str:
        """The path at which the script sees its tree."""
        return self.mount_path if self.bubblewrap else str(self.tree)

    async def run(
        self, command: Sequence[str], env: Mapping[str, str], *, network: bool, wall_s: float
    ) -> ScriptResult:
        """Run ``command`` for at most ``wall_s`` seconds, and kill all processes that it leaves.

        Raises:
            SandboxError: it could not be started.
        """
        argv = [*(self._bubblewrap_args(network=network) if self.bubblewrap else ()), *command]
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
        output, code = BoundedOutput(_MAX_OUTPUT_BYTES), None
        try:
            with anyio.move_on_after(wall_s):
                await _read(process, output)
                code = await process.wait()
        finally:
            await kill_process_group(process, _KILL_TIMEOUT_S)
        return ScriptResult(code, output.content().decode(errors="replace"))

    def _environment(self, env: Mapping[str, str], *, network: bool) -> dict[str, str]:
        contained = self.bubblewrap is not None
        scratch, node = (_TMP, NODE_MOUNT) if contained else (str(self.scratch), str(self.node))
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
            own |= trust_variables(_CA_PATH if contained else str(bundle))
        return {**own, **env}

    def _bubblewrap_args(self, *, network: bool) -> Iterator[str]:
        view = host_view()
        yield str(self.bubblewrap)
        yield from ("--unshare-all", "--die-with-parent", "--new-session", "--hostname", "install")
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
                yield from ("--ro-bind", str(bundle), _CA_PATH)
        yield from ("--ro-bind", str(self.passwd), "/etc/passwd")
        yield from ("--ro-bind", str(self.node), NODE_MOUNT, "--bind", str(self.scratch), _TMP)
        yield from ("--bind" if network else "--ro-bind", str(self.tree), self.mount_path)
        yield from ("--remount-ro", "/", "--chdir", self.mount_path, "--")


async def _read(process: Process, output: BoundedOutput) -> None:
    with contextlib.suppress(anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError):
        while process.stdout is not None:
            output.add(await process.stdout.receive())
