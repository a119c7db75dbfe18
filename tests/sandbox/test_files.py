"""Files go into a box and out of it as archives, and whatever is done inside leads neither of them astray."""

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
from support.sandbox.providers import archive, fetched, sh

pytestmark = pytest.mark.anyio
LONG = "a" * 120 + "/" + "b" * 120
ODD = ("new\nline", "tab\tand \\ and 'quotes'", "-rf", "\udcff\udcfe", "ümlaut", " ")


async def test_what_is_put_in_comes_out_again(box: Sandbox) -> None:
    files = {f"testbed/{name}": os.urandom(5000) for name in (*ODD, f"{LONG}/file")}
    await box.put(
        archive(
            ("testbed", None),
            ("testbed/empty", None),
            *((f"testbed/{folder}", None) for folder in (LONG.partition("/")[0], LONG)),
            *files.items(),
            ("testbed/dangling", "/nowhere/at all"),
            ("testbed/up", "../output"),
        )
    )
    found = await fetched(box, "/testbed")
    assert {name: content for name, (one, content) in found.items() if one.isreg()} == files
    assert found["testbed/empty"][0].isdir()
    assert found["testbed/dangling"][0].linkname == "/nowhere/at all"
    assert found["testbed/up"][0].linkname == "../output"
    assert {(one.uid, one.gid) for one, _ in found.values()} == {(1000, 1000)}
    done = await sh(box, "cat -- '-rf' | wc -c; touch empty/new up/new && ls /output")
    assert done.stdout.decode().split() == ["5000", "new"]


async def test_copied_files_preserve_modes_and_times_without_setuid(box: Sandbox) -> None:
    for mode in (0o755, 0o600, 0o444, 0o4755):
        await box.put(archive((f"testbed/{mode}", b"x"), mode=mode))
    found = await fetched(box, "/testbed")
    modes = {name.partition("/")[2]: one.mode & 0o1777 for name, (one, _) in found.items() if one.isreg()}
    assert modes == {"493": 0o755, "384": 0o600, "292": 0o444, "2541": 0o755}
    assert (await sh(box, "stat -c %Y 493")).stdout == b"1600000000\n"


async def test_a_link_to_a_file_of_the_same_archive_is_one_file_with_it(box: Sandbox) -> None:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as tar:
        first = tarfile.TarInfo("testbed/first")
        first.size, first.uid, first.gid = 5, 1000, 1000
        tar.addfile(first, io.BytesIO(b"hello"))
        second = tarfile.TarInfo("testbed/deep/second")
        second.type, second.linkname, second.uid, second.gid = tarfile.LNKTYPE, "testbed/first", 1000, 1000
        deep = tarfile.TarInfo("testbed/deep")
        deep.type, deep.mode, deep.uid, deep.gid = tarfile.DIRTYPE, 0o755, 1000, 1000
        tar.addfile(deep)
        tar.addfile(second)
    await box.put(made.getvalue())
    done = await sh(box, "[ first -ef deep/second ] && cat deep/second")
    assert done.stdout == b"hello"


async def test_all_places_can_be_filled_by_one_archive_piece_by_piece(box: Sandbox) -> None:
    whole = archive(
        ("testbed/a", b"1"),
        ("task_description/b", b"2"),
        ("output/c", b"3"),
        ("home/agent/d", b"4" * 300_000),
    )

    async def pieces() -> AsyncIterator[bytes]:
        for start in range(0, len(whole), 777):
            yield whole[start : start + 777]

    await box.put(pieces())
    done = await sh(box, "cat /testbed/a /task_description/b /output/c; head -c 3 ~/d")
    assert done.stdout == b"123444"
    assert set(await fetched(box, "/home/agent")) == {"agent", "agent/d"}


async def test_a_file_is_replaced_by_another(box: Sandbox) -> None:
    await sh(box, "echo old >file; chmod 444 file; ln -s /etc/passwd link; mkdir empty")
    await box.put(archive(("testbed/file", b"new"), ("testbed/link", b"new"), ("testbed/empty", b"new")))
    assert (await sh(box, "cat file link empty")).stdout == b"newnewnew"


async def test_members_elsewhere_are_refused(box: Sandbox) -> None:
    for name in ("etc/passwd", "testbed/../etc/x", "../x", "testbedx/y"):
        with pytest.raises(SandboxError):
            await box.put(archive((name, b"x")))
    with pytest.raises(SandboxError):
        await box.put(archive(("testbed/a", b"x" * 5000))[:3000])


async def test_nothing_is_put_through_a_link_that_a_command_has_made(box: Sandbox, tmp_path: Path) -> None:
    outside = anyio.Path(tmp_path)
    await outside.chmod(0o777)
    await sh(box, f"ln -s {tmp_path} /output/plans; ln -s /testbed /output/other")
    for name in ("output/plans/plan.md", "output/other/plan.md"):
        # A container's own root is as far as such a link can lead.
        with contextlib.suppress(SandboxError) if box.kind != "bubblewrap" else pytest.raises(SandboxError):
            await box.put(archive((name, b"x")))
    assert not await (outside / "plan.md").exists()


async def test_get_single_file_or_folder_and_report_missing(box: Sandbox) -> None:
    await sh(box, "mkdir -p a/b; echo text >a/b/c; ln -s b a/link")
    assert (await fetched(box, "/testbed/a/b/c"))["c"][1] == b"text\n"
    assert set(await fetched(box, "/testbed/a")) == {"a", "a/b", "a/b/c", "a/link"}
    found = await fetched(box, "/testbed/a/link")
    assert found["link"][0].issym()
    for path in ("/testbed/nothing", "/testbed/a/../../etc"):
        with pytest.raises(SandboxError):
            await fetched(box, path)


async def test_what_is_locked_or_strange_is_read_all_the_same(box: Sandbox) -> None:
    await sh(
        box,
        "mkdir -p locked/in; echo deep >locked/in/file; chmod 000 locked/in/file locked/in locked;"
        "mkfifo pipe; echo last >z;"
        "python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(\"sock\")'",
    )
    found = await fetched(box, "/testbed")
    assert found["testbed/locked/in/file"][1] == b"deep\n"
    assert found["testbed/z"][1] == b"last\n"
    assert found["testbed/locked"][0].mode & 0o777 == 0


async def test_read_can_be_cancelled_and_works_after_stop(box: Sandbox) -> None:
    await sh(box, "head -c 30000000 /dev/urandom >large; head -c 7 large >small")
    async with box.get("/testbed") as chunks:
        assert len(await anext(aiter(chunks))) > 0
    await box.stop()
    found = await fetched(box, "/testbed")
    assert len(found["testbed/large"][1]) == 30_000_000
    assert found["testbed/small"][1] == found["testbed/large"][1][:7]


async def test_files_that_change_while_they_are_read_make_no_broken_archive(box: Sandbox) -> None:
    await sh(box, "head -c 3000000 /dev/zero >changing")
    done = False

    async def change() -> None:
        script = "while :; do head -c $((RANDOM * 100)) /dev/zero >changing; rm -f gone; echo x >gone; done"
        await box.run(["bash", "-c", script])

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(change)
        for _ in range(10):
            try:
                found = await fetched(box, "/testbed")
            except SandboxError as error:
                assert box.kind != "bubblewrap", "an engine cannot read what changes"
                assert "stop the sandbox first" in str(error)  # noqa: PT017
                continue
            done = "testbed/changing" in found
        tasks.cancel_scope.cancel()
    assert done or box.kind != "bubblewrap"
