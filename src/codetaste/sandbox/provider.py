"""Opens the sandbox provider that ``[sandbox]`` selects: containers of Docker or Podman, or bubblewrap."""

from __future__ import annotations

from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any

from anyio import to_thread

from codetaste.sandbox.base import SandboxSpec
from codetaste.sandbox.local.sandbox import bubblewrap_provider

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from codetaste.sandbox.base import SandboxProvider
    from codetaste.sandbox.config import SandboxConfig

_FOLDER = ".sandboxes"
_CONTAINER_ENGINES = {"auto", "docker", "podman"}


def sandbox_spec(config: SandboxConfig, job: str, **more: Any) -> SandboxSpec:  # noqa: ANN401 - fields of SandboxSpec
    """Return the spec of a sandbox for ``job`` with the limits of the config; ``more`` are other fields."""
    limits = {
        "image": config.image,
        "memory_bytes": config.memory,
        "cpus": config.cpus,
        "processes": config.processes,
        "disk_bytes": config.disk,
        "read_only_root": config.read_only_root,
    }
    return SandboxSpec(job, **{**limits, **more})


@asynccontextmanager
async def open_sandboxes(
    config: SandboxConfig,
    out: Path,
    run: str,
    warn: Callable[[str], None],
) -> AsyncIterator[SandboxProvider]:
    """Open the sandbox provider of a run for the time of the block.

    "auto" takes a container engine that answers and has the image, and bubblewrap elsewhere; ``warn`` gets
    the choice and its reason. Orphans of killed runs are removed from the engine first.

    Args:
        config: the section.
        out: folder of the run, used by this process alone.
        run: name of the run, for labels.
        warn: receives messages to the user.

    Raises:
        SandboxMissing: the engine or its image is missing; the message has the fix.
        SandboxError: nothing on this host can contain an agent.
    """
    folder = out / _FOLDER
    async with AsyncExitStack() as stack:
        containers: SandboxProvider | None = None
        if config.engine in _CONTAINER_ENGINES:
            from codetaste.sandbox.docker.provider import open_run_sandboxes  # noqa: PLC0415 - heavy: aiodocker

            containers = await stack.enter_async_context(open_run_sandboxes(config, folder, run, warn))
        if containers is None:
            containers = await to_thread.run_sync(bubblewrap_provider, folder)
        yield containers
