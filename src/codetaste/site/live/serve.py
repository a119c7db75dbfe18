"""Serve runs until the process is stopped."""

from __future__ import annotations

import os
import socket
from contextlib import asynccontextmanager, closing
from typing import TYPE_CHECKING

from codetaste.core.text import printable
from codetaste.errors import ConfigError
from codetaste.gateway.server import open_server
from codetaste.site.html.address import file_name
from codetaste.site.live.access import TOKEN_PARAMETER, Access
from codetaste.site.live.app import ViewApp
from codetaste.site.live.current_site import CurrentSite
from codetaste.site.live.followed_run import FollowedRun
from codetaste.site.live.pages import INDEX, run_address

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from pathlib import Path

    from codetaste.benchmark.benchmark import Benchmark

_BACKLOG = 128
_ANY = {"", "0.0.0.0", "::"}  # noqa: S104 - shown to the user as this machine's name


@asynccontextmanager
async def serve_runs(
    roots: Sequence[Path], benchmark: Benchmark | None, access: Access, port: int
) -> AsyncIterator[str]:
    """Serve the pages of runs inside the block; yield the address to open, with the token if there is one.

    Args:
        roots: folders of runs; those that do not exist are waited for.
        benchmark: the instances of the trials; default the one that the runs name.
        access: who may read them.
        port: where to listen, 0 for any free port.

    Raises:
        ConfigError: the host or the port cannot be used.
    """
    runs = followed_runs(roots)
    title = ", ".join(run.title for run in runs)
    current = CurrentSite([run.path for run in runs], benchmark, title)
    with closing(_listen(access.host, port)) as listener:
        async with open_server(ViewApp(access, current, runs), [listener]):
            page = run_address(runs[0]) if len(runs) == 1 else INDEX
            token = f"?{TOKEN_PARAMETER}={access.token}" if access.token else ""
            yield f"http://{_name(access.host)}:{listener.getsockname()[1]}/{page}{token}"


def followed_runs(roots: Sequence[Path]) -> list[FollowedRun]:
    """Return the runs to follow; runs of the same name differ by a number in their addresses."""
    runs: list[FollowedRun] = []
    names: set[str] = set()
    for root in roots:
        title = printable(root.resolve().name or str(root))
        name, number = file_name(title), 1
        while name in names:
            number += 1
            name = f"{file_name(title)}-{number}"
        names.add(name)
        runs.append(FollowedRun(root, name, title))
    return runs


def _listen(host: str, port: int) -> socket.socket:
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listener = socket.socket(family, kind, protocol)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(address)
            listener.listen(_BACKLOG)
        except BaseException:
            listener.close()
            raise
    except (OSError, OverflowError, UnicodeError) as error:
        reason = os.strerror(error.errno) if isinstance(error, OSError) and error.errno else str(error)
        raise ConfigError(f"cannot listen at {host} port {port}: {reason}; choose another --port") from None
    listener.setblocking(False)  # noqa: FBT003 - its only argument
    return listener


def _name(host: str) -> str:
    """Return the host for the address that people open."""
    if host in _ANY:
        return socket.gethostname()
    return f"[{host}]" if ":" in host else host
