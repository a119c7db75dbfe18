"""After any edits of an agent, its patch turns R into the agent's tree, as ``git add --all`` computes it."""

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
from support.harness.folder_sandbox import folder_sandbox, make_testbed
from support.harness.testbed_tree import WorkTree, apply_patch, remove_path, unpack_testbed

pytestmark = pytest.mark.heavy

Edit = tuple[str, bytes, bytes]
"""The action, its file, and its argument."""

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


def edit(tree: WorkTree, action: str, name: bytes, argument: bytes) -> None:
    """Make one edit if it is possible."""
    if action == "git":
        tree.git(*name.decode().split(), check=False)
        return
    path = tree.path / os.fsdecode(name)
    with contextlib.suppress(OSError, RuntimeError):  # the second for a link to itself
        if action == "delete":
            remove_path(path)
        elif action == "move":
            path.rename(tree.path / os.fsdecode(argument))
        elif action == "chmod":
            if path.is_file() and not path.is_symlink():
                path.chmod(stat.S_IMODE(path.stat().st_mode) ^ 0o111)
        elif path.parent.resolve() == path.parent:  # never through a link
            path.parent.mkdir(parents=True, exist_ok=True)
            if path.is_symlink():
                path.unlink()
            if action == "link":
                path.symlink_to(os.fsdecode(argument))
            else:
                path.write_bytes(argument)


def check_patch_gives_same_tree(first: list[Edit], later: list[Edit], spool_bytes: int) -> None:
    with tempfile.TemporaryDirectory(prefix="codetaste-test-") as name:
        folder = Path(name).resolve()
        base = WorkTree(folder / "R")
        base.path.mkdir()
        for step in first:
            edit(base, *step)

        async def edit_and_extract() -> tuple[WorkTree, ExtractedPatch]:
            testbed = await make_testbed(base.path, folder / "cache")
            tree = await unpack_testbed(testbed, folder / "sandbox")
            for step in later:
                edit(tree, *step)
            # With a small spool, files dropped in favour of ignored ones are read a second time.
            limits = ExtractionLimits(spool_bytes=spool_bytes)
            return tree, await extract_patch(folder_sandbox(tree.path), testbed, limits)

        tree, extracted = anyio.run(edit_and_extract)
        assert extracted.problem == ""
        expected = tree.compute_expected_tree(folder / "expected", base.path)
        assert apply_patch(base.path, folder / "applied", extracted.patch) == expected


given_edits = given(
    first=st.lists(writes, max_size=8),
    later=st.lists(edits, max_size=10),
    spool_bytes=st.sampled_from([10**6, 10**6, 64]),
)


@given_edits
@settings(max_examples=35, suppress_health_check=[HealthCheck.too_slow])
def test_patch_turns_base_into_agent_tree(first: list[Edit], later: list[Edit], spool_bytes: int) -> None:
    check_patch_gives_same_tree(first, later, spool_bytes)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@given_edits
@settings(max_examples=1500, suppress_health_check=[HealthCheck.too_slow])
def test_patch_turns_base_into_agent_tree_in_many_examples(
    first: list[Edit], later: list[Edit], spool_bytes: int
) -> None:
    check_patch_gives_same_tree(first, later, spool_bytes)
