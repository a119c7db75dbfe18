"""The sockets of container engines on this host."""

from __future__ import annotations

import grp
import os
import stat
from dataclasses import dataclass
from pathlib import Path

DOCKER, PODMAN, AUTO = "docker", "podman", "auto"
NAMED = "as named"
_DOCKER_HOST, _CONTAINER_HOST = "DOCKER_HOST", "CONTAINER_HOST"


@dataclass(frozen=True, slots=True)
class EngineSocket:
    """A socket where an engine may listen; ``name`` is how it was found."""

    name: str
    socket: Path


def candidate_sockets(engine: str = AUTO, socket: Path | None = None) -> tuple[EngineSocket, ...]:
    """Return the sockets to try for ``engine`` ("docker", "podman", "auto"), best first, each once.

    A named ``socket`` is the only one. Otherwise DOCKER_HOST and CONTAINER_HOST come first, then the usual
    paths, the (rootless) engines of this user after the Docker of the system. Engines of other machines
    (tcp://, ssh://) are left out: folders of this host are mounted.
    """
    if socket is not None:
        return (EngineSocket(NAMED, socket),)
    own = Path(os.environ.get("XDG_RUNTIME_DIR") or f"/run/user/{os.getuid()}")
    found = {
        DOCKER: [
            *_from_variable(_DOCKER_HOST),
            EngineSocket("docker", Path("/var/run/docker.sock")),
            EngineSocket("docker, rootless", own / "docker.sock"),
        ],
        PODMAN: [
            *_from_variable(_CONTAINER_HOST),
            *(_from_variable(_DOCKER_HOST) if engine == PODMAN else ()),
            EngineSocket("podman, rootless", own / "podman" / "podman.sock"),
            EngineSocket("podman", Path("/run/podman/podman.sock")),
        ],
    }
    wanted = [*found[DOCKER], *found[PODMAN]] if engine == AUTO else found[engine]
    return tuple({place.socket: place for place in reversed(wanted)}.values())[::-1]


def permission_hint(socket: Path) -> str:
    """Return what to do if this user may not use ``socket``."""
    try:
        status = socket.stat()
        group = grp.getgrgid(status.st_gid).gr_name
    except (OSError, KeyError):
        return "start codetaste as a user with access"
    if status.st_gid == 0 or not status.st_mode & stat.S_IWGRP:
        return "start codetaste as its owner"
    return f"join the {group} group (sudo usermod -aG {group} $USER) and log in again"


def describe_unusable_variables() -> list[str]:
    """Return a message for each variable that names an unusable engine."""
    return [
        f"{variable} is not a socket of this host (unix:///…)"
        for variable in (_DOCKER_HOST, _CONTAINER_HOST)
        if os.environ.get(variable) and not _from_variable(variable)
    ]


def _from_variable(variable: str) -> list[EngineSocket]:
    value = os.environ.get(variable, "")
    scheme, _, path = value.partition("://")
    return [EngineSocket(variable, Path(path))] if scheme == "unix" and path else []
