"""Opens the sandbox provider that ``[sandbox]`` selects: containers of Docker or Podman, or bubblewrap."""

from __future__ import annotations

from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio
from anyio import to_thread

from codetaste.errors import SandboxError
from codetaste.sandbox.base import SandboxSpec
from codetaste.sandbox.ca_bundle import find_bundle
from codetaste.sandbox.docker.engine import AUTO, DOCKER, PODMAN, connect_engine, engine_errors
from codetaste.sandbox.docker.images import require_image
from codetaste.sandbox.docker.lean_image import LEAN_IMAGE
from codetaste.sandbox.docker.provider import open_docker_sandboxes
from codetaste.sandbox.docker.reaper import remove_orphans
from codetaste.sandbox.docker.spec import unsupported_limits
from codetaste.sandbox.local.sandbox import bubblewrap_provider

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from codetaste.sandbox.base import SandboxProvider
    from codetaste.sandbox.config import SandboxConfig
    from codetaste.sandbox.docker.engine import ContainerEngine

_FOLDER = ".sandboxes"


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
        engine = await _engine(stack, config, warn)
        if engine is None:
            yield await to_thread.run_sync(bubblewrap_provider, folder)
            return
        # Not shutil.rmtree: it gives up on trees that are nested too deeply.
        await anyio.run_process(["/bin/rm", "-rf", "--", str(folder)], check=False)
        warn(f"agents run in containers: {engine.kind} {engine.version} at {engine.socket}")
        with engine_errors(engine, "list the limits it enforces"):
            unlimited = unsupported_limits(await engine.client.system.info())
        if unlimited:
            warn(
                f"{engine.kind} on this host does not limit {' or '.join(unlimited)} of a sandbox: "
                "run it as root, or with version 2 of cgroups"
            )
        try:
            removed = await remove_orphans(engine)
        except SandboxError as error:
            warn(str(error))
        else:
            if removed:
                warn(f"removed leftovers of earlier runs from {engine.kind}: {removed}")
        opened = open_docker_sandboxes(
            engine,
            run=run,
            image=config.image or LEAN_IMAGE,
            folder=folder,
            bundle=find_bundle(config.ca_bundle),
            warn=warn,
        )
        yield await stack.enter_async_context(opened)


async def _engine(
    stack: AsyncExitStack, config: SandboxConfig, warn: Callable[[str], None]
) -> ContainerEngine | None:
    """Return the configured engine if it has the image; None where local sandboxes are used."""
    if config.engine not in {AUTO, DOCKER, PODMAN}:
        return None
    try:
        engine = await stack.enter_async_context(connect_engine(config.engine, config.socket))
        await require_image(engine, config.image or LEAN_IMAGE)
    except SandboxError as error:
        if config.engine != AUTO:
            raise
        warn(f"agents run in bubblewrap: {error}")
        return None
    return engine
