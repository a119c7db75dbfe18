"""``[sandbox]``: where untrusted commands run."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from codetaste.core.section import FilePath, Section, check_path
from codetaste.core.units import Bytes

_LEAST_BYTES = 16 * 1024**2
_IMAGE = re.compile(r"([A-Za-z0-9][A-Za-z0-9._:/-]*(@sha256:[0-9a-f]{64})?)?")
"""Image names: they may have the host and port of a registry, a tag and a digest."""
MAX_SHELL_MEMORY_BYTES = 4 * 1024**3
"""Memory of one command in the rule agent's shell, at most."""


def _check_bundle(value: Any) -> Any:  # noqa: ANN401 - from a config
    return value if value is False else check_path(value)


def is_image_name(name: str) -> bool:
    """Whether an engine can have an image with this name or id; "" stands for a default."""
    return _IMAGE.fullmatch(name) is not None


def _check_image(image: str) -> str:
    if not is_image_name(image):
        raise ValueError("cannot be the name of an image; write it as in codetaste/mine:1")
    return image


ImageName = Annotated[str, AfterValidator(_check_image)]


class SandboxConfig(Section):
    """The rule agent's shell is always local; containers serve coding agents."""

    engine: Literal["auto", "docker", "podman", "local", "bubblewrap", "landlock"] = "auto"
    """Coding agents: "auto" takes a container engine that answers and has the image, bubblewrap elsewhere.
    The rule agent's shell: what works on this host, or the named local engine."""
    socket: FilePath | None = None
    """Socket of the container engine; by default DOCKER_HOST, CONTAINER_HOST and the usual paths."""
    image: ImageName = ""
    """The image of sandboxes whose instance has none; "" is the image of `codetaste image build --lean`."""
    max: int = Field(default=8, ge=1, le=10_000)
    """Sandboxes at once."""
    cpus: float = Field(default=2.0, gt=0, le=1024)
    """Cores of one sandbox."""
    memory: Bytes = Field(default=8 * 1024**3, ge=_LEAST_BYTES)
    """Memory of one sandbox; of one command in the rule agent's shell, 4 GiB at most."""
    processes: int = Field(default=1024, ge=16, le=1_000_000)
    """Processes and threads of one sandbox at once."""
    disk: Bytes = Field(default=20 * 1024**3, ge=_LEAST_BYTES)
    """Bytes written in one sandbox."""
    read_only_root: bool = False
    """Only the repository, HOME, /output, /task_description and /tmp can be written to in a container."""
    ca_bundle: Annotated[Literal["auto", False] | Path, BeforeValidator(_check_bundle)] = "auto"
    """A PEM file of certificate authorities, for containers that reach more than the gateway; "auto" is that
    of the host, false none."""

    @property
    def shell_engine(self) -> str:
        """What contains the rule agent's shell: "auto", "bubblewrap" or "landlock"."""
        return self.engine if self.engine in {"bubblewrap", "landlock"} else "auto"

    @property
    def shell_memory_bytes(self) -> int:
        """Memory of one command in the rule agent's shell."""
        return min(self.memory, MAX_SHELL_MEMORY_BYTES)
