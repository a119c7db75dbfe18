"""The protocol of a shell: it runs one contained command at a time and keeps nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


@dataclass(frozen=True, slots=True)
class CommandLimits:
    """Limits of one command. Sizes in bytes, time in seconds."""

    wall_s: float = 60.0
    output_bytes: int = 64 * 1024
    memory_bytes: int = 4 * 1024**3
    processes: int = 256


@dataclass(frozen=True, slots=True)
class CommandResult:
    """The result of a command. ``exit_code`` is None when it was killed at its time limit."""

    exit_code: int | None
    stdout: bytes
    stderr: bytes
    truncated: bool
    timed_out: bool
    wall_s: float


class Shell(Protocol):
    """Runs untrusted commands. Nothing of a command remains after it, except files it may write."""

    @property
    def kind(self) -> str:
        """What contains the commands: "bubblewrap", "landlock", "docker"."""
        ...

    @property
    def workdir(self) -> str:
        """Where commands start, as they see it."""
        ...

    async def run(
        self,
        command: Sequence[str],
        *,
        limits: CommandLimits | None = None,
        stdin: bytes = b"",
        env: Mapping[str, str] | None = None,
    ) -> CommandResult:
        """Run ``command`` to its end, its time limit, or cancellation; all its processes are then gone.

        Raises:
            SandboxError: it could not be started or contained.
        """
        ...

    async def aclose(self) -> None:
        """Release all resources."""
        ...
