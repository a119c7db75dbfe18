"""A box as a container engine is asked for it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from codetaste.sandbox.box import GID, HOME, OUTPUT, TASK, TESTBED, UID, BoxSpec, Mount
from codetaste.sandbox.docker_socket import DOCKER, PODMAN

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

PLACES = (TESTBED, TASK, OUTPUT, HOME)
_SCRATCH_BYTES = 2 * 1024**3
_OPEN_FILES = 16 * 1024
"""Of one process; Podman would ask for more than many machines give it."""
_PODMAN_PROCESSES = 32 * 1024
"""Of a user: it would ask for more than it gives itself. What bounds a box is PidsLimit."""
_NANO = 10**9
_HELD = {"MemoryLimit": "memory", "PidsLimit": "processes", "CpuCfsQuota": "cores"}


@dataclass(frozen=True, slots=True)
class Order:
    """What a container is made of.

    Attributes:
        spec: the box that is wanted.
        image: of the container.
        command: what runs in it, as long as it lives.
        mounts: folders and files of this machine beside the box's own, read-only.
        env: variables of the container, over its image's.
        labels: see ``docker_labels``.
        seccomp: the filter of system calls as this engine takes it.
        network: its name, "" for none.
    """

    spec: BoxSpec
    image: str
    command: Sequence[str]
    mounts: Sequence[Mount]
    env: Mapping[str, str]
    labels: Mapping[str, str]
    seccomp: str
    network: str = ""


def container_config(order: Order, kind: str) -> dict[str, Any]:
    """Return the body of the call that makes a container."""
    spec = order.spec
    return {
        "Image": order.image,
        **_command(order.command, kind),
        "User": f"{UID}:{GID}",
        "WorkingDir": "/",
        "Env": [f"{name}={value}" for name, value in {"HOME": HOME, **order.env}.items()],
        "Labels": dict(order.labels),
        "Hostname": "sandbox",
        # An image's own would have the engine start programs in it all the time.
        "Healthcheck": {"Test": ["NONE"]},
        # What an engine that was killed sends to its containers when it comes back.
        "StopSignal": "SIGKILL",
        "HostConfig": {
            "NetworkMode": order.network or "none",
            "Memory": spec.memory_bytes,
            "MemorySwap": spec.memory_bytes,
            # Docker refuses more cores than there are.
            "NanoCpus": int(min(spec.cpus, os.cpu_count() or spec.cpus) * _NANO),
            "PidsLimit": spec.processes,
            # When the machine's memory runs out a box goes first, and not the run that started it.
            "OomScoreAdj": 500,
            "Ulimits": _ulimits(spec, kind),
            "CapDrop": ["ALL"],
            "SecurityOpt": ["no-new-privileges", f"seccomp={order.seccomp}"],
            "LogConfig": _log(kind),
            "Mounts": _mounts(order),
            **_read_only(spec),
        },
    }


def _command(command: Sequence[str], kind: str) -> dict[str, list[str]]:
    """Set what runs; an entry point that is left out would be the image's own."""
    if kind == DOCKER:
        # "" is none, and an image that is made of the container has none.
        return {"Entrypoint": [""], "Cmd": list(command)}
    return {"Entrypoint": list(command[:1]), "Cmd": list(command[1:])}


def unheld(info: Mapping[str, Any]) -> tuple[str, ...]:
    """Return which limits an engine does not hold though it takes them, from what it says of itself."""
    if info.get("Rootless") and str(info.get("CgroupVersion")) == "1":
        # Podman says that it does; it writes into its log that it does not.
        return tuple(_HELD.values())
    return tuple(what for key, what in _HELD.items() if info.get(key) is False)


def _ulimits(spec: BoxSpec, kind: str) -> list[dict[str, Any]]:
    limits = {
        "core": 0,
        "nofile": _OPEN_FILES,
        # No single file is larger than all of them may be: holds at once, and where nothing else does.
        "fsize": spec.disk_bytes,
    }
    if kind == PODMAN:
        limits["nproc"] = _PODMAN_PROCESSES
    return [{"Name": name, "Soft": value, "Hard": value} for name, value in limits.items()]


def _mounts(order: Order) -> list[dict[str, Any]]:
    folders = [
        {"Type": "bind", "Source": str(mount.source), "Target": mount.target, "ReadOnly": True}
        for mount in (*order.mounts, *order.spec.mounts)
    ]
    if not order.spec.read_only_root:
        return folders
    options = {"Labels": dict(order.labels)}
    # Without a name, so that they go with the container.
    return [
        *folders,
        *({"Type": "volume", "Target": place, "VolumeOptions": options} for place in PLACES),
    ]


def _read_only(spec: BoxSpec) -> dict[str, Any]:
    if not spec.read_only_root:
        return {}
    size = min(_SCRATCH_BYTES, spec.memory_bytes // 2)
    return {"ReadonlyRootfs": True, "Tmpfs": {"/tmp": f"rw,exec,nosuid,nodev,mode=1777,size={size}"}}  # noqa: S108


def _log(kind: str) -> dict[str, Any]:
    """Keep the little that the warden says, for when it does not come up."""
    if kind == DOCKER:
        return {"Type": "json-file", "Config": {"max-size": "256k", "max-file": "1"}}
    return {"Type": "k8s-file"}
