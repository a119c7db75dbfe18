"""``codetaste image build``: build an image for sandboxes in a container engine."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from codetaste.cli.commands.image.engine import open_engine
from codetaste.cli.options import AsJson, Flag, OptionalPath, Several
from codetaste.console.command import command
from codetaste.console.json import json_document
from codetaste.console.streams import notify, print_result
from codetaste.core.paths import cache_dir
from codetaste.environment.base_image.build import BaseImageRequest, build_base_image
from codetaste.environment.base_image.check import JAVA, POLYGLOT, format_tools, java_checks, polyglot_checks
from codetaste.environment.base_image.recipe import (
    BASES,
    JAVA_IMAGE,
    java_recipe,
    polyglot_image,
    polyglot_recipe,
)
from codetaste.errors import ConfigError
from codetaste.rules.engine.install import find_rule_engine
from codetaste.sandbox.ca_bundle import find_bundle
from codetaste.sandbox.docker.bootstrap.lean_image import LEAN_IMAGE, build_lean_image
from codetaste.sandbox.docker.engine import AUTO
from codetaste.sandbox.docker.images import build_image, split_image_name

if TYPE_CHECKING:
    from codetaste.sandbox.docker.engine import ContainerEngine

From = Annotated[str, Parameter(name="--from")]


@command
async def build(  # noqa: PLR0913 - the options of the command
    *,
    lean: Flag = False,
    polyglot: Flag = False,
    java: Flag = False,
    dockerfile: OptionalPath = None,
    name: str = "",
    base: str = BASES[0],
    from_: From = "",
    mirror: Several = (),
    allow: Several = (),
    rebuild: Flag = False,
    logs: OptionalPath = None,
    no_mirrors: Flag = False,
    engine: str = AUTO,
    socket: OptionalPath = None,
    json_: AsJson = False,
) -> int:
    """Build an image.

    Args:
        lean: Debian with git, Python and ripgrep, from this machine's package mirrors, by mmdebstrap.
        polyglot: The image of the paper: Python, Node, Go, Rust, Java, C and C++, with test tools.
        java: Debian with OpenJDK 8, 11, 17, 21 and 25, Maven and Gradle, for projects of SWE-Refactor.
        dockerfile: A folder with a Dockerfile; the whole folder is sent to the engine.
        name: Name of the image; all but your own have default names.
        base: What the polyglot image is made of: ubuntu, as in the paper, or debian.
        from_: An Ubuntu or Debian image in the engine to make the image from; default mmdebstrap.
        mirror: Address of the distribution's archive, or a line of sources.list.
        allow: A host that the steps may reach beside the registries of this host's tools.
        rebuild: Build the polyglot or the Java image although there is one of the same content.
        logs: Folder for the logs of its steps; default in the cache folder.
        no_mirrors: Remove the package mirrors from the lean image.
        engine: docker, podman, or auto for the first that responds.
        socket: The engine's socket; default DOCKER_HOST, CONTAINER_HOST or the usual paths.
        json_: Print the result as JSON.

    Raises:
        ConfigError: the image to build is not given, or there is no Dockerfile.
        ToolMissing: a program that builds it is missing.
        SandboxError: there is no engine, or it failed; or a step of the image failed.
    """
    if [lean, polyglot, java, dockerfile is not None].count(True) != 1:
        raise ConfigError("give the image to build: --lean, --polyglot, --java, or --dockerfile FOLDER")
    if dockerfile is not None and not name:
        raise ConfigError("--name: give a name for the image, as in --name codetaste/mine:1")
    if base not in BASES:
        raise ConfigError(f"--base {base}: it is one of {', '.join(BASES)}")
    name = name or (LEAN_IMAGE if lean else JAVA_IMAGE if java else polyglot_image(base))
    split_image_name(name)
    started_s = time.monotonic()
    data: dict[str, Any] = {"name": name}
    async with open_engine(engine, socket) as connected:
        if dockerfile is not None:
            data["id"] = await build_image(connected, dockerfile, name, "built", notify)
        elif lean:
            data["id"] = await build_lean_image(connected, name, notify, mirrors=not no_mirrors)
        else:
            request = BaseImageRequest(
                name=name,
                recipe=java_recipe() if java else polyglot_recipe(base),
                checks=java_checks() if java else polyglot_checks(),
                opengrep=None if java else (await find_rule_engine()).source_file,
                logs=logs or cache_dir(notify) / "image-logs" / (JAVA if java else base),
                kind=JAVA if java else POLYGLOT,
                mirrors=mirror,
                from_image=from_,
                allow=allow,
                bundle=find_bundle("auto"),
                rebuild=rebuild,
            )
            data |= await _build_by_recipe(connected, request, as_json=json_)
    data["seconds"] = round(time.monotonic() - started_s, 1)
    print_result(json_document(data) if json_ else f"{name} {data['id']}")
    return 0


async def _build_by_recipe(
    engine: ContainerEngine, request: BaseImageRequest, *, as_json: bool
) -> dict[str, Any]:
    built = await build_base_image(engine, request, notify)
    if not as_json:
        for line in format_tools(built.tools):
            print_result(line)
        if built.differences:
            print_result(f"not as in the recipe: {built.differences}")
    return {
        "id": built.ident,
        "key": built.key,
        "differences": built.differences,
        "tools": [tool.to_json() for tool in built.tools],
    }
