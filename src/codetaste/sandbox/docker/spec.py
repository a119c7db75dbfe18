"""How a container engine creates a sandbox: the request body, and the labels by which orphans are found."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from codetaste.core.processes import process_identity
from codetaste.sandbox.base import GID, HOME, OUTPUT, TASK, TESTBED, UID, Mount, Privileges, SandboxSpec
from codetaste.sandbox.docker.engine import DOCKER, PODMAN

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

RUN_LABEL, JOB_LABEL, DEADLINE_LABEL, OWNER_LABEL = (
    "codetaste.run",
    "codetaste.job",
    "codetaste.deadline",
    "codetaste.owner",
)
IMAGE_LABEL = "codetaste.image"
"""On images that codetaste made; its value is their kind."""
LEAN_KIND = "lean"
"""The kind of image that has all that a sandbox needs."""
READ_GRACE_S = 900.0
"""Seconds after the end of its lifetime during which archives can still be read from a sandbox."""
WRITABLE_FOLDERS = (TESTBED, TASK, OUTPUT, HOME)
_SCRATCH_BYTES = 2 * 1024**3
_OPEN_FILES = 16 * 1024
"""Per process; the default of Podman is more than many hosts allow."""
_PODMAN_PROCESSES = 32 * 1024
"""Per user; the default of Podman is more than it allows itself. PidsLimit bounds a sandbox."""
_ROOT_CAPABILITIES = (
    *("CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "SETFCAP"),  # files of any user
    *("SETUID", "SETGID", "SETPCAP", "KILL"),  # processes of any user
    *("AUDIT_WRITE", "NET_BIND_SERVICE", "SYS_CHROOT"),
)
"""Of root in a sandbox: Docker's own default without NET_RAW and MKNOD; that of Podman differs by release."""
_NANO = 10**9
_DOCKER_LOG = {"Type": "json-file", "Config": {"max-size": "256k", "max-file": "1"}}
_LIMIT_NAMES = {"MemoryLimit": "memory", "PidsLimit": "processes", "CpuCfsQuota": "cores"}


@dataclass(frozen=True, slots=True)
class ContainerSpec:
    """Everything that a container is created from.

    Attributes:
        spec: of the sandbox.
        image: of the container.
        command: its first process.
        mounts: folders and files of the host in addition to those of the spec, read-only.
        labels: see ``make_labels``.
        seccomp: the system call filter in the form that this engine takes.
        network: its name, "" for none.
        health_check: whether the image has one.
    """

    spec: SandboxSpec
    image: str
    command: Sequence[str]
    mounts: Sequence[Mount]
    labels: Mapping[str, str]
    seccomp: str
    network: str = ""
    health_check: bool = True


def container_config(container: ContainerSpec, kind: str) -> dict[str, Any]:
    """Return the request body that creates a container."""
    spec, command = container.spec, list(container.command)
    privileges = spec.privileges
    ulimits = {
        "core": 0,
        "nofile": _OPEN_FILES,
        # No file can exceed the disk limit: enforced at once, and where no other limit is.
        "fsize": spec.disk_bytes,
        **({"nproc": _PODMAN_PROCESSES} if kind == PODMAN else {}),
    }
    host: dict[str, Any] = {
        "NetworkMode": container.network or "none",
        "Memory": spec.memory_bytes,
        "MemorySwap": spec.memory_bytes,
        "MemoryReservation": spec.memory_reserved_bytes,
        # Docker refuses more cores than there are.
        "NanoCpus": int(min(spec.cpus, os.cpu_count() or spec.cpus) * _NANO),
        "PidsLimit": spec.processes,
        # When the host runs out of memory, sandboxes are killed before the run that started them.
        "OomScoreAdj": 500,
        "Ulimits": [{"Name": name, "Soft": value, "Hard": value} for name, value in ulimits.items()],
        "CapDrop": ["ALL"],
        "CapAdd": [] if privileges is Privileges.NONE else list(_ROOT_CAPABILITIES),
        "SecurityOpt": [
            *(() if privileges is Privileges.SUDO else ("no-new-privileges",)),
            f"seccomp={container.seccomp}",
        ],
        # The little output of the supervisor is kept for when it does not start.
        "LogConfig": _DOCKER_LOG if kind == DOCKER else {"Type": "k8s-file"},
        "Mounts": _mounts(container),
    }
    if spec.read_only_root:
        size = min(_SCRATCH_BYTES, spec.memory_bytes // 2)
        host["ReadonlyRootfs"] = True
        host["Tmpfs"] = {"/tmp": f"rw,exec,nosuid,nodev,mode=1777,size={size}"}  # noqa: S108
    return {
        "Image": container.image,
        # Without an entry point that of the image would run. For Docker "" is none, and an image committed
        # from the container has none.
        "Entrypoint": [""] if kind == DOCKER else command[:1],
        "Cmd": command if kind == DOCKER else command[1:],
        "User": f"{UID}:{GID}" if privileges is Privileges.NONE else "0:0",
        "WorkingDir": "/",
        # Variables of the sandbox are the supervisor's, because these would be in committed images.
        "Env": [],
        "Labels": dict(container.labels),
        "Hostname": "sandbox",
        # It would start programs in the sandbox all the time. Only where there is one: committed images keep
        # this setting, and some releases of Docker Compose do not wait for containers that have it.
        **({"Healthcheck": {"Test": ["NONE"]}} if container.health_check else {}),
        # The signal that a restarted engine sends to the containers it finds.
        "StopSignal": "SIGKILL",
        "HostConfig": host,
    }


def unsupported_limits(info: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the limits that an engine accepts but does not enforce, from its own info."""
    if info.get("Rootless") and str(info.get("CgroupVersion")) == "1":
        # Podman claims to enforce them; only its log says that it does not.
        return tuple(_LIMIT_NAMES.values())
    return tuple(what for key, what in _LIMIT_NAMES.items() if info.get(key) is False)


def _mounts(container: ContainerSpec) -> list[dict[str, Any]]:
    folders = [
        {"Type": "bind", "Source": str(mount.source), "Target": mount.target, "ReadOnly": True}
        for mount in (*container.mounts, *container.spec.mounts)
    ]
    if not container.spec.read_only_root:
        return folders
    options = {"Labels": dict(container.labels)}
    # Without a name, so that they are removed with the container.
    return [
        *folders,
        *({"Type": "volume", "Target": folder, "VolumeOptions": options} for folder in WRITABLE_FOLDERS),
    ]


def make_labels(run: str, job: str, lifetime_s: float) -> dict[str, str]:
    """Return the labels of a container, network or volume; the deadline in seconds since 1970."""
    deadline = int(time.time() + lifetime_s + READ_GRACE_S)
    return {RUN_LABEL: run, JOB_LABEL: job, DEADLINE_LABEL: str(deadline), OWNER_LABEL: process_identity()}


def empty_labels() -> dict[str, str]:
    """Return empty labels, so that a container started from a committed image is not taken for a sandbox."""
    return dict.fromkeys((RUN_LABEL, JOB_LABEL, DEADLINE_LABEL, OWNER_LABEL), "")


def is_expired(found: Mapping[str, str]) -> bool:
    """Whether the deadline on the labels has passed; an unreadable deadline never passes."""
    text = found.get(DEADLINE_LABEL, "")
    return text.isdigit() and int(text) < time.time()
