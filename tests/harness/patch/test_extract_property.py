"""Whatever an agent does to a tree, its patch makes of R the tree that it left: git is the judge."""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
from pathlib import Path

import anyio
import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, given, settings

from codetaste.harness.patch.extract import ExtractedPatch, ExtractionLimits, extract_patch
from support.harness.folder_sandbox import box_with, testbed_of
from support.harness.testbed_tree import WorkTree, applied, remove, unpacked

Edit = tuple[str, bytes, bytes]
"""What is done, to which file, and with what."""

PARTS = [
    b"a",
    b"b",
    b"build",
    b"x.o",
    b"a b",
    b'"q"',
    b"new\nline",
    b"\xff",
    "é".encode(),
    b"-d",
    b"#x",
    b":(top)",
]
PATTERNS = [
    b"*",
    b"build/",
    b"!a",
    b"/b",
    b"*.o",
    b"a",
    b"!*/",
    b"a/**",
    b"\\#x",
    b"a/b",
    b"!build/a",
    b"b/",
    b"x*\n!x.o",
]
CONTENTS = [
    b"",
    b"one\n",
    b"one\ntwo\n" * 30,
    b"one\ntwo\n" * 29 + b"2",
    b"\r\ncr\r\n",
    b"\0\1\2" * 50,
    b"$Id$",
]

COMMANDS = [
    *(b"add -A", b"add -A -f", b"commit -qam x", b"stash -u", b"stash pop", b"checkout -qb x", b"clean -fdx"),
    *(b"checkout -q main", b"reset -q --hard", b"rm -rq .", b"gc -q", b"init -q a", b"checkout -q ."),
]

names = st.lists(st.sampled_from(PARTS), min_size=1, max_size=3).map(b"/".join)
gitignores = st.lists(st.sampled_from(PARTS[:3]), max_size=1).map(
    lambda above: b"/".join([*above, b".gitignore"])
)
patterns = st.lists(st.sampled_from(PATTERNS), max_size=3).map(b"\n".join)
attributes = st.sampled_from([b"* text=auto eol=crlf", b"* binary", b"* -diff filter=lfs", b"* ident"])
writes = st.one_of(
    st.tuples(st.just("write"), names, st.one_of(st.sampled_from(CONTENTS), st.binary(max_size=40))),
    st.tuples(st.just("write"), gitignores, patterns),
    st.tuples(st.just("write"), st.just(b".gitattributes"), attributes),
    st.tuples(st.just("link"), names, st.sampled_from([b"a", b"../..", b"/etc/passwd", b"no\nwhere"])),
    st.tuples(st.just("chmod"), names, st.just(b"")),
)
edits = st.one_of(
    writes,
    st.tuples(st.just("delete"), names, st.just(b"")),
    st.tuples(st.just("move"), names, names),
    st.tuples(
        st.just("git"),
        st.sampled_from(COMMANDS),
        st.just(b""),
    ),
)


def edit(tree: WorkTree, what: str, name: bytes, more: bytes) -> None:
    """Do one thing, where it can be done."""
    if what == "git":
        tree.git(*name.decode().split(), check=False)
        return
    path = tree.path / os.fsdecode(name)
    with contextlib.suppress(OSError, RuntimeError):  # the second for a link to itself
        if what == "delete":
            remove(path)
        elif what == "move":
            path.rename(tree.path / os.fsdecode(more))
        elif what == "chmod":
            if path.is_file() and not path.is_symlink():
                path.chmod(stat.S_IMODE(path.stat().st_mode) ^ 0o111)
        elif path.parent.resolve() == path.parent:  # never through a link
            path.parent.mkdir(parents=True, exist_ok=True)
            if path.is_symlink():
                path.unlink()
            if what == "link":
                path.symlink_to(os.fsdecode(more))
            else:
                path.write_bytes(more)


def leaves_the_same_tree(first: list[Edit], later: list[Edit], room: int) -> None:
    with tempfile.TemporaryDirectory(prefix="codetaste-test-") as name:
        here = Path(name).resolve()
        base = WorkTree(here / "R")
        base.path.mkdir()
        for step in first:
            edit(base, *step)

        async def play() -> tuple[WorkTree, ExtractedPatch]:
            testbed = await testbed_of(base.path, here / "cache")
            tree = await unpacked(testbed, here / "box")
            for step in later:
                edit(tree, *step)
            # With little room, what is wanted beside ignored files is read a second time.
            limits = ExtractionLimits(spool_bytes=room)
            return tree, await extract_patch(box_with(tree.path), testbed, limits)

        tree, harvested = anyio.run(play)
        assert harvested.problem == ""
        wanted = tree.judged(here / "judge", base.path)
        assert applied(base.path, here / "applied", harvested.patch) == wanted


plays = given(
    first=st.lists(writes, max_size=8),
    later=st.lists(edits, max_size=10),
    room=st.sampled_from([10**6, 10**6, 64]),
)


@plays
@settings(max_examples=35, suppress_health_check=[HealthCheck.too_slow])
def test_a_patch_makes_of_r_the_tree_that_the_agent_left(
    first: list[Edit], later: list[Edit], room: int
) -> None:
    leaves_the_same_tree(first, later, room)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@plays
@settings(max_examples=1500, suppress_health_check=[HealthCheck.too_slow])
def test_patch_applied_to_base_reproduces_agent_tree(first: list[Edit], later: list[Edit], room: int) -> None:
    leaves_the_same_tree(first, later, room)
