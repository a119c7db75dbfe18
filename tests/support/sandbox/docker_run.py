"""A run as the reaper knows it: opens boxes in an engine, says so, and waits to be killed or told to end.

docker_run.py SOCKET IMAGE FOLDER NAME
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import anyio

from codetaste.sandbox.base import Egress, SandboxSpec
from codetaste.sandbox.config import SandboxConfig
from codetaste.sandbox.provider import open_sandboxes


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


async def main(socket: str, image: str, folder: str, name: str) -> None:
    config = SandboxConfig(engine="docker", socket=Path(socket), image=image)
    out = Path(folder)
    spec = SandboxSpec("job")
    async with (
        open_sandboxes(config, out, name, say) as boxes,
        boxes.open(replace(spec, egress=Egress(network=True))) as box,
        boxes.open(replace(spec, read_only_root=True)),
    ):
        say("open")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(box.run, ["sleep", "600"])
            await anyio.to_thread.run_sync(sys.stdin.readline)
            tasks.cancel_scope.cancel()
    say("closed")


if __name__ == "__main__":
    anyio.run(main, *sys.argv[1:])
