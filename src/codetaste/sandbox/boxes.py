"""What coding agents run in, as ``[sandbox]`` has it: containers of Docker or Podman, or bubblewrap."""

from __future__ import annotations

from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio
from anyio import to_thread

from codetaste.errors import SandboxError
from codetaste.sandbox.box import BoxSpec
from codetaste.sandbox.ca_bundle import find_bundle
from codetaste.sandbox.docker import docker_boxes
from codetaste.sandbox.docker_engine import asking, connected
from codetaste.sandbox.docker_image import must_have
from codetaste.sandbox.docker_socket import AUTO, DOCKER, PODMAN
from codetaste.sandbox.docker_spec import unheld
from codetaste.sandbox.image import LEAN_IMAGE
from codetaste.sandbox.local_box import local_boxes
from codetaste.sandbox.reaper import reap

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from codetaste.sandbox.box import Boxes
    from codetaste.sandbox.config import SandboxConfig
    from codetaste.sandbox.docker_engine import ContainerEngine

_FOLDER = ".boxes"


def box_spec(config: SandboxConfig, job: str, **more: Any) -> BoxSpec:  # noqa: ANN401 - fields of BoxSpec
    """Return what a box for ``job`` is to be, with the limits of the config; ``more`` are other fields."""
    limits = {
        "image": config.image,
        "memory_bytes": config.memory,
        "cpus": config.cpus,
        "processes": config.processes,
        "disk_bytes": config.disk,
        "read_only_root": config.read_only_root,
    }
    return BoxSpec(job, **{**limits, **more})


@asynccontextmanager
async def open_boxes(
    config: SandboxConfig,
    cache: Path,  # noqa: ARG001 - for what will be kept of images
    out: Path,
    run: str,
    warn: Callable[[str], None],
) -> AsyncIterator[Boxes]:
    """Choose what contains coding agents, and open boxes in it for the time of the block.

    "auto" takes a container engine that answers and has the image, and bubblewrap elsewhere; ``warn`` is told
    which and why. What killed runs have left in the engine is removed first.

    Args:
        config: the section.
        cache: where things are kept that other runs can use as well.
        out: the folder of the run, which nobody else works on.
        run: its name, for labels.
        warn: is told what a person should know.

    Raises:
        SandboxMissing: there is no such engine, or it has not the image; the message says what to do.
        SandboxError: nothing here can contain an agent.
    """
    folder = out / _FOLDER
    async with AsyncExitStack() as held:
        engine = await _engine(held, config, warn)
        if engine is None:
            yield await to_thread.run_sync(local_boxes, folder)
            return
        # Not shutil.rmtree: it gives up on trees that are nested too deeply.
        await anyio.run_process(["/bin/rm", "-rf", "--", str(folder)], check=False)
        warn(f"agents run in containers: {engine.kind} {engine.version} at {engine.socket}")
        with asking(engine, "say what it holds"):
            loose = unheld(await engine.client.system.info())
        if loose:
            warn(
                f"{engine.kind} here bounds neither {' nor '.join(loose)} of a box: "
                "run it as root, or with version 2 of cgroups"
            )
        try:
            reaped = await reap(engine)
        except SandboxError as error:
            warn(str(error))
        else:
            if reaped:
                warn(f"removed what earlier runs had left in {engine.kind}: {reaped}")
        opened = docker_boxes(
            engine,
            run=run,
            image=config.image or LEAN_IMAGE,
            folder=folder,
            bundle=find_bundle(config.ca_bundle),
            warn=warn,
        )
        yield await held.enter_async_context(opened)


async def _engine(
    held: AsyncExitStack, config: SandboxConfig, warn: Callable[[str], None]
) -> ContainerEngine | None:
    """Return the engine that is wanted, with the image; None where local boxes are wanted, or will do."""
    if config.engine not in {AUTO, DOCKER, PODMAN}:
        return None
    try:
        engine = await held.enter_async_context(connected(config.engine, config.socket))
        await must_have(engine, config.image or LEAN_IMAGE)
    except SandboxError as error:
        if config.engine != AUTO:
            raise
        warn(f"agents run in bubblewrap: {error}")
        return None
    return engine
