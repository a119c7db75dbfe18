"""A patch applied to R makes the tree that it was made from, and leaves R unchanged."""

from __future__ import annotations

import random
import tempfile
from pathlib import Path

import anyio
import pytest
from anyio import fail_after
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from codetaste.errors import PatchDoesNotApply, PatchError
from codetaste.source.patch.apply import AppliedPatch, applied_patch
from codetaste.source.tree.overlay import overlay_path
from support.source.random_trees import (
    FILE,
    LINK,
    PROGRAM,
    SUBMODULE,
    EditedRepository,
    Edits,
    Tree,
    random_edits,
)
from support.source.tree_contents import read_overlay, snapshot, write_tree

pytestmark = pytest.mark.anyio

ABC = b"".join(b"%d\n" % number for number in range(1, 31))
BASE: Tree = {
    b"a.py": (FILE, ABC),
    b"run.sh": (PROGRAM, b"#!/bin/sh\n"),
    b"sub/b.py": (FILE, b"one\ntwo\nthree\n"),
    b"sub/link": (LINK, b"b.py"),
    b"dir/deep/c.txt": (FILE, b"c\r\nd\r\n"),
    b".gitattributes": (FILE, b"* text eol=crlf filter=evil\n"),
}


@pytest.fixture
def base(tmp_path: Path) -> Path:
    return write_tree(tmp_path / "base", BASE)


def diff(tmp_path: Path, new: Tree, *options: str, old: Tree = BASE) -> bytes:
    repository = EditedRepository.create(tmp_path / "diff.git", Edits(old, new))
    return repository.git("diff", "--binary", *options, "old", "new")


def names_in(scratch: Path) -> list[str]:
    return [path.name for path in scratch.iterdir()]


async def apply(base: Path, content: bytes, scratch: Path) -> tuple[AppliedPatch, Tree]:
    await anyio.Path(scratch).mkdir(exist_ok=True)
    async with applied_patch(base, content, scratch) as result:
        tree = read_overlay(result.tree)
    assert names_in(scratch) == []
    return result, tree


async def apply_refused(base: Path, content: bytes, scratch: Path) -> PatchDoesNotApply:
    with pytest.raises(PatchDoesNotApply) as caught:
        await apply(base, content, scratch)
    assert names_in(scratch) == []
    assert "\n" not in str(caught.value)
    return caught.value


async def test_a_patch_makes_the_tree_it_was_made_from(base: Path, tmp_path: Path) -> None:
    new = {
        b"a.py": (PROGRAM, ABC.replace(b"7\n", b"sieben\n")),
        b"run": (PROGRAM, b"#!/bin/sh\n"),
        b"sub/b.py": (LINK, b"../a.py"),
        b"sub/link": (FILE, b"no link"),
        b"dir": (FILE, b"no folder\n"),
        b".gitattributes": (FILE, b"* filter=evil\n"),
        b"new/.gitignore": (FILE, b"*\n"),
        b"new/ignored": (FILE, b"\0\1\2"),
    }
    before = snapshot(base)
    result, tree = await apply(base, diff(tmp_path, new), tmp_path / "scratch")
    assert tree == new
    assert snapshot(base) == before
    assert (result.other_base, result.notes) == (False, ())


@settings(max_examples=3, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.integers(0, 2**32))
async def test_random_edits_are_applied_exactly(seed: int) -> None:
    await check_random_edits(seed)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.integers(0, 2**32))
async def test_thousands_of_random_edits_are_applied_exactly(seed: int) -> None:
    await check_random_edits(seed)


async def check_random_edits(seed: int) -> None:
    rng = random.Random(seed)
    edits = random_edits(rng, 40)
    options = [rng.choice(words) for words in (("-M", "-C", "--no-renames"), ("-U3", "-U1"), ("--binary",))]
    options += rng.choice([[], ["--no-prefix"], ["--full-index"], ["--patience", "--src-prefix=i/"]])
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        repository = EditedRepository.create(folder / "r.git", edits)
        content = repository.git("-c", "core.quotePath=false", "diff", *options, "old", "new")
        base = write_tree(folder / "base", edits.old)
        before = snapshot(base)
        result, tree = await apply(base, content, folder / "scratch")
        assert snapshot(base) == before
    expected = {path: entry for path, entry in edits.new.items() if entry[0] != SUBMODULE}
    assert tree == expected, options
    assert not result.other_base


async def test_an_empty_patch_changes_nothing(base: Path, tmp_path: Path) -> None:
    for content in (b"", b"\n"):
        result, tree = await apply(base, content, tmp_path / "scratch")
        assert tree == BASE
        assert result.tree.changed == frozenset()


async def test_a_file_of_the_patched_tree_is_found_on_disk(base: Path, tmp_path: Path) -> None:
    content = diff(tmp_path, BASE | {b"sub/b.py": (FILE, b"one\ntwo\n")})
    async with applied_patch(base, content, tmp_path) as result:
        assert overlay_path(result.tree, "sub/b.py").read_bytes() == b"one\ntwo\n"
        assert overlay_path(result.tree, "a.py") == base / "a.py"
        assert result.tree.changed == {"sub/b.py"}


async def test_conflict_error_names_file_and_hunk(base: Path, tmp_path: Path) -> None:
    other = BASE | {b"a.py": (FILE, ABC.replace(b"20\n", b"zwanzig\n")), b"sub/b.py": (FILE, b"x\n")}
    newer = other | {b"a.py": (FILE, ABC.replace(b"20\n", b"vingt\n")), b"sub/b.py": (FILE, b"y\n")}
    error = await apply_refused(base, diff(tmp_path, newer, old=other), tmp_path / "scratch")
    assert "'a.py', hunk at line 17" in str(error)
    assert "first of 2 such files" in str(error)
    assert "made against another commit: 'a.py' and 1 more differ in R" in str(error)
    assert error.other_base


async def test_patch_with_wrong_lines_is_not_blamed_on_the_commit(base: Path, tmp_path: Path) -> None:
    content = diff(tmp_path, BASE | {b"a.py": (FILE, ABC.replace(b"9\n", b"neun\n"))})
    error = await apply_refused(base, content.replace(b" 10\n", b" zehn\n"), tmp_path / "scratch")
    assert not error.other_base
    assert "another commit" not in str(error)


async def test_applicable_patch_of_another_commit_is_noted(base: Path, tmp_path: Path) -> None:
    other = BASE | {b"a.py": (FILE, b"0\n" * 5 + ABC)}
    newer = BASE | {b"a.py": (FILE, b"0\n" * 5 + ABC.replace(b"9\n", b"neun\n", 1))}
    result, tree = await apply(base, diff(tmp_path, newer, old=other), tmp_path / "scratch")
    assert tree[b"a.py"] == (FILE, ABC.replace(b"9\n", b"neun\n", 1))
    assert result.other_base
    assert "another commit" in result.notes[0]
    assert "1 hunk(s)" in result.notes[1]


async def test_missing_or_existing_file_is_reported(base: Path, tmp_path: Path) -> None:
    missing = await apply_refused(base, b"--- a/zz\n+++ b/zz\n@@ -1 +1 @@\n-a\n+b\n", tmp_path / "scratch")
    assert "'zz': R has no such file" in str(missing)
    assert missing.other_base
    new = b"diff --git a/a.py b/a.py\nnew file mode 100644\n--- /dev/null\n+++ b/a.py\n@@ -0,0 +1 @@\n+a\n"
    there = await apply_refused(base, new, tmp_path / "scratch")
    assert "'a.py': R has that file already" in str(there)


async def test_binary_patch_without_contents_is_refused(base: Path, tmp_path: Path) -> None:
    text = b"diff --git a/a.py b/a.py\nindex 1234567..89abcde 100644\nBinary files a/a.py and b/a.py differ\n"
    assert "binary patch" in str(await apply_refused(base, text, tmp_path / "scratch"))


async def test_names_without_prefixes_are_read_and_noted(base: Path, tmp_path: Path) -> None:
    new = {**BASE, b"sub/b.py": (FILE, b"one\n")}
    result, tree = await apply(base, diff(tmp_path, new, "--no-prefix"), tmp_path / "scratch")
    assert tree == new
    (note,) = result.notes
    assert "no a/ and b/" in note


async def test_submodules_are_left_out_and_noted(base: Path, tmp_path: Path) -> None:
    one, two = b"1" * 40, b"2" * 40
    old = BASE | {b"lib/sub": (SUBMODULE, one)}
    new = BASE | {b"lib/sub": (SUBMODULE, two), b"run.sh": (PROGRAM, b"")}
    (base / "lib/sub").mkdir(parents=True)
    result, tree = await apply(base, diff(tmp_path, new, old=old), tmp_path / "scratch")
    assert tree == BASE | {b"run.sh": (PROGRAM, b"")}
    assert "submodules" in result.notes[0]
    assert "'lib/sub'" in result.notes[0]


async def test_cr_lf_patch_does_not_apply_to_lf_lines(base: Path, tmp_path: Path) -> None:
    content = diff(tmp_path, BASE | {b"sub/b.py": (FILE, b"one\n2\nthree\n")})
    await apply_refused(base, content.replace(b"\n", b"\r\n"), tmp_path / "scratch")


async def test_invalid_patch_leaves_nothing_behind(base: Path, tmp_path: Path) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    with pytest.raises(PatchError):
        async with applied_patch(base, b"garbage\n", scratch):
            pass
    assert names_in(scratch) == []


async def test_concurrent_and_cancelled_applications_clean_up(base: Path, tmp_path: Path) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    content = diff(tmp_path, BASE | {b"sub/b.py": (FILE, b"one\n2\nthree\n")})

    async def one(wait_s: float) -> None:
        with anyio.move_on_after(wait_s):
            async with applied_patch(base, content, scratch) as result:
                assert (result.tree.overlay / "sub/b.py").read_bytes() == b"one\n2\nthree\n"

    with fail_after(200):
        async with anyio.create_task_group() as tasks:
            for wait_s in (600, 600, 0, 0.005, 0.01, 0.02):
                tasks.start_soon(one, wait_s)
    assert names_in(scratch) == []
