"""Archives are copied into and out of a sandbox, safely whatever a command does to the files."""

from __future__ import annotations

import contextlib
import io
import os
import tarfile
from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import pytest

from codetaste.errors import SandboxError
from codetaste.sandbox.base import Sandbox
from support.sandbox.providers import get_members, make_archive, sh

pytestmark = pytest.mark.anyio
LONG = "a" * 120 + "/" + "b" * 120
ODD = ("new\nline", "tab\tand \\ and 'quotes'", "-rf", "\udcff\udcfe", "ümlaut", " ")


async def test_put_files_are_read_back_unchanged(sandbox: Sandbox) -> None:
    files = {f"testbed/{name}": os.urandom(5000) for name in (*ODD, f"{LONG}/file")}
    await sandbox.put(
        make_archive(
            ("testbed", None),
            ("testbed/empty", None),
            *((f"testbed/{folder}", None) for folder in (LONG.partition("/")[0], LONG)),
            *files.items(),
            ("testbed/dangling", "/nowhere/at all"),
            ("testbed/up", "../output"),
        )
    )
    found = await get_members(sandbox, "/testbed")
    assert {name: content for name, (member, content) in found.items() if member.isreg()} == files
    assert found["testbed/empty"][0].isdir()
    assert found["testbed/dangling"][0].linkname == "/nowhere/at all"
    assert found["testbed/up"][0].linkname == "../output"
    assert {(member.uid, member.gid) for member, _ in found.values()} == {(1000, 1000)}
    result = await sh(sandbox, "cat -- '-rf' | wc -c; touch empty/new up/new && ls /output")
    assert result.stdout.decode().split() == ["5000", "new"]


async def test_copied_files_preserve_modes_and_times_without_setuid(sandbox: Sandbox) -> None:
    for mode in (0o755, 0o600, 0o444, 0o4755):
        await sandbox.put(make_archive((f"testbed/{mode}", b"x"), mode=mode))
    found = await get_members(sandbox, "/testbed")
    modes = {
        name.partition("/")[2]: member.mode & 0o1777 for name, (member, _) in found.items() if member.isreg()
    }
    assert modes == {"493": 0o755, "384": 0o600, "292": 0o444, "2541": 0o755}
    assert (await sh(sandbox, "stat -c %Y 493")).stdout == b"1600000000\n"


async def test_hard_link_in_an_archive_is_preserved(sandbox: Sandbox) -> None:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        first = tarfile.TarInfo("testbed/first")
        first.size, first.uid, first.gid = 5, 1000, 1000
        tar.addfile(first, io.BytesIO(b"hello"))
        second = tarfile.TarInfo("testbed/deep/second")
        second.type, second.linkname, second.uid, second.gid = tarfile.LNKTYPE, "testbed/first", 1000, 1000
        deep = tarfile.TarInfo("testbed/deep")
        deep.type, deep.mode, deep.uid, deep.gid = tarfile.DIRTYPE, 0o755, 1000, 1000
        tar.addfile(deep)
        tar.addfile(second)
    await sandbox.put(buffer.getvalue())
    result = await sh(sandbox, "[ first -ef deep/second ] && cat deep/second")
    assert result.stdout == b"hello"


async def test_one_archive_stream_can_fill_all_folders(sandbox: Sandbox) -> None:
    whole = make_archive(
        ("testbed/a", b"1"),
        ("task_description/b", b"2"),
        ("output/c", b"3"),
        ("home/agent/d", b"4" * 300_000),
    )

    async def pieces() -> AsyncIterator[bytes]:
        for start in range(0, len(whole), 777):
            yield whole[start : start + 777]

    await sandbox.put(pieces())
    result = await sh(sandbox, "cat /testbed/a /task_description/b /output/c; head -c 3 ~/d")
    assert result.stdout == b"123444"
    assert set(await get_members(sandbox, "/home/agent")) == {"agent", "agent/d"}


async def test_put_replaces_existing_files(sandbox: Sandbox) -> None:
    await sh(sandbox, "echo old >file; chmod 444 file; ln -s /etc/passwd link; mkdir empty")
    await sandbox.put(
        make_archive(("testbed/file", b"new"), ("testbed/link", b"new"), ("testbed/empty", b"new"))
    )
    assert (await sh(sandbox, "cat file link empty")).stdout == b"newnewnew"


async def test_members_outside_the_folders_are_refused(sandbox: Sandbox) -> None:
    for name in ("etc/passwd", "testbed/../etc/x", "../x", "testbedx/y"):
        with pytest.raises(SandboxError):
            await sandbox.put(make_archive((name, b"x")))
    with pytest.raises(SandboxError):
        await sandbox.put(make_archive(("testbed/a", b"x" * 5000))[:3000])


async def test_put_does_not_follow_links_made_by_a_command(sandbox: Sandbox, tmp_path: Path) -> None:
    outside = anyio.Path(tmp_path)
    await outside.chmod(0o777)
    await sh(sandbox, f"ln -s {tmp_path} /output/plans; ln -s /testbed /output/other")
    for name in ("output/plans/plan.md", "output/other/plan.md"):
        # In a container such a link leads no further than its root.
        with (
            contextlib.suppress(SandboxError) if sandbox.kind != "bubblewrap" else pytest.raises(SandboxError)
        ):
            await sandbox.put(make_archive((name, b"x")))
    assert not await (outside / "plan.md").exists()


async def test_get_single_file_or_folder_and_report_missing(sandbox: Sandbox) -> None:
    await sh(sandbox, "mkdir -p a/b; echo text >a/b/c; ln -s b a/link")
    assert (await get_members(sandbox, "/testbed/a/b/c"))["c"][1] == b"text\n"
    assert set(await get_members(sandbox, "/testbed/a")) == {"a", "a/b", "a/b/c", "a/link"}
    found = await get_members(sandbox, "/testbed/a/link")
    assert found["link"][0].issym()
    for path in ("/testbed/nothing", "/testbed/a/../../etc"):
        with pytest.raises(SandboxError):
            await get_members(sandbox, path)


async def test_locked_folders_and_special_files_do_not_prevent_reading(sandbox: Sandbox) -> None:
    await sh(
        sandbox,
        "mkdir -p locked/in; echo deep >locked/in/file; chmod 000 locked/in/file locked/in locked;"
        "mkfifo pipe; echo last >z;"
        "python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(\"sock\")'",
    )
    found = await get_members(sandbox, "/testbed")
    assert found["testbed/locked/in/file"][1] == b"deep\n"
    assert found["testbed/z"][1] == b"last\n"
    assert found["testbed/locked"][0].mode & 0o777 == 0


async def test_read_can_be_cancelled_and_works_after_stop(sandbox: Sandbox) -> None:
    await sh(sandbox, "head -c 30000000 /dev/urandom >large; head -c 7 large >small")
    async with sandbox.get("/testbed") as chunks:
        assert len(await anext(aiter(chunks))) > 0
    await sandbox.stop()
    found = await get_members(sandbox, "/testbed")
    assert len(found["testbed/large"][1]) == 30_000_000
    assert found["testbed/small"][1] == found["testbed/large"][1][:7]


async def test_files_that_change_while_read_make_no_broken_archive(sandbox: Sandbox) -> None:
    await sh(sandbox, "head -c 3000000 /dev/zero >changing")
    result = False

    async def change() -> None:
        script = "while :; do head -c $((RANDOM * 100)) /dev/zero >changing; rm -f gone; echo x >gone; done"
        await sandbox.run(["bash", "-c", script])

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(change)
        for _ in range(10):
            try:
                found = await get_members(sandbox, "/testbed")
            except SandboxError as error:
                assert sandbox.kind != "bubblewrap", "only an engine cannot read changing files"
                assert "stop the sandbox first" in str(error)  # noqa: PT017
                continue
            result = "testbed/changing" in found
        tasks.cancel_scope.cancel()
    assert result or sandbox.kind != "bubblewrap"
