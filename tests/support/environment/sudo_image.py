"""The lean image with sudo, as the polyglot one has it: a setup agent can install the rest itself."""

from __future__ import annotations

from pathlib import Path

import anyio

from codetaste.environment.base_image.build import BaseImageRequest, build_base_image
from codetaste.environment.base_image.recipe import Recipe, polyglot_recipe
from codetaste.sandbox.ca_bundle import find_bundle
from codetaste.sandbox.docker.engine import connect_engine

SUDO_IMAGE = "codetaste/lean-with-sudo:1"
STEPS = ("packages", "user")


def build_sudo_image(socket: Path, lean_image: str, logs: Path) -> str:
    """Build the image with two steps of the polyglot one, and return its name."""
    polyglot = polyglot_recipe("debian")
    path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    recipe = Recipe(
        polyglot.base,
        polyglot.suite,
        polyglot.components,
        tuple(step for step in polyglot.steps if step.name in STEPS),
        {"PACKAGES": "sudo", "MORE_PACKAGES": "", "IMAGE_PATH": path},
        {"LANG": "C.UTF-8"},
    )
    request = BaseImageRequest(
        SUDO_IMAGE, recipe, (), Path(__file__), logs, from_image=lean_image, bundle=find_bundle("auto")
    )

    async def build() -> None:
        async with connect_engine(socket=socket) as engine:
            await build_base_image(engine, request, lambda _line: None)

    anyio.run(build)
    return SUDO_IMAGE
