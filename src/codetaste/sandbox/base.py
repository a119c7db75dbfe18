"""The protocols of this room: a shell, which keeps nothing of a command, and a sandbox, where an agent works.

A sandbox keeps its files from one command to the next. Commands see the same layout under every provider
(container, bubblewrap)::

    /testbed            the repository, writable; the default working directory
    /task_description   the task
    /output             what the agent is told to write beside the repository
    /home/agent         HOME, initially empty except for what ``put`` wrote
    /opt/…              the mounts of the sandbox, read-only

Commands run as an ordinary user (uid and gid 1000) without any privilege. Where the spec says so
(``Privileges``), the host can also run commands as root.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Mapping, Sequence
    from contextlib import AbstractAsyncContextManager
    from pathlib import Path

TESTBED, TASK, OUTPUT, HOME = "/testbed", "/task_description", "/output", "/home/agent"
UID = GID = 1000
"""Owner of everything in a sandbox; the members of an archive for ``put`` must have it, too."""


@dataclass(frozen=True, slots=True)
class CommandLimits:
    """Limits of one command. Sizes in bytes, time in seconds."""

    wall_s: float = 60.0
    output_bytes: int = 64 * 1024
    memory_bytes: int = 4 * 1024**3
    processes: int = 256


class MemoryEnd(StrEnum):
    """Why the kernel killed a process as memory ran out."""

    LIMIT = "out of memory"
    """The sandbox had reached its own limit."""
    HOST = "the host is out of memory"
    """It had not."""


@dataclass(frozen=True, slots=True)
class CommandResult:
    """The result of a command. ``exit_code`` is None when it was killed at its time limit.

    ``memory`` tells that processes of it were killed as memory ran out: its sandbox's own, or the host's.
    """

    exit_code: int | None
    stdout: bytes
    stderr: bytes
    truncated: bool
    timed_out: bool
    wall_s: float
    memory: MemoryEnd | None = None


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


class Privileges(StrEnum):
    """What is allowed to be root in a sandbox: of the sandbox alone, without any right on the host.

    All but NONE need a container engine.
    """

    NONE = "none"
    """Nothing: all commands run as uid 1000, without capabilities, and cannot gain privileges."""
    SYSTEM = "system"
    """Commands that the host runs with ``root=True``; those of uid 1000 cannot gain privileges."""
    SUDO = "sudo"
    """As SYSTEM, and commands of uid 1000 can gain privileges by programs with the setuid bit, as sudo."""


@dataclass(frozen=True, slots=True)
class Mount:
    """A folder of the host that is mounted in the sandbox at ``target``, read-only.

    Root in the sandbox reads all its files, those that are private on the host, too.
    """

    source: Path
    target: str


@dataclass(frozen=True, slots=True)
class PortForward:
    """A forwarded port: 127.0.0.1:``port`` in the sandbox is the Unix socket ``socket`` of the host.

    The folder of the socket is mounted, so it must contain nothing that an agent may not see.
    """

    port: int
    socket: Path


@dataclass(frozen=True, slots=True)
class Egress:
    """What a sandbox can reach: its own loopback and the ``forwards``, nothing else.

    ``env`` are variables that make programs use the ports (proxies). ``network`` opens the whole network.
    """

    forwards: tuple[PortForward, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    network: bool = False


NO_EGRESS = Egress()


@dataclass(frozen=True, slots=True)
class SandboxSpec:
    """The settings of a sandbox. Sizes in bytes, times in seconds.

    Attributes:
        job: key of the job that uses it: for labels and messages.
        image: container image; "" takes the engine's default. A local sandbox uses the system of the host.
        mounts: folders of the host, read-only in the sandbox.
        egress: what the sandbox can reach.
        env: variables of every command.
        memory_bytes: of all its processes together.
        memory_reserved_bytes: memory that it keeps while others are made to give back theirs; 0 reserves
            nothing, and a local sandbox has none.
        cpus: cores of all its processes together.
        processes: at once.
        disk_bytes: of everything that is written in it.
        read_only_root: only the writable folders above and /tmp can be written to.
        lifetime_s: after it the sandbox ends by itself, even if codetaste was killed.
        privileges: what can be root in it.
    """

    job: str
    image: str = ""
    mounts: tuple[Mount, ...] = ()
    egress: Egress = NO_EGRESS
    env: Mapping[str, str] = field(default_factory=dict)
    memory_bytes: int = 8 * 1024**3
    memory_reserved_bytes: int = 0
    cpus: float = 2.0
    processes: int = 1024
    disk_bytes: int = 20 * 1024**3
    read_only_root: bool = False
    lifetime_s: float = 6 * 3600.0
    privileges: Privileges = Privileges.NONE


class EndReason(StrEnum):
    """Why a sandbox ended without ``stop``.

    A signal that ends only the supervisor counts as a command's, although a user of the host could send it,
    too. A kill of the whole sandbox from the host ends the first process, which no command can signal. A
    supervisor that crashes (as by SIGSEGV) has EXITED.
    """

    OUT_OF_MEMORY = "out of memory"
    DISK_FULL = "disk full"
    TOO_MANY_PROCESSES = "too many processes"
    LIFETIME_OVER = "its lifetime is over"
    SUPERVISOR_KILLED = "a command in it killed its supervisor"
    KILLED = "killed from the host"
    EXITED = "its first process ended"
    REMOVED = "its container was removed by another program"
    SUPERVISOR_LOST = "the sandbox supervisor is lost"
    ENGINE_RESTARTED = "the container engine was restarted"
    ENGINE_GONE = "the container engine is gone"

    @property
    def caused_by_agent(self) -> bool:
        """Whether the agent's commands ended the sandbox, as they would another one."""
        return self in _CAUSED_BY_AGENT


_CAUSED_BY_AGENT = {
    EndReason.OUT_OF_MEMORY,
    EndReason.DISK_FULL,
    EndReason.TOO_MANY_PROCESSES,
    EndReason.SUPERVISOR_KILLED,
}


@dataclass(frozen=True, slots=True)
class SandboxEnd:
    """The end of a sandbox that was not stopped; ``detail`` has what else is known, for messages."""

    reason: EndReason
    detail: str = ""

    def __str__(self) -> str:
        """Return the reason and the detail on one line."""
        return f"{self.reason}: {self.detail}" if self.detail else self.reason.value


class Sandbox(Shell, Protocol):
    """A running sandbox. No process of a command outlives the command; its files stay."""

    async def run(
        self,
        command: Sequence[str],
        *,
        limits: CommandLimits | None = None,
        stdin: bytes = b"",
        env: Mapping[str, str] | None = None,
        workdir: str | None = None,
        sink: Callable[[bytes], Awaitable[None]] | None = None,
        root: bool = False,
    ) -> CommandResult:
        """Run ``command`` to its end, its time limit, or cancellation: TERM, then KILL, to all its processes.

        Args:
            command: program and arguments.
            limits: time and output of this command. Its memory and process limits are ignored: those of the
                sandbox hold, for all commands together.
            stdin: the whole standard input.
            env: variables in addition to those of the sandbox.
            workdir: the working directory, by default /testbed.
            sink: receives standard output as it arrives, and is awaited;
                ``CommandResult.stdout`` is then empty. An exception of the sink ends the command.
            root: run it as root instead of uid 1000, with HOME=/root and the PATH of a system, in which no
                folder belongs to uid 1000.

        Returns:
            A command that cannot be found ends with 127. One that was ended for a reason other than time has
            a last line on standard error that names the reason, as ``[killed: out of memory]``.

        Raises:
            SandboxError: the sandbox is gone, or could not run the command; ``end`` has the reason. Or
                ``root``, and the privileges of the sandbox are NONE.
        """
        ...

    async def put(self, archive: AsyncIterable[bytes] | bytes) -> None:
        """Unpack a trusted tar archive; its members lie in the four writable folders.

        Raises:
            SandboxError: it could not be unpacked.
        """
        ...

    def get(self, path: str) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        """Read ``path``, in one of the four writable folders, as a tar archive; its content is untrusted.

        Also works after everything in the sandbox was stopped, however it ended. Member names begin with the
        last part of ``path``. A link is archived as a link; ``path`` itself is not followed.

        Raises:
            SandboxError: ``path`` does not exist, or cannot be read.
        """
        ...

    async def written_bytes(self) -> int:
        """Return the size of what was written in the sandbox: of a container its writable layer.

        Raises:
            SandboxError: it cannot be measured.
        """
        ...

    async def stop(self) -> None:
        """End all processes in the sandbox at once; files stay readable. May be called again."""
        ...

    @property
    def end(self) -> SandboxEnd | None:
        """Why the sandbox ended without ``stop``, None if it did not; all its processes are gone then."""
        ...


class SandboxProvider(Protocol):
    """Opens sandboxes: in a container engine, or under bubblewrap."""

    @property
    def kind(self) -> str:
        """What contains the commands: "docker", "podman", "bubblewrap"."""
        ...

    def open(self, spec: SandboxSpec) -> AbstractAsyncContextManager[Sandbox]:
        """Start a sandbox; it and everything written in it are removed at the end of the block.

        Raises:
            SandboxError: it cannot be started; the message has the fix.
        """
        ...
