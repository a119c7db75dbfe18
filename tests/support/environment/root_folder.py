"""A sandbox whose root is a folder of the test: commands run in it as root, with the programs of the host."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from anyio import to_thread

from codetaste.sandbox.base import CommandResult, Sandbox

_FOLDERS = (
    "testbed",
    "task_description",
    "output",
    "root",
    "home/agent",
    "tmp",
    "var/tmp",
    "var/log",
    "dev",
    "proc",
)
_LINKS = {"bin": "usr/bin", "sbin": "usr/sbin", "lib": "usr/lib", "lib64": "usr/lib64"}


@dataclass(frozen=True, slots=True)
class RootFolder:
    """Only ``run`` works; ``bubblewrap`` is the program."""

    folder: Path
    bubblewrap: Path

    async def run(
        self,
        command: Sequence[str],
        *,
        limits: Any = None,  # noqa: ARG002 - of the protocol
        stdin: bytes = b"",
        env: Mapping[str, str] | None = None,
        workdir: str = "/testbed",
        sink: Any = None,
        root: bool = False,  # noqa: ARG002 - it is always root
    ) -> CommandResult:
        assert sink is None
        outside = [
            *(
                str(self.bubblewrap),
                "--die-with-parent",
                "--unshare-user",
                "--uid",
                "0",
                "--gid",
                "0",
                "--unshare-net",
                "--clearenv",
            ),
            *(
                "--bind",
                str(self.folder),
                "/",
                "--ro-bind",
                "/usr",
                "/usr",
                "--dev",
                "/dev",
                "--proc",
                "/proc",
            ),
            *("--setenv", "PATH", "/usr/bin:/bin", "--setenv", "HOME", "/root", "--chdir", workdir),
            *(part for name, value in (env or {}).items() for part in ("--setenv", name, value)),
        ]
        done = await to_thread.run_sync(
            lambda: subprocess.run([*outside, *command], input=stdin, capture_output=True, check=False)
        )
        return CommandResult(
            done.returncode, done.stdout, done.stderr, truncated=False, timed_out=False, wall_s=0.0
        )

    @property
    def sandbox(self) -> Sandbox:
        return cast("Sandbox", self)


def make_root(folder: Path, bubblewrap: Path) -> RootFolder:
    for name in _FOLDERS:
        (folder / name).mkdir(parents=True, exist_ok=True)
    for name, target in _LINKS.items():
        (folder / name).symlink_to(target)
    return RootFolder(folder, bubblewrap)
