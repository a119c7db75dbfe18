"""The host side of the supervisor in a sandbox (``supervisor.mjs``): starts it and sends it commands.

The supervisor connects to a Unix socket in a folder that the sandbox has mounted, authenticates with a
secret, and runs any number of commands at once over that connection; their output comes through pipes in
the same folder. So a command needs no call of a container engine. The supervisor has the privileges of a
command (of the commands as root, where there are any): one that stops or kills it ends the sandbox, which is
detected and reported here.
"""

from __future__ import annotations

import contextlib
import hmac
import json
import math
import os
import secrets
import shutil
import socket
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
from anyio import to_thread
from anyio.abc import SocketListener, UNIXSocketStream

from codetaste.core.concurrency import background_tasks
from codetaste.errors import SandboxError
from codetaste.sandbox.base import GID, TESTBED, UID, CommandLimits, Mount, PortForward
from codetaste.sandbox.supervisor.command import RemoteCommand, run_command
from codetaste.sandbox.supervisor.node import NODE_MOUNT, node_runtime
from codetaste.sandbox.supervisor.pipes import PipePool
from codetaste.sandbox.supervisor.protocol import HELLO, PING, STOP, Frame, FrameDecoder

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence

    from codetaste.sandbox.base import CommandResult


SOCKET_NAME = "supervisor.sock"
PROGRAM_FILES = ("supervisor.mjs", "processes.mjs")
"""The first is run, the others are imported by it."""
_SETTINGS_NAME = "settings.json"
_CONTROL_MOUNT = "/run/codetaste/control"
_FORWARD_MOUNT = "/run/codetaste/forward"

# The first process of the sandbox: it adopts and reaps orphans, which Node cannot; no command can signal it,
# and when it ends the kernel ends all others. NODE_OPTIONS of the image are passed on to commands only.
# It exits with SUPERVISOR_KILLED if a signal ended the supervisor, except those of a crash (ILL to FPE, SEGV,
# SYS); the code 137 remains for a first process that was killed from the host.
SUPERVISOR_KILLED = 5
_INIT_SCRIPT = f"""
ulimit -c 0
trap "" HUP INT QUIT TERM
export CODETASTE_NODE_OPTIONS="$NODE_OPTIONS"
unset NODE_OPTIONS
"$@" & wait $!
code=$?
case $code in
13[2-6] | 139 | 159) ;;
129 | 1[3-9]?) code={SUPERVISOR_KILLED} ;;
esac
exit $code
"""
_NODE_OPTIONS = ("--no-warnings", "--max-old-space-size=256", "--v8-pool-size=1")
_GONE = "the sandbox supervisor is gone: a command killed it, or the whole sandbox was killed"
_RECEIVE_BYTES = 256 * 1024
_STREAM_FAULTS = (anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError, OSError)


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """Time limits of the supervisor's responses, in seconds."""

    hello_s: float = 60.0
    """Until it has connected and authenticated."""
    interval_s: float = 5.0
    timeout_s: float = 30.0
    """Without any frame from it."""


@dataclass(slots=True)
class SupervisorClient:
    """The supervisor of one sandbox. Once ``failed`` is set it is gone for good, because of ``problem``."""

    folder: Path
    """Mounted in the sandbox: the socket and the supervisor."""
    forwards: tuple[PortForward, ...]
    lifetime_s: float
    heartbeat: Heartbeat
    env: Mapping[str, str]
    """Variables of every command, over those of the sandbox's first process."""
    root: bool
    """It keeps the privileges of root, and runs commands as either user."""
    secret: str = field(default_factory=lambda: secrets.token_hex(16))
    failed: anyio.Event = field(default_factory=anyio.Event)
    problem: str = ""
    _listener: SocketListener | None = None
    _stream: UNIXSocketStream | None = None
    _sending: anyio.Lock = field(default_factory=anyio.Lock)
    _ready: anyio.Event = field(default_factory=anyio.Event)
    _last_frame_at: float = 0.0
    _commands: dict[int, RemoteCommand] = field(default_factory=dict)
    _last_number: int = 0
    _pipes: PipePool = field(init=False)

    def __post_init__(self) -> None:
        self._pipes = PipePool(self.folder)

    @property
    def mounts(self) -> tuple[Mount, ...]:
        """The mounts that the sandbox must have, read-only."""
        forwards = (
            Mount(forward.socket.parent, f"{_FORWARD_MOUNT}/{n}") for n, forward in enumerate(self.forwards)
        )
        return (Mount(node_runtime().root, NODE_MOUNT), Mount(self.folder, _CONTROL_MOUNT), *forwards)

    @property
    def argv(self) -> tuple[str, ...]:
        """The first process of the sandbox (PID 1), run as uid 1000, or as root with SETUID and SETGID.

        The same for every sandbox, because engines copy it into the history of a committed image. Its
        environment is the base of every command's. Its standard streams may be anything; standard error has
        the reason of a failed start.
        """
        node = (f"{NODE_MOUNT}/bin/node", *_NODE_OPTIONS, f"{_CONTROL_MOUNT}/{PROGRAM_FILES[0]}")
        return ("/bin/sh", "-c", _INIT_SCRIPT, "codetaste", *node, f"{_CONTROL_MOUNT}/{_SETTINGS_NAME}")

    def write_settings(self) -> None:
        """Write what the supervisor reads when it starts to a file, which is removed when it has connected.

        Raises:
            OSError: it cannot be written.
        """
        settings = {
            "socket": f"{_CONTROL_MOUNT}/{SOCKET_NAME}",
            "secret": self.secret,
            "forwards": [
                (forward.port, f"{_FORWARD_MOUNT}/{n}/{forward.socket.name}")
                for n, forward in enumerate(self.forwards)
            ],
            "lifetime_s": self.lifetime_s,
            "env": dict(self.env),
            "uid": UID,
            "gid": GID,
            "root": self.root,
        }
        path = self.folder / _SETTINGS_NAME
        path.write_text(json.dumps(settings), encoding="utf-8")
        path.chmod(0o644)  # the supervisor may be another user; the folder is as private as the sandbox

    async def wait_connected(self) -> None:
        """Wait until the supervisor is ready to run commands and has opened the forwarded ports.

        Raises:
            SandboxError: it did not connect in time, or is gone already.
        """
        with anyio.move_on_after(self.heartbeat.hello_s):
            await self._ready.wait()
        if self.problem:
            raise SandboxError(self.problem)
        if not self._ready.is_set():
            raise SandboxError(
                f"the sandbox supervisor did not start within {self.heartbeat.hello_s:g} s; "
                "the image needs /bin/sh, glibc 2.28 or newer, and the C++ library (libstdc++6)"
            )

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
        """Run a command as ``Sandbox.run`` describes.

        Raises:
            SandboxError: it could not be run, or the supervisor is gone.
        """
        if not command or any("\0" in part for part in (*command, *(env or {}).values())):
            raise SandboxError(f"not a command: {list(command)!r}")
        self._last_number += 1
        remote = RemoteCommand(self._last_number, limits or CommandLimits(), stdin, sink)
        self._commands[remote.number] = remote
        request = {
            "argv": list(command),
            "env": dict(env or {}),
            "workdir": workdir or TESTBED,
            "root": root,
        }
        try:
            return await run_command(remote, request, self._send, self.fail, self._pipes)
        finally:
            del self._commands[remote.number]

    async def stop(self) -> None:
        """Stop the supervisor, and with it the whole sandbox. May be called again."""
        if self._stream is not None and not self.failed.is_set():
            with anyio.move_on_after(1, shield=True), contextlib.suppress(SandboxError):
                await self._send(Frame(STOP))
        await self.fail("the sandbox was stopped")

    async def fail(self, problem: str) -> None:
        """Give up the supervisor because of ``problem``; the first one is recorded."""
        if not self.failed.is_set():
            self.problem = problem
            self.failed.set()
            self._ready.set()
            for command in self._commands.values():
                command.deliver(None, problem)
        if self._stream is not None:
            with anyio.CancelScope(shield=True):
                await anyio.aclose_forcefully(self._stream)

    async def _send(self, frame: Frame) -> None:
        async with self._sending:
            if self._stream is None or self.failed.is_set():
                raise SandboxError(self.problem or "the sandbox supervisor has not started yet")
            # Shielded: after half a frame the stream would be unreadable.
            with anyio.move_on_after(self.heartbeat.timeout_s, shield=True) as scope:
                try:
                    await self._stream.send(frame.to_bytes())
                except _STREAM_FAULTS:
                    await self.fail(_GONE)
            if scope.cancelled_caught:
                await self.fail(self._timeout_message())
        if self.problem:
            raise SandboxError(self.problem)

    async def serve(self) -> None:
        """Accept the supervisor, then read its frames until it is gone. Raises nothing that it causes."""
        frames = await self._accept()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._watch)
            await self._read(frames)
            tasks.cancel_scope.cancel()

    async def _accept(self) -> FrameDecoder:
        assert self._listener is not None  # noqa: S101 (opened before)
        while True:
            stream = await self._listener.accept()
            frames = FrameDecoder()
            try:
                with anyio.fail_after(self.heartbeat.hello_s):
                    found: list[Frame] = []
                    while not found:
                        found = list(frames.feed(await stream.receive(_RECEIVE_BYTES)))
                    hello = found[0]
            except (TimeoutError, SandboxError, *_STREAM_FAULTS):
                hello = None
            except BaseException:
                await anyio.aclose_forcefully(stream)
                raise
            if hello and hello.kind == HELLO and hmac.compare_digest(hello.payload, self.secret.encode()):
                break
            await anyio.aclose_forcefully(stream)
        assert isinstance(stream, UNIXSocketStream)  # noqa: S101 (of a Unix listener)
        self._stream = stream
        await self._close_socket()
        self._last_frame_at = anyio.current_time()
        self._ready.set()
        return frames

    async def _close_socket(self) -> None:
        if self._listener is not None:
            await self._listener.aclose()
            self._listener = None
        for name in (SOCKET_NAME, _SETTINGS_NAME):
            with contextlib.suppress(OSError):
                (self.folder / name).unlink()

    async def _read(self, frames: FrameDecoder) -> None:
        assert self._stream is not None  # noqa: S101 (accepted before)
        while True:
            try:
                data = await self._stream.receive(_RECEIVE_BYTES)
            except _STREAM_FAULTS:
                await self.fail(_GONE)
                return
            self._last_frame_at = anyio.current_time()
            try:
                for frame in frames.feed(data):
                    command = self._commands.get(frame.command)
                    if command is not None:
                        command.deliver(frame)
            except SandboxError as fault:
                await self.fail(str(fault))
                return

    async def _watch(self) -> None:
        while not self.failed.is_set():
            await anyio.sleep(self.heartbeat.interval_s)
            with contextlib.suppress(SandboxError):
                await self._send(Frame(PING))
            if anyio.current_time() - self._last_frame_at > self.heartbeat.timeout_s:
                await self.fail(self._timeout_message())

    def _timeout_message(self) -> str:
        return (
            f"the sandbox supervisor has not answered for {self.heartbeat.timeout_s:g} s: "
            "a command stopped it, or the machine is overloaded"
        )


@contextlib.asynccontextmanager
async def connect_supervisor(
    folder: Path,
    *,
    forwards: Sequence[PortForward] = (),
    lifetime_s: float = math.inf,
    heartbeat: Heartbeat | None = None,
    env: Mapping[str, str] | None = None,
    root: bool = False,
) -> AsyncIterator[SupervisorClient]:
    """Open the control socket of a sandbox in the new folder ``folder``, and serve its supervisor.

    The parents of the folder may be private. At the end of the block the supervisor is stopped, and all
    commands with it. ``env`` and ``root`` are those of ``SupervisorClient``.

    Raises:
        SandboxError: the folder cannot be used.
        ToolMissing: Node is missing.
    """
    node_runtime()
    supervisor = SupervisorClient(
        folder, tuple(forwards), min(lifetime_s, 1e6), heartbeat or Heartbeat(), env or {}, root
    )
    try:
        control_socket = await to_thread.run_sync(make_control_socket, folder)
        supervisor._listener = await SocketListener.from_socket(control_socket)  # noqa: SLF001
        await to_thread.run_sync(supervisor.write_settings)
    except OSError as fault:
        raise SandboxError(f"cannot create the control socket of a sandbox in {folder}: {fault}") from fault
    try:
        async with background_tasks() as tasks:
            tasks.start_soon(supervisor.serve)
            try:
                yield supervisor
            finally:
                await supervisor.stop()
    finally:
        with anyio.CancelScope(shield=True):
            await supervisor._close_socket()  # noqa: SLF001
            if supervisor._stream is not None:  # noqa: SLF001 (accepted after the stop)
                await anyio.aclose_forcefully(supervisor._stream)  # noqa: SLF001
            supervisor._pipes.close()  # noqa: SLF001


def make_control_socket(folder: Path) -> socket.socket:
    """Create ``folder`` and return its listening socket; any uid that reaches the folder may connect.

    Raises:
        OSError: the folder exists already, or cannot be created.
    """
    folder.mkdir()
    folder.chmod(0o755)
    for name in PROGRAM_FILES:
        shutil.copyfile(Path(__file__).with_name(name), folder / name)
        (folder / name).chmod(0o644)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    folder_fd = os.open(folder, os.O_PATH | os.O_DIRECTORY)
    try:
        # By descriptor, because the path of a socket may have only 107 bytes.
        listener.bind(f"/proc/self/fd/{folder_fd}/{SOCKET_NAME}")
        (folder / SOCKET_NAME).chmod(0o666)
        listener.listen()
        listener.setblocking(False)  # noqa: FBT003
    except BaseException:
        listener.close()
        raise
    finally:
        os.close(folder_fd)
    return listener
