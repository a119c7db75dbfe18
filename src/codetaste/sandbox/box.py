"""A box: a sandbox that keeps its files from one command to the next, where a coding agent works.

What a box looks like from inside is the same whatever contains it (a container, bubblewrap)::

    /testbed            the repository, writable; where commands start
    /task_description   what is to be done
    /output             what the agent is asked to write beside the repository
    /home/agent         HOME, new and empty but for what was put there
    /opt/…              the box's mounts, read-only

Commands run as an ordinary user (uid and gid 1000), without any privilege, and never as root.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from codetaste.sandbox.sandbox import Sandbox

if TYPE_CHECKING:
    from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Mapping, Sequence
    from contextlib import AbstractAsyncContextManager
    from pathlib import Path

    from codetaste.sandbox.sandbox import Completed, Limits

TESTBED, TASK, OUTPUT, HOME = "/testbed", "/task_description", "/output", "/home/agent"
UID = GID = 1000
"""Who everything inside belongs to; an archive that is put into a box must say so."""


@dataclass(frozen=True, slots=True)
class Mount:
    """A folder of this machine that is seen inside at ``target``, read-only."""

    source: Path
    target: str


@dataclass(frozen=True, slots=True)
class Way:
    """A way out: what connects to 127.0.0.1:``port`` inside reaches the Unix socket ``socket`` out here.

    The socket's folder is mounted, so it must hold nothing else that an agent may not see.
    """

    port: int
    socket: Path


@dataclass(frozen=True, slots=True)
class Egress:
    """What can be reached from inside: nothing but the box's own loopback, and ``ways``.

    ``env`` are variables that make programs use the ways (proxies). ``network`` opens everything.
    """

    ways: tuple[Way, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    network: bool = False


NO_EGRESS = Egress()


@dataclass(frozen=True, slots=True)
class BoxSpec:
    """What a box is to be. Sizes in bytes, times in seconds.

    Attributes:
        job: the key of the job it is for: labels, and what people see.
        image: the image of a container; "" takes the engine's default. A local box has this machine's system.
        mounts: folders of this machine, read-only inside.
        egress: what can be reached from inside.
        env: variables of every command.
        memory_bytes: of all that runs inside together.
        cpus: cores of all that runs inside together.
        processes: at once.
        disk_bytes: of all that is written inside.
        read_only_root: only the places above and /tmp can be written to.
        lifetime_s: after it the box ends of itself, should we be gone.
    """

    job: str
    image: str = ""
    mounts: tuple[Mount, ...] = ()
    egress: Egress = NO_EGRESS
    env: Mapping[str, str] = field(default_factory=dict)
    memory_bytes: int = 8 * 1024**3
    cpus: float = 2.0
    processes: int = 1024
    disk_bytes: int = 20 * 1024**3
    read_only_root: bool = False
    lifetime_s: float = 6 * 3600.0


class Box(Sandbox, Protocol):
    """A running box. Nothing that a command starts outlives the command; the files stay."""

    async def run(
        self,
        command: Sequence[str],
        *,
        limits: Limits | None = None,
        stdin: bytes = b"",
        env: Mapping[str, str] | None = None,
        workdir: str | None = None,
        sink: Callable[[bytes], Awaitable[None]] | None = None,
    ) -> Completed:
        """Run ``command`` to its end, its time limit, or cancellation: TERM, then KILL, to all it started.

        Args:
            command: program and arguments.
            limits: time and output of this command. Memory and processes are those of the box: what runs in
                it shares them, so these two are not looked at.
            stdin: what it reads, to its end.
            env: variables beside the box's.
            workdir: where it starts, /testbed if not said.
            sink: is given all of standard output as it comes, and waited for; ``Completed`` then has none of
                it. What it raises ends the command.

        Returns:
            A command that cannot be found ends with 127. One that was ended for a reason other than time has
            a last line on standard error that says why, as ``[killed: out of memory]``.

        Raises:
            SandboxError: the box is gone, or could not run it; ``ended`` says why.
        """
        ...

    async def put(self, archive: AsyncIterable[bytes] | bytes) -> None:
        """Unpack a tar archive that we made; its members lie below the four places.

        Raises:
            SandboxError: it could not be unpacked.
        """
        ...

    def get(self, path: str) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        """Read ``path``, one of the four places or what is below, as a tar archive; untrusted.

        Works once everything inside is stopped as well, however it ended. Members are named as the last part
        of ``path`` and what is below it. A link is archived as a link; ``path`` itself is not followed.

        Raises:
            SandboxError: it is not there, or cannot be read.
        """
        ...

    async def stop(self) -> None:
        """End all that runs inside, at once; files stay readable. May be called again."""
        ...

    @property
    def ended(self) -> str:
        """Why the box ended before it was told to ("out of memory", "disk full", …), "" if it did not."""
        ...


class Boxes(Protocol):
    """What opens boxes: a container engine, or this machine."""

    @property
    def kind(self) -> str:
        """What contains: "docker", "podman", "bubblewrap"."""
        ...

    def open(self, spec: BoxSpec) -> AbstractAsyncContextManager[Box]:
        """Start a box; at the end of the block it and all that it wrote are gone.

        Raises:
            SandboxError: it cannot be had; the message says what to do.
        """
        ...
