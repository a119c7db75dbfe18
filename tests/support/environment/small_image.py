"""A base image of a few steps: what the polyglot one does, in seconds.

usage: small_image.py KIND SOCKET BASE NAME LOGS    builds one whose last step never ends
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import anyio

from codetaste.environment.base_image.build import BaseImage, BaseImageRequest, build_base_image
from codetaste.environment.base_image.check import ToolCheck
from codetaste.environment.base_image.recipe import Recipe, RecipeStep
from codetaste.sandbox.docker.engine import connect_engine

STEPS = (
    RecipeStep(
        "files", 'mkdir /opt/made && id -u >/opt/made/user && echo "$WORD" >/opt/made/word && echo done', 60.0
    ),
    RecipeStep("tool", "install -m 755 /dev/stdin /usr/local/bin/made <<<'echo 1.2.3'", 60.0),
)
RECIPE = Recipe(
    "debian", "bookworm", "main", STEPS, {"WORD": "hello"}, {"MADE": "/opt/made", "LANG": "C.UTF-8"}
)
CHECKS = (
    ToolCheck("made", 'cat "$MADE/word" >/dev/null && made', "1.2"),
    ToolCheck("absent", "absent", "1", needed=False),
)


def request(base: str, name: str, logs: Path, *steps: RecipeStep) -> BaseImageRequest:
    """Return the request for an image with more steps."""
    recipe = replace(RECIPE, steps=(*STEPS, *steps))
    return BaseImageRequest(name, recipe, CHECKS, Path(__file__), logs, from_image=base)


async def build(
    kind: str, socket: Path, wanted: BaseImageRequest, lines: list[str] | None = None
) -> BaseImage:
    """Build an image, with its lines for the user in ``lines``."""
    notes: list[str] = [] if lines is None else lines
    async with connect_engine(kind, socket) as engine:
        return await build_base_image(engine, wanted, notes.append)


if __name__ == "__main__":
    _, kind, socket, base, name, logs = sys.argv
    endless = RecipeStep("endless", "echo waits; sleep 3600", 3600.0)
    anyio.run(build, kind, Path(socket), request(base, name, Path(logs), endless))
