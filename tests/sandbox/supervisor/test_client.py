"""Our end of a box's own program believes nothing that comes from inside, and notices when nothing comes."""

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
from support.sandbox.containment import processes_saying
from support.sandbox.providers import fetched, sh

pytestmark = pytest.mark.anyio
QUICK = Heartbeat(hello_s=5.0, interval_s=0.1, timeout_s=1.0)


def frame(kind: str, command: int, payload: bytes) -> bytes:
    return struct.pack(">I", len(payload)) + kind.encode() + struct.pack(">I", command) + payload


def secret(held: SupervisorClient) -> bytes:
    """The secret, from where the program inside has it: its command line."""
    text: str = json.loads(held.argv[-1])["secret"]
    return text.encode()


async def connect(held: SupervisorClient, said: bytes) -> SocketStream:
    folder = os.open(held.folder, os.O_PATH | os.O_DIRECTORY)
    try:
        # By descriptor, because the path of a socket may have only 107 bytes.
        stream = await anyio.connect_unix(f"/proc/self/fd/{folder}/supervisor.sock")
    finally:
        os.close(folder)
    await stream.send(frame("H", 0, said))
    return stream


@asynccontextmanager
async def impostor(
    folder: Path, liveness: Heartbeat = QUICK
) -> AsyncIterator[tuple[SupervisorClient, SocketStream]]:
    """A box's own program that is ours to play."""
    async with (
        connect_supervisor(folder / "control", heartbeat=liveness) as held,
        await connect(held, secret(held)) as stream,
    ):
        await held.wait_connected()
        yield held, stream


async def answered(folder: Path, *answers: bytes) -> tuple[str, str]:
    """Run a command that is answered so; return what the run raised, and why all was given up."""
    said = ""
    async with impostor(folder) as (held, stream), anyio.create_task_group() as tasks:

        async def answer() -> None:
            await stream.receive()
            with contextlib.suppress(anyio.BrokenResourceError):
                for one in answers:
                    await stream.send(one)

        tasks.start_soon(answer)
        try:
            await held.run(["true"], limits=CommandLimits(wall_s=20))
        except SandboxError as error:
            said = str(error)
        return said, held.problem


async def test_only_who_knows_the_secret_is_let_in_and_only_once(tmp_path: Path) -> None:
    async with connect_supervisor(tmp_path / "control", heartbeat=QUICK) as held:
        for wrong in (b"", b"wrong", b"x" * 10_000):
            async with await connect(held, wrong) as stream:
                with pytest.raises((anyio.EndOfStream, anyio.BrokenResourceError)):
                    await stream.receive()
        async with await connect(held, secret(held)):
            await held.wait_connected()
            assert not await anyio.Path(held.folder / "supervisor.sock").exists()
    assert held.failed.is_set()


async def test_a_program_that_does_not_come_is_not_waited_for_for_ever(tmp_path: Path) -> None:
    async with connect_supervisor(tmp_path / "control", heartbeat=replace(QUICK, hello_s=0.2)) as held:
        with pytest.raises(SandboxError, match="did not start within"):
            await held.wait_connected()
        with pytest.raises(SandboxError, match="not started yet"):
            await held.run(["true"])


async def test_a_place_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    (tmp_path / "control").touch()
    with pytest.raises(SandboxError, match="cannot create the control socket of a sandbox in"):
        async with connect_supervisor(tmp_path / "control"):
            pass


async def test_a_folder_with_a_long_name_is_no_hindrance(tmp_path: Path) -> None:
    folder = tmp_path / ("long" * 40)
    folder.mkdir()
    async with connect_supervisor(folder / "control") as held:
        assert (held.folder / "supervisor.sock").is_socket()


@pytest.mark.parametrize(
    "nonsense",
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
async def test_supervisor_invalid_frame_fails_sandbox(tmp_path: Path, nonsense: bytes) -> None:
    said, problem = await answered(tmp_path, nonsense)
    assert said
    assert problem


@pytest.mark.parametrize("payload", [b"", b"x" * 20_000], ids=["of nothing", "of much"])
async def test_supervisor_excess_command_report_fails_sandbox(tmp_path: Path, payload: bytes) -> None:
    # In one piece, so that nobody has looked at the first one when the last one comes.
    said, problem = await answered(tmp_path, frame("N", 1, payload) * 10_000)
    assert said
    assert "more frames than requested" in problem


async def test_supervisor_report_for_unknown_command_is_ignored(tmp_path: Path) -> None:
    end = json.dumps({"code": 3, "swept": True, "memory": False}).encode()
    strange = (frame("X", 7, b"?"), frame("C", 2, b"x"), frame("H", 0, b"again"), frame("P", 0, b""))
    said, problem = await answered(tmp_path, *strange, frame("X", 1, end))
    assert (said, problem) == ("", "")


async def test_supervisor_unkillable_process_fails_sandbox(tmp_path: Path) -> None:
    end = json.dumps({"code": 0, "swept": False, "memory": False}).encode()
    said, problem = await answered(tmp_path, frame("X", 1, end))
    assert "could not be ended" in said
    assert problem


async def test_a_program_that_says_nothing_any_more_is_given_up(tmp_path: Path) -> None:
    said, problem = await answered(tmp_path)
    assert said == problem
    assert "has not answered for 1 s" in said


async def test_command_stopping_the_supervisor_fails_sandbox(tmp_path: Path, token: str) -> None:
    boxes = replace(bubblewrap_provider(tmp_path), heartbeat=QUICK)
    async with boxes.open(SandboxSpec("test")) as box:
        with pytest.raises(SandboxError, match="has not answered"):
            await sh(box, f"touch before; kill -STOP 2; sleep {token}")
        with anyio.fail_after(200):
            while processes_saying(token):  # noqa: ASYNC110 (a process says nothing)
                await anyio.sleep(0.02)
        assert "has not answered" in str(box.end)
        assert "testbed/before" in await fetched(box, "/testbed")


async def test_a_slow_machine_is_no_reason_to_give_up(tmp_path: Path) -> None:
    boxes = replace(bubblewrap_provider(tmp_path), heartbeat=replace(QUICK, timeout_s=20.0))
    async with boxes.open(SandboxSpec("test")) as box:
        done: CommandResult = await sh(box, "kill -STOP 2; (sleep 1; kill -CONT 2) & wait; echo well")
        assert done.stdout == b"well\n"
