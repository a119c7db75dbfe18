"""``codetaste image check``: prove each tool of a base image by running it."""

from __future__ import annotations

from codetaste.cli.commands.image.engine import open_engine
from codetaste.cli.options import AsJson, OptionalPath
from codetaste.console.command import command
from codetaste.console.json import json_document
from codetaste.console.streams import notify, print_result
from codetaste.environment.base_image.check import check_image, format_tools
from codetaste.sandbox.docker.engine import AUTO


@command
async def check(
    image: str, /, *, engine: str = AUTO, socket: OptionalPath = None, json_: AsJson = False
) -> int:
    """Check an image.

    Args:
        image: Its name.
        engine: docker, podman, or auto for the first that responds.
        socket: The engine's socket.
        json_: Print the result as JSON.

    Raises:
        SandboxError: there is no engine or no such image, or the image cannot be run.
    """
    async with open_engine(engine, socket) as connected:
        tools = await check_image(connected, image, notify)
    sound = all(tool.sound for tool in tools)
    if json_:
        data = {"image": image, "sound": sound, "tools": [tool.to_json() for tool in tools]}
        print_result(json_document(data))
    else:
        for line in ["TOOL, VERSION, WANTED, STATE", *format_tools(tools)]:
            print_result(line)
    return 0 if sound else 1
