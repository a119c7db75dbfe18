"""Hostile patches: R stays unchanged, and nothing is written outside the scratch folder."""

from __future__ import annotations

import base64
import os
import zlib
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest

from codetaste.errors import PatchDoesNotApply, PatchError
from codetaste.source.patch.apply import applied_patch
from support.source.random_trees import FILE, LINK, Tree
from support.source.tree_contents import read_overlay, snapshot, write_tree

pytestmark = pytest.mark.anyio

BASE: Tree = {
    b"a.py": (FILE, b"a\n"),
    b"sub/b.py": (FILE, b"b\n"),
    b"out": (LINK, b"../outside"),
    b"there": (LINK, b"sub"),
    b".gitattributes": (FILE, b"* filter=evil diff=evil merge=evil text eol=crlf\n"),
}


@pytest.fixture
def base(tmp_path: Path) -> Iterator[Path]:
    """R, beside a folder that a hostile patch would reach; in the end both are unchanged."""
    outside = write_tree(tmp_path / "outside", {b"secret": (FILE, b"secret\n")})
    base = write_tree(tmp_path / "base", BASE)
    before = snapshot(base), snapshot(outside), snapshot(Path(__file__).parent)
    yield base
    assert (snapshot(base), snapshot(outside), snapshot(Path(__file__).parent)) == before
    assert {path.name for path in tmp_path.iterdir()} == {"base", "outside", "scratch"}


@pytest.fixture
def scratch(tmp_path: Path) -> Path:
    folder = tmp_path / "scratch"
    folder.mkdir()
    return folder


def names_in(scratch: Path) -> list[str]:
    return [path.name for path in scratch.iterdir()]


async def result_of(base: Path, content: bytes, scratch: Path) -> Tree:
    try:
        async with applied_patch(base, content, scratch) as result:
            return read_overlay(result.tree)
    finally:
        assert names_in(scratch) == []


def new(path: bytes, content: bytes = b"x", mode: bytes = b"100644") -> bytes:
    return (
        b"diff --git a/%b b/%b\nnew file mode %b\n--- /dev/null\n+++ b/%b\n@@ -0,0 +1 @@\n+%b\n"
        % (path, path, mode, path, content)
    ) + (b"\\ No newline at end of file\n" if mode == b"120000" else b"")


def delete(path: bytes, content: bytes, mode: bytes = b"100644") -> bytes:
    return b"diff --git a/%b b/%b\ndeleted file mode %b\n--- a/%b\n+++ /dev/null\n@@ -1 +0,0 @@\n-%b\n" % (
        *(path, path, mode, path, content),
    ) + (b"\\ No newline at end of file\n" if mode == b"120000" else b"")


def edit(path: bytes, old: bytes = b"a", to: bytes = b"z") -> bytes:
    return b"--- a/%b\n+++ b/%b\n@@ -1 +1 @@\n-%b\n+%b\n" % (path, path, old, to)


def rename(old: bytes, to: bytes) -> bytes:
    return b"diff --git a/%b b/%b\nsimilarity index 100%%\nrename from %b\nrename to %b\n" % (
        old,
        to,
        old,
        to,
    )


@pytest.mark.parametrize(
    "content",
    [
        new(b"../outside/evil"),
        new(b"sub/../../outside/evil"),
        new(b"/tmp/evil"),
        new(b"./evil"),
        new(b"sub//evil"),
        new(b".git/hooks/post-checkout"),
        new(b"sub/.GIT/config"),
        new(b"sub/git~1/config"),
        new(b".g\xe2\x80\x8cit/config"),
        new(b"x" * 300),
        new(b"x/" * 2000 + b"x"),
        new(b"x/" * 1020 + b"x"),
        b'diff --git "a/x\\000y" "b/x\\000y"\nnew file mode 100644\n',
        edit(b"../outside/secret", b"secret"),
        edit(b"out/secret", b"secret"),
        edit(b"there/b.py", b"b"),
        new(b"out/evil"),
        new(b"there/evil"),
        new(b"a.py/evil"),
        new(b"sub"),
        new(b"out"),
        new(b"link", b"../outside", b"120000") + new(b"link/evil"),
        new(b"z/link", b"/", b"120000") + new(b"z/link/tmp/evil"),
        rename(b"out", b"way") + new(b"way/evil"),
        rename(b"../outside/secret", b"mine"),
        rename(b"a.py", b"../outside/mine"),
        rename(b"out/secret", b"mine"),
        new(b"pipe", b"x", b"010644"),
        new(b"device", b"x", b"020644"),
        new(b"folder", b"x", b"040000"),
        new(b"root", b"x", b"104755"),
        edit(b"a.py") + edit(b"a.py"),
        edit(b"sub"),
        delete(b"a.py", b"b"),
        b"diff --git a/out b/out\nold mode 120000\nnew mode 100644\n",
    ],
)
async def test_hostile_patch_is_refused(base: Path, scratch: Path, content: bytes) -> None:
    with pytest.raises((PatchDoesNotApply, PatchError)) as caught:
        await result_of(base, content, scratch)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 1000


async def test_link_may_become_a_folder_inside_the_tree(base: Path, scratch: Path) -> None:
    content = delete(b"out", b"../outside", b"120000") + new(b"out/secret", b"mine")
    tree = await result_of(base, content, scratch)
    assert tree == {**{k: v for k, v in BASE.items() if k != b"out"}, b"out/secret": (FILE, b"mine\n")}


async def test_links_out_of_the_tree_are_only_text(base: Path, scratch: Path) -> None:
    content = new(b"passwd", b"/etc/passwd", b"120000") + new(b"up", b"../../..", b"120000")
    tree = await result_of(base, content, scratch)
    assert tree[b"passwd"] == (LINK, b"/etc/passwd")
    assert tree[b"up"] == (LINK, b"../../..")


async def test_names_that_differ_only_in_case_are_two_files(base: Path, scratch: Path) -> None:
    tree = await result_of(base, new(b"A.py") + new(b"SUB/b.py"), scratch)
    assert tree == BASE | {b"A.py": (FILE, b"x\n"), b"SUB/b.py": (FILE, b"x\n")}


async def test_attributes_and_settings_of_a_patch_have_no_effect(
    base: Path, scratch: Path, tmp_path: Path
) -> None:
    config = b'[filter "evil"]\n\tclean = touch %b/evil\n\tsmudge = touch %b/evil\n' % (
        *(os.fsencode(tmp_path), os.fsencode(tmp_path)),
    )
    content = new(b"x.py", b"* ident") + new(
        b"sub/.gitattributes", b"* filter=evil working-tree-encoding=UTF-16"
    )
    content += new(b"gitconfig", config.replace(b"\n", b" ")) + edit(b"a.py")
    tree = await result_of(base, content, scratch)
    assert tree[b"a.py"] == (FILE, b"z\n")


def varint(value: int) -> bytes:
    made = b""
    while value > 0x7F:
        made, value = made + bytes([value & 0x7F | 0x80]), value >> 7
    return made + bytes([value])


def binary_patch(kind: bytes, size: int, packed: bytes) -> bytes:
    lines = b""
    for at in range(0, len(packed), 52):
        part = packed[at : at + 52]
        letter = len(part) + (64 if len(part) <= 26 else 70)
        lines += bytes([letter]) + base64.b85encode(part, pad=True) + b"\n"
    names = b"%b..%b" % (b"0" * 40, b"1" * 40)
    return b"diff --git a/big b/big\nnew file mode 100644\nindex %b\nGIT binary patch\n%b %d\n%b\n" % (
        *(names, kind, size, lines),
    )


async def test_contents_of_gigabytes_are_refused_before_unpacking(base: Path, scratch: Path) -> None:
    large = 5_000_000_000
    with pytest.raises(PatchDoesNotApply, match="more than 1,073,741,824 bytes"):
        await result_of(base, binary_patch(b"literal", large, zlib.compress(b"x" * 1000)), scratch)
    delta = varint(0) + varint(large) + b"\x01x" * 500
    with pytest.raises(PatchDoesNotApply, match="more than 1,073,741,824 bytes"):
        await result_of(base, binary_patch(b"delta", len(delta), zlib.compress(delta)), scratch)


async def test_many_copies_of_a_large_file_are_refused_before_copying(base: Path, scratch: Path) -> None:
    one = b"diff --git a/a.py b/x%d\nsimilarity index 100%%\ncopy from a.py\ncopy to x%d\n"
    first = new(b"large", b"x" * 200_000)
    rest = b"".join(one.replace(b"a.py", b"large") % (at, at) for at in range(6000))
    with pytest.raises(PatchDoesNotApply, match="more than 1,073,741,824 bytes"):
        await result_of(base, first + rest, scratch)


async def test_too_many_files_are_refused_early(base: Path, scratch: Path) -> None:
    content = b"".join(b"diff --git a/%d b/%d\nnew file mode 100644\n" % (at, at) for at in range(300_000))
    with anyio.fail_after(200), pytest.raises(PatchError, match="200,000 files"):
        await result_of(base, content, scratch)
