"""A run with two sandboxes in an engine: prints a line when they are open, ends at a line of input.

usage: docker_run.py SOCKET IMAGE FOLDER RUN
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import anyio

from codetaste.sandbox.base import Egress, SandboxSpec
from codetaste.sandbox.config import SandboxConfig
from codetaste.sandbox.provider import open_sandboxes


def print_line(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


async def main(socket: str, image: str, folder: str, run_id: str) -> None:
    config = SandboxConfig(engine="docker", socket=Path(socket), image=image)
    run_folder = Path(folder)
    spec = SandboxSpec("job")
    async with (
        open_sandboxes(config, run_folder, run_id, print_line) as provider,
        provider.open(replace(spec, egress=Egress(network=True))) as sandbox,
        provider.open(replace(spec, read_only_root=True)),
    ):
        print_line("open")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(sandbox.run, ["sleep", "600"])
            await anyio.to_thread.run_sync(sys.stdin.readline)
            tasks.cancel_scope.cancel()
    print_line("closed")


if __name__ == "__main__":
    anyio.run(main, *sys.argv[1:])
