"""``codetaste environment check``: run the gates by hand."""

from __future__ import annotations

from pathlib import Path

from codetaste.cli.environment_run import EnvironmentOptions, run_environments
from codetaste.cli.options import AsJson, Flag, OptionalPath, Several
from codetaste.console.command import command
from codetaste.sandbox.docker.engine import AUTO


@command
async def check(
    *,
    benchmark: str,
    repos: OptionalPath = None,
    instance: Several = (),
    image: str = "",
    host: Several = (),
    no_registries: Flag = False,
    out: Path = Path("runs"),
    engine: str = AUTO,
    socket: OptionalPath = None,
    json_: AsJson = False,
) -> int:
    """Run the gates, continuing where an earlier call ended.

    Args:
        benchmark: A folder in the published layout, with instance_images/<path>/scripts.
        repos: A folder of clones OWNER/REPO; otherwise each instance's own origin is used.
        instance: Globs on instance ids; default all.
        image: The image that environments are made from; default that of image build --polyglot.
        host: A host that the setup scripts may reach, besides the registries of this machine's tools.
        no_registries: Let the scripts reach no registry.
        out: Folder of runs; the results are in OUT/environment-BENCHMARK/environment.
        engine: docker, podman, or auto for the first that responds.
        socket: The engine's socket; default DOCKER_HOST, CONTAINER_HOST or the usual paths.
        json_: Print the result as JSON.

    Returns:
        The exit code, 1 if an instance has no environment.

    Raises:
        ConfigError: an argument names something missing or invalid.
        SandboxMissing: there is no container engine, or no base image.
    """
    options = EnvironmentOptions(
        benchmark, repos, instance, image, host, not no_registries, out, engine, socket, as_json=json_
    )
    return await run_environments(options, ("environment/*",))
