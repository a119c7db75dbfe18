"""The egress policies of a sandbox: none, gateway, allow-list, whole network.

Only a sandbox with the last policy has a network. Under the others each forwarded port is a Unix socket of
the host, in a folder of its own that is mounted, and the supervisor forwards a port of 127.0.0.1 to it. A run
uses the first two today; the allow-list and the network are for building environments.
"""

from __future__ import annotations

import os
import tempfile
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
from anyio import to_thread

from codetaste.core.concurrency import background_tasks
from codetaste.core.files import make_locked_folder, remove_abandoned, remove_tree
from codetaste.errors import SandboxError
from codetaste.sandbox.base import NO_EGRESS, Egress, PortForward
from codetaste.sandbox.proxy.rules import parse_allow_list
from codetaste.sandbox.proxy.server import Proxy
from codetaste.sandbox.proxy.upstream import HostProxies

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable, Mapping

    from codetaste.sandbox.proxy.server import HostRequest

GATEWAY_PORT, PROXY_PORT = 8787, 8788
_PREFIX = "codetaste-egress-"
_LOOPBACK = "localhost,127.0.0.1,::1"


def no_egress() -> Egress:
    """Return the policy under which nothing can be reached."""
    return NO_EGRESS


def gateway_egress(socket: Path) -> Egress:
    """Return the policy under which only http://127.0.0.1:8787, the server at ``socket``, can be reached."""
    return Egress((PortForward(GATEWAY_PORT, socket),))


def network_egress() -> Egress:
    """Return the policy under which everything can be reached that the host can reach."""
    return Egress(network=True)


def join_egress(*policies: Egress) -> Egress:
    """Return the policy that allows what any of ``policies`` allows."""
    return Egress(
        forwards=tuple(forward for policy in policies for forward in policy.forwards),
        env={name: value for policy in policies for name, value in policy.env.items()},
        network=any(policy.network for policy in policies),
    )


@asynccontextmanager
async def open_allowlist_egress(
    hosts: Iterable[str],
    *,
    note: Callable[[HostRequest], None] = lambda _request: None,
    environ: Mapping[str, str] | None = None,
    folder: Path | None = None,
) -> AsyncIterator[Egress]:
    """Give the policy under which ``hosts`` can be reached, by a filtering proxy that runs until the end.

    Args:
        hosts: entries as ``proxy/rules.py`` describes them.
        note: receives each requested host and port once for each result.
        environ: names the proxies that the host itself needs, by default its environment.
        folder: of the socket, by default the one for temporary files.

    Raises:
        ConfigError: an entry is invalid; all invalid ones are named.
        SandboxError: the socket cannot be created.
    """
    upstream = HostProxies.from_environment(os.environ if environ is None else environ)
    proxy = Proxy(parse_allow_list(hosts), upstream, note)
    # The outer folder is private; the inner one is mounted, and the user of the sandbox must be able to
    # enter it.
    async with _private_folder(folder or Path(tempfile.gettempdir())) as outer:
        socket = outer / "socket" / "proxy.sock"
        try:
            socket.parent.mkdir()
            socket.parent.chmod(0o711)
            listener = await anyio.create_unix_listener(socket, mode=0o666)
        except OSError as fault:
            raise SandboxError(
                f"cannot create the proxy socket {socket}: {fault}; TMPDIR sets its folder"
            ) from fault
        async with listener, background_tasks() as tasks:
            tasks.start_soon(proxy.serve, listener)
            yield Egress((PortForward(PROXY_PORT, socket),), _proxy_variables())


@asynccontextmanager
async def _private_folder(within: Path) -> AsyncIterator[Path]:
    """Give a new folder in ``within``, from which those of killed processes are removed.

    Raises:
        SandboxError: it cannot be created.
    """
    try:
        await to_thread.run_sync(remove_abandoned, within, _PREFIX)
        folder, lock = await to_thread.run_sync(make_locked_folder, within, _PREFIX)
    except OSError as fault:
        raise SandboxError(f"cannot create a folder for the proxy: {fault}; TMPDIR sets its place") from fault
    try:
        yield folder
    finally:
        with anyio.CancelScope(shield=True), suppress(OSError):
            await to_thread.run_sync(remove_tree, folder)
        os.close(lock)


def _proxy_variables() -> Mapping[str, str]:
    """Return what makes programs use the proxy: variables for most, options for builds in Java."""
    url = f"http://127.0.0.1:{PROXY_PORT}"
    small = {"http_proxy": url, "https_proxy": url, "no_proxy": _LOOPBACK}
    java = " ".join(
        f"-D{scheme}.proxyHost=127.0.0.1 -D{scheme}.proxyPort={PROXY_PORT}" for scheme in ("http", "https")
    )
    return {
        **small,
        **{name.upper(): value for name, value in small.items()},
        "NODE_USE_ENV_PROXY": "1",
        "MAVEN_OPTS": java,
        "GRADLE_OPTS": java,
    }
