"""A way leads from a port inside to a socket out here: at once, both ways, to the end, and nowhere else."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest
from anyio.abc import SocketStream

from codetaste.sandbox.base import CommandLimits, Egress, PortForward, Sandbox, SandboxProvider, SandboxSpec
from support.sandbox.providers import sh

pytestmark = pytest.mark.anyio
MIB = 1024 * 1024


@asynccontextmanager
async def way(
    folder: Path, serve: Callable[[SocketStream], Awaitable[None]], port: int = 8787
) -> AsyncIterator[PortForward]:
    """A server of ours, in a folder of its own, that uid 1000 may reach."""
    place = folder / f"way-{port}"
    place.mkdir(mode=0o755)
    socket = place / "server.sock"
    place_fd = os.open(place, os.O_PATH | os.O_DIRECTORY)
    try:
        # By descriptor, because the path of a socket may have only 107 bytes.
        listener = await anyio.create_unix_listener(f"/proc/self/fd/{place_fd}/{socket.name}", mode=0o666)
    finally:
        os.close(place_fd)
    async with listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, serve)
        yield PortForward(port, socket)
        tasks.cancel_scope.cancel()


async def python(box: Sandbox, code: str) -> list[str]:
    done = await box.run(["python3", "-c", code], limits=CommandLimits(wall_s=60))
    assert done.exit_code == 0, done.stderr
    return done.stdout.decode().splitlines()


async def test_every_piece_comes_when_it_is_sent(boxes: SandboxProvider, tmp_path: Path) -> None:
    async def in_turns(stream: SocketStream) -> None:
        async with stream:
            for number in range(20):
                await stream.send(b"%d\n" % number)
                assert await stream.receive() == b"%d\n" % number  # not before the last piece has arrived

    client = """
import socket
stream = socket.create_connection(("127.0.0.1", 8787))
while piece := stream.recv(100):
    print(piece.decode().strip())
    stream.sendall(piece)
"""
    async with way(tmp_path, in_turns) as one, boxes.open(SandboxSpec("test", egress=Egress((one,)))) as box:
        assert await python(box, client) == [str(number) for number in range(20)]


async def test_each_side_may_finish_before_the_other(boxes: SandboxProvider, tmp_path: Path) -> None:
    async def after_all(stream: SocketStream) -> None:
        total = 0
        async with stream:
            try:
                while True:
                    total += len(await stream.receive())
            except anyio.EndOfStream:
                await stream.send(b"%d" % total)

    client = """
import socket
stream = socket.create_connection(("127.0.0.1", 8787))
stream.sendall(bytes(5_000_000))
stream.shutdown(socket.SHUT_WR)
print(stream.recv(100).decode(), stream.recv(100))
"""
    async with way(tmp_path, after_all) as one, boxes.open(SandboxSpec("test", egress=Egress((one,)))) as box:
        assert await python(box, client) == ["5000000 b''"]


async def test_who_hangs_up_is_heard_and_who_does_not_read_is_waited_for(
    boxes: SandboxProvider, tmp_path: Path
) -> None:
    sent, over = 0, anyio.Event()

    async def endless(stream: SocketStream) -> None:
        nonlocal sent
        try:
            async with stream:
                while True:
                    await stream.send(bytes(65536))
                    sent += 65536
        except (anyio.BrokenResourceError, OSError):
            over.set()

    client = """
import socket, time
stream = socket.create_connection(("127.0.0.1", 8787))
stream.recv(10)
time.sleep(1)
"""
    async with way(tmp_path, endless) as one, boxes.open(SandboxSpec("test", egress=Egress((one,)))) as box:
        await python(box, client)
        with anyio.fail_after(200):
            await over.wait()
    assert sent < 40 * MIB


async def test_two_forwards_carry_many_streams_concurrently(boxes: SandboxProvider, tmp_path: Path) -> None:
    async def echo(stream: SocketStream) -> None:
        async with stream:
            async for piece in stream:
                await stream.send(piece)

    async def other(stream: SocketStream) -> None:
        async with stream:
            await stream.send(b"other")

    client = """
import socket
streams = [socket.create_connection(("127.0.0.1", 8787)) for _ in range(150)]
for number, stream in enumerate(streams):
    stream.sendall(b"%d" % number)
print(sum(int(stream.recv(100)) for stream in streams))
print(socket.create_connection(("127.0.0.1", 8080)).recv(100))
"""
    async with (
        way(tmp_path, echo) as one,
        way(tmp_path, other, 8080) as two,
        boxes.open(SandboxSpec("test", egress=Egress((one, two)))) as box,
    ):
        assert await python(box, client) == [str(sum(range(150))), "b'other'"]


async def test_sandbox_loopback_works_without_outside_network(box: Sandbox) -> None:
    client = """
import socket
listening = socket.create_server(("127.0.0.1", 0))
print(bool(socket.create_connection(listening.getsockname())), socket.gethostbyname("localhost"))
try:
    socket.create_connection(("127.0.0.1", 8787))
except OSError as error:
    print(type(error).__name__)
"""
    assert await python(box, client) == ["True 127.0.0.1", "ConnectionRefusedError"]


async def test_server_gone_ends_stream_but_not_sandbox(boxes: SandboxProvider, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    gone = PortForward(8787, tmp_path / "empty" / "server.sock")
    client = """
import socket
for _ in range(3):
    try:
        print(socket.create_connection(("127.0.0.1", 8787)).recv(10))
    except OSError as error:
        print(type(error).__name__)
"""
    async with boxes.open(SandboxSpec("test", egress=Egress((gone,)))) as box:
        said = await python(box, client)
        assert set(said) <= {"b''", "ConnectionResetError"}
        assert (await sh(box, "echo here")).stdout == b"here\n"
