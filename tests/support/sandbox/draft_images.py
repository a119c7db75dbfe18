"""A process that commits draft images from a sandbox, prints a line, and waits to be killed.

usage: draft_images.py ENGINE SOCKET IMAGE FOLDER NAME...
"""

from __future__ import annotations

import sys
from pathlib import Path

import anyio

from codetaste.sandbox.base import SandboxSpec
from codetaste.sandbox.config import SandboxConfig
from codetaste.sandbox.docker.provider import commit_sandbox
from codetaste.sandbox.provider import open_sandboxes


async def main(kind: str, socket: str, image: str, folder: str, *names: str) -> None:
    config = SandboxConfig.model_validate({"engine": kind, "socket": socket, "image": image})
    async with (
        open_sandboxes(config, Path(folder), "drafts", lambda _: None) as provider,
        provider.open(SandboxSpec("job")) as sandbox,
    ):
        for name in names:
            await sandbox.run(["sh", "-c", 'echo "$1" >/testbed/made', "sh", name])
            await commit_sandbox(sandbox, name, labels={"key": name}, draft=True)
        sys.stdout.write("committed\n")
        sys.stdout.flush()
        await anyio.sleep_forever()


if __name__ == "__main__":
    anyio.run(main, *sys.argv[1:])
