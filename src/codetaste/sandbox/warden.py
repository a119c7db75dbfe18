"""Our end of the program inside of a box (``warden.mjs``): how it is started, and what it is told.

It connects out to a Unix socket in a folder that the box has mounted, proves itself with a secret, and then
runs commands as it is told, many at once, over that one connection; what they write comes through pipes in
the same folder. So a command costs no call of an engine.
It is as weak as a command is: one that stops or kills it loses the box, which is noticed and named here.
"""

from __future__ import annotations

import contextlib
import hmac
import json
import math
import secrets
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import anyio
from anyio import to_thread
from anyio.abc import SocketListener, UNIXSocketStream

from codetaste.errors import SandboxError
from codetaste.sandbox.beside import beside
from codetaste.sandbox.box import GID, TESTBED, UID, Mount, Way
from codetaste.sandbox.contained import Command, serve
from codetaste.sandbox.frames import HELLO, PING, STOP, Frame, Frames
from codetaste.sandbox.node import NODE_INSIDE, node_runtime
from codetaste.sandbox.pipes import Pipes
from codetaste.sandbox.sandbox import Limits
from codetaste.sandbox.warden_door import PROGRAMS, SOCKET, open_door

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
    from pathlib import Path

    from codetaste.sandbox.sandbox import Completed

_CONTROL_INSIDE = "/run/codetaste/control"
_WAYS_INSIDE = "/run/codetaste/way"
# The first process of the box: it adopts and reaps orphans, which Node cannot; it is out of every command's
# reach, and when it ends the kernel ends all others. What an image wants of Node is not for ours.
_FIRST = """
ulimit -c 0
trap "" HUP INT QUIT TERM
export CODETASTE_NODE_OPTIONS="$NODE_OPTIONS"
unset NODE_OPTIONS
"$@" & wait $!
"""
_NODE_OPTIONS = ("--no-warnings", "--max-old-space-size=256", "--v8-pool-size=1")
_GONE = "the box's own program is gone: something inside killed it, or all of the box was"
_RECEIVE_BYTES = 256 * 1024
_STREAM_FAULTS = (anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError, OSError)


@dataclass(frozen=True, slots=True)
class Liveness:
    """How soon it is noticed that the program inside does not answer, in seconds."""

    hello_s: float = 60.0
    """From the start of waiting until it has connected and proven itself."""
    every_s: float = 5.0
    within_s: float = 30.0
    """Without a word from inside."""


@dataclass(slots=True)
class Control:
    """The program inside of one box. It is lost for good once ``lost`` is set; ``problem`` says why."""

    folder: Path
    """Mounted into the box: the socket and the program."""
    ways: tuple[Way, ...]
    lifetime_s: float
    liveness: Liveness
    secret: str = field(default_factory=lambda: secrets.token_hex(16))
    lost: anyio.Event = field(default_factory=anyio.Event)
    problem: str = ""
    _listener: SocketListener | None = None
    _stream: UNIXSocketStream | None = None
    _sending: anyio.Lock = field(default_factory=anyio.Lock)
    _ready: anyio.Event = field(default_factory=anyio.Event)
    _heard: float = 0.0
    _commands: dict[int, Command] = field(default_factory=dict)
    _last: int = 0
    _pipes: Pipes = field(init=False)

    def __post_init__(self) -> None:
        self._pipes = Pipes(self.folder)

    @property
    def mounts(self) -> tuple[Mount, ...]:
        """What the box must have mounted, read-only."""
        ways = (Mount(way.socket.parent, f"{_WAYS_INSIDE}/{n}") for n, way in enumerate(self.ways))
        return (Mount(node_runtime().root, NODE_INSIDE), Mount(self.folder, _CONTROL_INSIDE), *ways)

    @property
    def argv(self) -> tuple[str, ...]:
        """The first process of the box (PID 1 of a process namespace): uid 1000, or root with SETUID, SETGID.

        It has the base of every command's environment as its own. Standard input, output and error may be
        anything; what it says on standard error is why it could not start.
        """
        order = {
            "socket": f"{_CONTROL_INSIDE}/{SOCKET}",
            "secret": self.secret,
            "ways": [(way.port, f"{_WAYS_INSIDE}/{n}/{way.socket.name}") for n, way in enumerate(self.ways)],
            "lifetime_s": self.lifetime_s,
            "uid": UID,
            "gid": GID,
        }
        node = (f"{NODE_INSIDE}/bin/node", *_NODE_OPTIONS, f"{_CONTROL_INSIDE}/{PROGRAMS[0]}")
        return ("/bin/sh", "-c", _FIRST, "codetaste", *node, json.dumps(order))

    async def connected(self) -> None:
        """Wait until the program inside is ready to run commands, and its ways out are open.

        Raises:
            SandboxError: it did not come in time, or is lost already.
        """
        with anyio.move_on_after(self.liveness.hello_s):
            await self._ready.wait()
        if self.problem:
            raise SandboxError(self.problem)
        if not self._ready.is_set():
            raise SandboxError(
                f"the box's own program did not start within {self.liveness.hello_s:g} s; "
                "the image needs /bin/sh and the C++ library (libstdc++6)"
            )

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
        """Run a command as ``Box.run`` promises.

        Raises:
            SandboxError: it could not be run, or the program inside is lost.
        """
        if not command or any("\0" in part for part in (*command, *(env or {}).values())):
            raise SandboxError(f"not a command: {list(command)!r}")
        self._last += 1
        running = Command(self._last, limits or Limits(), stdin, sink)
        self._commands[running.number] = running
        asked = {"argv": list(command), "env": dict(env or {}), "workdir": workdir or TESTBED}
        try:
            return await serve(running, asked, self._send, self.lose, self._pipes)
        finally:
            del self._commands[running.number]

    async def stop(self) -> None:
        """Have the program inside end, and with it the whole box. May be called again."""
        if self._stream is not None and not self.lost.is_set():
            with anyio.move_on_after(1, shield=True), contextlib.suppress(SandboxError):
                await self._send(Frame(STOP))
        await self.lose("the box was stopped")

    async def lose(self, problem: str) -> None:
        """Give the program inside up because of ``problem``; the first one stands."""
        if not self.lost.is_set():
            self.problem = problem
            self.lost.set()
            self._ready.set()
            for command in self._commands.values():
                command.take(None, problem)
        if self._stream is not None:
            with anyio.CancelScope(shield=True):
                await anyio.aclose_forcefully(self._stream)

    async def _send(self, frame: Frame) -> None:
        async with self._sending:
            if self._stream is None or self.lost.is_set():
                raise SandboxError(self.problem or "the box's own program has not started yet")
            # Shielded: half a frame would be the end of all understanding.
            with anyio.move_on_after(self.liveness.within_s, shield=True) as scope:
                try:
                    await self._stream.send(frame.packed())
                except _STREAM_FAULTS:
                    await self.lose(_GONE)
            if scope.cancelled_caught:
                await self.lose(self._silent())
        if self.problem:
            raise SandboxError(self.problem)

    async def serve(self) -> None:
        """Let the program in, then read what it says until it is gone. Never raises for what it does."""
        frames = await self._admitted()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._watch)
            await self._read(frames)
            tasks.cancel_scope.cancel()

    async def _admitted(self) -> Frames:
        assert self._listener is not None  # noqa: S101 (opened before)
        while True:
            stream = await self._listener.accept()
            frames = Frames()
            try:
                with anyio.fail_after(self.liveness.hello_s):
                    hello = await _first(stream, frames)
            except (TimeoutError, SandboxError, *_STREAM_FAULTS):
                hello = None
            if hello and hello.kind == HELLO and hmac.compare_digest(hello.payload, self.secret.encode()):
                break
            await anyio.aclose_forcefully(stream)
        assert isinstance(stream, UNIXSocketStream)  # noqa: S101 (of a Unix listener)
        self._stream = stream
        await self._close_door()
        self._heard = anyio.current_time()
        self._ready.set()
        return frames

    async def _close_door(self) -> None:
        if self._listener is not None:
            await self._listener.aclose()
            self._listener = None
        with contextlib.suppress(OSError):
            (self.folder / SOCKET).unlink()

    async def _read(self, frames: Frames) -> None:
        assert self._stream is not None  # noqa: S101 (let in before)
        while True:
            try:
                data = await self._stream.receive(_RECEIVE_BYTES)
            except _STREAM_FAULTS:
                await self.lose(_GONE)
                return
            self._heard = anyio.current_time()
            try:
                for frame in frames.feed(data):
                    command = self._commands.get(frame.command)
                    if command is not None:
                        command.take(frame)
            except SandboxError as fault:
                await self.lose(str(fault))
                return

    async def _watch(self) -> None:
        while not self.lost.is_set():
            await anyio.sleep(self.liveness.every_s)
            with contextlib.suppress(SandboxError):
                await self._send(Frame(PING))
            if anyio.current_time() - self._heard > self.liveness.within_s:
                await self.lose(self._silent())

    def _silent(self) -> str:
        return (
            f"the box's own program has not answered for {self.liveness.within_s:g} s: "
            "something inside stopped it, or the machine is overloaded"
        )


@contextlib.asynccontextmanager
async def control(
    folder: Path,
    *,
    ways: Sequence[Way] = (),
    lifetime_s: float = math.inf,
    liveness: Liveness | None = None,
) -> AsyncIterator[Control]:
    """Make a place in the new folder ``folder`` where a box's own program can connect to, and serve it.

    The folders above it may be private. At the end of the block the program is told to end, and with it all
    that runs inside.

    Raises:
        SandboxError: the folder cannot be used.
        ToolMissing: there is no Node.
    """
    node_runtime()
    held = Control(folder, tuple(ways), min(lifetime_s, 1e6), liveness or Liveness())
    try:
        held._listener = await SocketListener.from_socket(await to_thread.run_sync(open_door, folder))  # noqa: SLF001
    except OSError as fault:
        raise SandboxError(f"no box can be controlled from {folder}: {fault}") from fault
    try:
        async with beside() as tasks:
            tasks.start_soon(held.serve)
            try:
                yield held
            finally:
                await held.stop()
    finally:
        with anyio.CancelScope(shield=True):
            await held._close_door()  # noqa: SLF001
            held._pipes.close()  # noqa: SLF001


async def _first(stream: anyio.abc.SocketStream, frames: Frames) -> Frame:
    while True:
        for frame in frames.feed(await stream.receive(_RECEIVE_BYTES)):
            return frame
