"""What can be reached from inside a box: four policies, from nothing to everything.

No box but one with an open network has any network of its own: each way out is a Unix socket of ours, in a
folder of its own that is mounted, and a small forwarder inside makes it a port of 127.0.0.1.
"""

from __future__ import annotations

import os
import tempfile
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import anyio

from codetaste.errors import SandboxError
from codetaste.sandbox.beside import beside
from codetaste.sandbox.box import NO_EGRESS, Egress, Way

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable, Mapping

    from codetaste.sandbox.proxy import Visit

GATEWAY_PORT, PROXY_PORT = 8787, 8788
_LOOPBACK = "localhost,127.0.0.1,::1"


def none() -> Egress:
    """Return the policy under which nothing can be reached."""
    return NO_EGRESS


def gateway(socket: Path) -> Egress:
    """Return the policy under which http://127.0.0.1:8787 is the server at ``socket``, and that is all."""
    return Egress((Way(GATEWAY_PORT, socket),))


def open_network() -> Egress:
    """Return the policy under which everything can be reached that can be reached from here."""
    return Egress(network=True)


def joined(*policies: Egress) -> Egress:
    """Return the policy that lets through what any of ``policies`` does."""
    return Egress(
        ways=tuple(way for policy in policies for way in policy.ways),
        env={name: value for policy in policies for name, value in policy.env.items()},
        network=any(policy.network for policy in policies),
    )


@asynccontextmanager
async def allowlist(
    hosts: Iterable[str],
    *,
    note: Callable[[Visit], None] = lambda _visit: None,
    environ: Mapping[str, str] | None = None,
) -> AsyncIterator[Egress]:
    """Give the policy under which ``hosts`` can be reached, by a filtering proxy that runs until the end.

    Args:
        hosts: entries as ``proxy_rules.py`` describes them.
        note: is told of each host and port that was asked for, once for each answer.
        environ: names the proxies that this machine needs, by default its environment.

    Raises:
        ConfigError: a host that is none; all of them are named.
        SandboxError: there is no place for the socket.
    """
    from codetaste.sandbox.proxy import Proxy  # noqa: PLC0415 - h11 only where it is used
    from codetaste.sandbox.proxy_rules import read_entries  # noqa: PLC0415
    from codetaste.sandbox.proxy_upstream import HostProxies  # noqa: PLC0415

    upstream = HostProxies.of(os.environ if environ is None else environ)
    proxy = Proxy(read_entries(hosts), upstream, note)
    # The outer folder is ours alone; the inner one is mounted, and a stranger's user inside goes through it.
    with tempfile.TemporaryDirectory(prefix="codetaste-egress-", ignore_cleanup_errors=True) as outer:
        socket = Path(outer, "ways", "proxy.sock")
        try:
            socket.parent.mkdir()
            socket.parent.chmod(0o711)
            listener = await anyio.create_unix_listener(socket, mode=0o666)
        except OSError as fault:
            raise SandboxError(
                f"a way out cannot be made at {socket}: {fault}; TMPDIR says where such are made"
            ) from fault
        async with listener, beside() as tasks:
            tasks.start_soon(proxy.serve, listener)
            yield Egress((Way(PROXY_PORT, socket),), _proxy_variables())


def _proxy_variables() -> Mapping[str, str]:
    """Return what makes programs use the proxy: most look for a variable, Java's builds for options."""
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
