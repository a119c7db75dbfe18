"""``codetaste environment build``: prove environments by hand, and build their runtime images."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from codetaste.cli.container_runs import (
    DEFAULT_CONTAINERS,
    ContainerOptions,
    InstanceSelection,
    run_environments,
)
from codetaste.cli.options import AsJson
from codetaste.console.command import command


@command
async def build(
    *,
    selection: Annotated[InstanceSelection, Parameter(name="*")],
    options: Annotated[ContainerOptions, Parameter(name="*")] = DEFAULT_CONTAINERS,
    json_: AsJson = False,
) -> int:
    """Prove the environments and build the images, continuing where an earlier call ended.

    Args:
        selection: What is built.
        options: With what.
        json_: Print the result as JSON.

    Returns:
        The exit code, 1 if an instance has no environment.

    Raises:
        ConfigError: an option names something missing or invalid.
        SandboxMissing: there is no container engine, or no base image.
    """
    return await run_environments(selection, options, ("environment/*", "image/*"), as_json=json_)
