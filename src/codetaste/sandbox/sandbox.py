"""A place where untrusted commands run: the protocol that every kind of sandbox keeps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


@dataclass(frozen=True, slots=True)
class Limits:
    """What one command may use. Sizes in bytes, time in seconds."""

    wall_s: float = 60.0
    output_bytes: int = 64 * 1024
    memory_bytes: int = 4 * 1024**3
    processes: int = 256


@dataclass(frozen=True, slots=True)
class Completed:
    """A command that ended. ``exit_code`` is None when it was killed for outliving its time."""

    exit_code: int | None
    stdout: bytes
    stderr: bytes
    truncated: bool
    timed_out: bool
    wall_s: float


class Sandbox(Protocol):
    """One contained place. Nothing that a command does outlives the command, but for files it may write."""

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
        limits: Limits | None = None,
        stdin: bytes = b"",
        env: Mapping[str, str] | None = None,
    ) -> Completed:
        """Run ``command`` to its end, its time limit, or cancellation; every process of it is then gone.

        Raises:
            SandboxError: it could not be started or contained.
        """
        ...

    async def aclose(self) -> None:
        """Give back what the sandbox holds."""
        ...
