"""The supervisor's client distrusts what it receives from a sandbox, and detects a silent supervisor."""

from __future__ import annotations

import contextlib
import json
import os
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import anyio
import pytest
from anyio.abc import SocketStream

from codetaste.errors import SandboxError
from codetaste.sandbox.base import CommandLimits, CommandResult, SandboxSpec
from codetaste.sandbox.local.sandbox import bubblewrap_provider
from codetaste.sandbox.supervisor.client import Heartbeat, SupervisorClient, connect_supervisor
from support.sandbox.containment import find_command_lines
from support.sandbox.providers import get_members, sh

pytestmark = pytest.mark.anyio
QUICK = Heartbeat(hello_s=5.0, interval_s=0.1, timeout_s=5.0)


def frame(kind: str, command: int, payload: bytes) -> bytes:
    return struct.pack(">I", len(payload)) + kind.encode() + struct.pack(">I", command) + payload


def read_secret(client: SupervisorClient) -> bytes:
    """Return the secret from the file that the supervisor reads."""
    text: str = json.loads((client.folder / "settings.json").read_text())["secret"]
    return text.encode()


async def connect(client: SupervisorClient, secret: bytes | None) -> SocketStream:
    """Connect to the client, and greet it, if with ``secret``."""
    folder = os.open(client.folder, os.O_PATH | os.O_DIRECTORY)
    try:
        # By descriptor, because the path of a socket may have only 107 bytes.
        stream = await anyio.connect_unix(f"/proc/self/fd/{folder}/supervisor.sock")
    finally:
        os.close(folder)
    if secret is not None:
        await stream.send(frame("H", 0, secret))
    return stream


@asynccontextmanager
async def impostor(
    folder: Path, heartbeat: Heartbeat = QUICK
) -> AsyncIterator[tuple[SupervisorClient, SocketStream]]:
    """A client connected to a supervisor that the test plays."""
    async with (
        connect_supervisor(folder / "control", heartbeat=heartbeat) as client,
        await connect(client, read_secret(client)) as stream,
    ):
        await client.wait_connected()
        yield client, stream


async def run_with_replies(folder: Path, *replies: bytes) -> tuple[str, str]:
    """Run a command with ``replies``; return the error of the run and the client's ``problem``."""
    error_text = ""
    async with impostor(folder) as (client, stream), anyio.create_task_group() as tasks:

        async def reply() -> None:
            await stream.receive()
            with contextlib.suppress(anyio.BrokenResourceError):
                for data in replies:
                    await stream.send(data)

        tasks.start_soon(reply)
        try:
            await client.run(["true"], limits=CommandLimits(wall_s=20))
        except SandboxError as error:
            error_text = str(error)
        return error_text, client.problem


async def test_only_one_connection_with_the_secret_is_accepted(tmp_path: Path) -> None:
    async with connect_supervisor(tmp_path / "control", heartbeat=QUICK) as client:
        for wrong in (b"", b"wrong", b"x" * 10_000):
            async with await connect(client, wrong) as stream:
                with pytest.raises((anyio.EndOfStream, anyio.BrokenResourceError)):
                    await stream.receive()
        async with await connect(client, read_secret(client)):
            await client.wait_connected()
            assert not await anyio.Path(client.folder / "supervisor.sock").exists()
    assert client.failed.is_set()


@pytest.mark.parametrize("greeted", [False, True])
async def test_connection_at_the_time_of_a_stop_is_closed(tmp_path: Path, greeted: bool) -> None:
    """Its end would be seen by no one else: the other side reads the end of the stream at once."""
    async with connect_supervisor(tmp_path / "control", heartbeat=QUICK) as client:
        stream = await connect(client, read_secret(client) if greeted else None)
        await anyio.wait_all_tasks_blocked()  # it is accepted, and waits for the rest of the greeting
        await client.stop()
    async with stream:
        with contextlib.suppress(anyio.EndOfStream, anyio.BrokenResourceError), anyio.fail_after(5):
            while True:
                await stream.receive()


async def test_supervisor_that_does_not_connect_is_reported(tmp_path: Path) -> None:
    async with connect_supervisor(tmp_path / "control", heartbeat=replace(QUICK, hello_s=0.2)) as client:
        with pytest.raises(SandboxError, match="did not start within"):
            await client.wait_connected()
        with pytest.raises(SandboxError, match="not started yet"):
            await client.run(["true"])


async def test_unusable_control_folder_is_reported(tmp_path: Path) -> None:
    (tmp_path / "control").touch()
    with pytest.raises(SandboxError, match="cannot create the control socket of a sandbox in"):
        async with connect_supervisor(tmp_path / "control"):
            pass


async def test_control_folder_may_have_a_long_path(tmp_path: Path) -> None:
    folder = tmp_path / ("long" * 40)
    folder.mkdir()
    async with connect_supervisor(folder / "control") as client:
        assert (client.folder / "supervisor.sock").is_socket()


@pytest.mark.parametrize(
    "frame_bytes",
    [
        struct.pack(">I", 2**31) + b"X" + struct.pack(">I", 1),
        frame("?", 1, b""),
        b"\0" * 9,
        frame("X", 1, b"{"),
        frame("X", 1, b"[1]"),
        frame("X", 1, b'{"code": "seven", "swept": true, "memory": false}'),
        frame("X", 1, b"[" * 100_000),
    ],
    ids=str,
)
async def test_supervisor_invalid_frame_fails_sandbox(tmp_path: Path, frame_bytes: bytes) -> None:
    error_text, problem = await run_with_replies(tmp_path, frame_bytes)
    assert error_text
    assert problem


@pytest.mark.parametrize("payload", [b"", b"x" * 20_000], ids=["empty", "large"])
async def test_supervisor_excess_command_report_fails_sandbox(tmp_path: Path, payload: bytes) -> None:
    # Sent at once, so that the client has read none of them when the last one arrives.
    error_text, problem = await run_with_replies(tmp_path, frame("N", 1, payload) * 10_000)
    assert error_text
    assert "more frames than requested" in problem


async def test_supervisor_report_for_unknown_command_is_ignored(tmp_path: Path) -> None:
    end = json.dumps({"code": 3, "swept": True, "memory": False}).encode()
    unknown_frames = (frame("X", 7, b"?"), frame("C", 2, b"x"), frame("H", 0, b"again"), frame("P", 0, b""))
    error_text, problem = await run_with_replies(tmp_path, *unknown_frames, frame("X", 1, end))
    assert (error_text, problem) == ("", "")


async def test_supervisor_unkillable_process_fails_sandbox(tmp_path: Path) -> None:
    end = json.dumps({"code": 0, "swept": False, "memory": False}).encode()
    error_text, problem = await run_with_replies(tmp_path, frame("X", 1, end))
    assert "could not be ended" in error_text
    assert problem


async def test_silent_supervisor_fails_sandbox(tmp_path: Path) -> None:
    error_text, problem = await run_with_replies(tmp_path)
    assert error_text == problem
    assert "has not answered for 5 s" in error_text


@pytest.mark.heavy
async def test_command_stopping_the_supervisor_fails_sandbox(tmp_path: Path, token: str) -> None:
    provider = replace(bubblewrap_provider(tmp_path), heartbeat=QUICK)
    async with provider.open(SandboxSpec("test")) as sandbox:
        with pytest.raises(SandboxError, match="has not answered"):
            await sh(sandbox, f"touch before; kill -STOP 2; sleep {token}")
        with anyio.fail_after(200):
            while find_command_lines(token):  # noqa: ASYNC110 (there is no event)
                await anyio.sleep(0.02)
        assert "has not answered" in str(sandbox.end)
        assert "testbed/before" in await get_members(sandbox, "/testbed")


async def test_supervisor_paused_within_timeout_does_not_fail_sandbox(tmp_path: Path) -> None:
    provider = replace(bubblewrap_provider(tmp_path), heartbeat=replace(QUICK, timeout_s=20.0))
    async with provider.open(SandboxSpec("test")) as sandbox:
        result: CommandResult = await sh(sandbox, "kill -STOP 2; (sleep 1; kill -CONT 2) & wait; echo well")
        assert result.stdout == b"well\n"
