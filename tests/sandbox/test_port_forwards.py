"""A port of the sandbox is forwarded to a socket of the host, without delay and in both directions."""

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
async def serve_forward(
    folder: Path, serve: Callable[[SocketStream], Awaitable[None]], port: int = 8787
) -> AsyncIterator[PortForward]:
    """Serve a socket that uid 1000 may use, in a folder of its own, and give its port forward."""
    folder_path = folder / f"forward-{port}"
    folder_path.mkdir(mode=0o755)
    socket = folder_path / "server.sock"
    folder_fd = os.open(folder_path, os.O_PATH | os.O_DIRECTORY)
    try:
        # By descriptor, because the path of a socket may have only 107 bytes.
        listener = await anyio.create_unix_listener(f"/proc/self/fd/{folder_fd}/{socket.name}", mode=0o666)
    finally:
        os.close(folder_fd)
    async with listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, serve)
        yield PortForward(port, socket)
        tasks.cancel_scope.cancel()


async def python(sandbox: Sandbox, code: str) -> list[str]:
    result = await sandbox.run(["python3", "-c", code], limits=CommandLimits(wall_s=60))
    assert result.exit_code == 0, result.stderr
    return result.stdout.decode().splitlines()


async def test_data_is_forwarded_without_delay(provider: SandboxProvider, tmp_path: Path) -> None:
    async def take_turns(stream: SocketStream) -> None:
        async with stream:
            for number in range(20):
                await stream.send(b"%d\n" % number)
                assert await stream.receive() == b"%d\n" % number  # sent after the previous line arrived

    client = """
import socket
stream = socket.create_connection(("127.0.0.1", 8787))
while piece := stream.recv(100):
    print(piece.decode().strip())
    stream.sendall(piece)
"""
    async with (
        serve_forward(tmp_path, take_turns) as one,
        provider.open(SandboxSpec("test", egress=Egress((one,)))) as sandbox,
    ):
        assert await python(sandbox, client) == [str(number) for number in range(20)]


async def test_half_closed_streams_are_forwarded(provider: SandboxProvider, tmp_path: Path) -> None:
    async def send_total(stream: SocketStream) -> None:
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
    async with (
        serve_forward(tmp_path, send_total) as one,
        provider.open(SandboxSpec("test", egress=Egress((one,)))) as sandbox,
    ):
        assert await python(sandbox, client) == ["5000000 b''"]


async def test_disconnect_is_forwarded_and_slow_reader_slows_the_server(
    provider: SandboxProvider, tmp_path: Path
) -> None:
    sent, disconnected = 0, anyio.Event()

    async def endless(stream: SocketStream) -> None:
        nonlocal sent
        try:
            async with stream:
                while True:
                    await stream.send(bytes(65536))
                    sent += 65536
        except (anyio.BrokenResourceError, OSError):
            disconnected.set()

    client = """
import socket, time
stream = socket.create_connection(("127.0.0.1", 8787))
stream.recv(10)
time.sleep(1)
"""
    async with (
        serve_forward(tmp_path, endless) as one,
        provider.open(SandboxSpec("test", egress=Egress((one,)))) as sandbox,
    ):
        await python(sandbox, client)
        with anyio.fail_after(200):
            await disconnected.wait()
    assert sent < 40 * MIB


async def test_two_forwards_carry_many_streams_concurrently(
    provider: SandboxProvider, tmp_path: Path
) -> None:
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
        serve_forward(tmp_path, echo) as one,
        serve_forward(tmp_path, other, 8080) as two,
        provider.open(SandboxSpec("test", egress=Egress((one, two)))) as sandbox,
    ):
        assert await python(sandbox, client) == [str(sum(range(150))), "b'other'"]


async def test_sandbox_loopback_works_without_outside_network(sandbox: Sandbox) -> None:
    client = """
import socket
listening = socket.create_server(("127.0.0.1", 0))
print(bool(socket.create_connection(listening.getsockname())), socket.gethostbyname("localhost"))
try:
    socket.create_connection(("127.0.0.1", 8787))
except OSError as error:
    print(type(error).__name__)
"""
    assert await python(sandbox, client) == ["True 127.0.0.1", "ConnectionRefusedError"]


async def test_server_gone_ends_stream_but_not_sandbox(provider: SandboxProvider, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    missing_server = PortForward(8787, tmp_path / "empty" / "server.sock")
    client = """
import socket
for _ in range(3):
    try:
        print(socket.create_connection(("127.0.0.1", 8787)).recv(10))
    except OSError as error:
        print(type(error).__name__)
"""
    async with provider.open(SandboxSpec("test", egress=Egress((missing_server,)))) as sandbox:
        lines = await python(sandbox, client)
        assert set(lines) <= {"b''", "ConnectionResetError"}
        assert (await sh(sandbox, "echo here")).stdout == b"here\n"
