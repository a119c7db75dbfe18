"""What an agent leaves in /testbed, as a patch: everything that counts, nothing else, and within bounds."""

from __future__ import annotations

import io
import os
import shutil
import tarfile
from pathlib import Path

import pytest

from codetaste.harness.patch.extract import ExtractedPatch, ExtractionLimits, extract_patch
from codetaste.harness.testbed.testbed import Testbed
from support.harness.folder_sandbox import MadeBox, archive_of, box_of, box_with, testbed_of, write
from support.harness.testbed_tree import WorkTree, applied, unpacked

pytestmark = pytest.mark.anyio

TEXT = b"".join(b"line %d\n" % number for number in range(60))
FILES: dict[str, bytes | str] = {
    "src/a.py": TEXT,
    "src/b.py": b"b\n",
    "run.sh": b"#!/bin/sh\n",
    "logo.png": bytes(range(256)) * 4,
    "link": "src/a.py",
    ".gitignore": b"build/\n*.o\n",
    "kept.o": b"tracked, though ignored",
}
FOLDER = {"type": tarfile.DIRTYPE, "mode": 0o755}


class Scene:
    """R, its testbed, and a work tree of it."""

    def __init__(self, base: Path, testbed: Testbed, tree: WorkTree) -> None:
        self.base, self.testbed, self.tree = base, testbed, tree
        self.path = tree.path

    async def harvested(self, limits: ExtractionLimits | None = None) -> ExtractedPatch:
        return await extract_patch(box_with(self.path), self.testbed, limits)

    def names(self, patch: bytes, scratch: Path) -> list[str]:
        """Apply the patch to R; return what changed (git's letters and names)."""
        tree = applied(self.base, scratch, patch)
        found = WorkTree(scratch).git("diff", "--no-renames", "--name-status", "HEAD", tree.decode())
        return found.decode().splitlines()


@pytest.fixture
async def scene(tmp_path: Path) -> Scene:
    base = write(tmp_path / "R", FILES)
    testbed = await testbed_of(base, tmp_path / "cache")
    return Scene(base, testbed, await unpacked(testbed, tmp_path / "box"))


async def test_what_was_not_touched_makes_an_empty_patch(scene: Scene) -> None:
    assert await scene.harvested() == ExtractedPatch(b"", 0, "", ())


async def test_everything_that_git_knows_of_a_tree_is_in_the_patch(scene: Scene, tmp_path: Path) -> None:
    path = scene.path
    (path / "src/b.py").write_bytes(b"no newline")
    (path / "run.sh").chmod(0o755)
    (path / "logo.png").write_bytes(bytes(range(256)) * 5)
    (path / "link").unlink()
    (path / "link").symlink_to("/etc/passwd")
    (path / "kept.o").unlink()
    write(path, {"new/é \udcff\n.py": b"new", "build/out": b"ignored", "x.o": b"ignored", "up": "../.."})
    found = await scene.harvested()
    assert found.problem == ""
    assert found.files == 7
    assert scene.names(found.patch, tmp_path / "judge") == [
        "D\tkept.o",
        "M\tlink",
        "M\tlogo.png",
        'A\t"new/\\303\\251 \\377\\n.py"',
        "M\trun.sh",
        "M\tsrc/b.py",
        "A\tup",
    ]


async def test_patch_includes_committed_stashed_and_branched_changes(scene: Scene, tmp_path: Path) -> None:
    write(scene.path, {"committed": b"c"})
    scene.tree.git("add", "--all")
    scene.tree.git("commit", "-qm", "mine")
    write(scene.path, {"stashed": b"s"})
    scene.tree.git("stash", "--include-untracked", "--quiet")
    scene.tree.git("checkout", "-qb", "other")
    write(scene.path, {"loose": b"l"})
    found = await scene.harvested()
    assert scene.names(found.patch, tmp_path / "judge") == ["A\tcommitted", "A\tloose"]


async def test_a_patch_reads_as_a_plain_git_diff_does(scene: Scene) -> None:
    (scene.path / "src/a.py").rename(scene.path / "src/moved.py")
    (scene.path / "src/moved.py").write_bytes(TEXT.replace(b"line 7\n", b"line seven\n"))
    write(scene.path, {"src/é.py": b"e\n"})
    found = await scene.harvested()
    scene.tree.git("add", "--all")
    plain = scene.tree.git("-c", "core.quotePath=false", "diff", "--cached", "--binary", "--full-index")
    assert found.patch == plain
    assert b"rename from src/a.py" in found.patch
    assert b"b/src/\xc3\xa9.py" in found.patch


async def test_git_settings_and_attributes_do_not_change_patch(
    scene: Scene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    canary = tmp_path / "canary"
    run = f"touch {canary}"
    write(tmp_path, {"settings": f"[diff]\n\tnoprefix = true\n\texternal = {run}\n".encode()})
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "settings"))
    monkeypatch.setenv("GIT_EXTERNAL_DIFF", run)
    monkeypatch.setenv("GIT_DIFF_OPTS", "--unified=0")
    for key in (
        "core.fsmonitor",
        "diff.evil.textconv",
        "diff.evil.command",
        "filter.evil.clean",
        "core.pager",
    ):
        scene.tree.git("config", key, run)
    scene.tree.git(
        "config", "core.hooksPath", str(write(scene.path / "hooks", {"post-checkout": run.encode()}))
    )
    scene.tree.git("config", "includeIf.gitdir:/.path", str(tmp_path / "settings"))
    attributes = b"* diff=evil filter=evil -diff text eol=crlf ident export-ignore\n*.py binary\n"
    write(scene.path, {".gitattributes": attributes, "src/a.py": b"$Id$\r\nchanged\n"})
    found = await scene.harvested()
    assert found.problem == ""
    assert b"-line 7\n" in found.patch
    assert b"+$Id$\r\n+changed\n" in found.patch
    assert scene.names(found.patch, tmp_path / "judge")[0] == "A\t.gitattributes"
    assert not canary.exists()


async def test_gitignore_hiding_changes_is_reported(scene: Scene, tmp_path: Path) -> None:
    write(
        scene.path, {".gitignore": b"*\n", "src/new.py": b"hidden", "src/b.py": b"seen\n", "y.o": b"as in R"}
    )
    found = await scene.harvested()
    assert scene.names(found.patch, tmp_path / "judge") == ["M\t.gitignore", "M\tsrc/b.py"]
    assert found.problem == ""
    assert found.notes == ("1 file ('src/new.py') left out: ignored only by the agent's .gitignore files",)


async def test_a_gitignore_may_uncover_as_well(scene: Scene, tmp_path: Path) -> None:
    write(
        scene.path,
        {"build/.gitignore": b"", ".gitignore": b"build/*\n!build/in\n", "build/in": b"1", "x.o": b"2"},
    )
    found = await scene.harvested()
    assert scene.names(found.patch, tmp_path / "judge") == ["M\t.gitignore", "A\tbuild/in", "A\tx.o"]


async def test_a_nested_repository_gives_its_files(scene: Scene, tmp_path: Path) -> None:
    nested = WorkTree(write(scene.path / "vendored", {"lib.py": b"lib"}))
    nested.git("init", "--quiet")
    write(scene.path / "module", {"m.py": b"m", ".git": b"gitdir: ../.git/modules/m\n"})
    found = await scene.harvested()
    assert scene.names(found.patch, tmp_path / "judge") == ["A\tmodule/m.py", "A\tvendored/lib.py"]
    assert found.notes == (
        "2 folders ('module', 'vendored') with a git repository of their own: only their files are taken",
    )


async def test_files_become_folders_and_folders_files(scene: Scene, tmp_path: Path) -> None:
    (scene.path / "run.sh").unlink()
    write(scene.path, {"run.sh/inner.sh": b"#!/bin/sh\n"})
    shutil.rmtree(scene.path / "src")
    write(scene.path, {"src": b"b\n"})
    (scene.path / "link").unlink()
    write(scene.path, {"link/x": TEXT})
    found = await scene.harvested()
    assert found.problem == ""
    assert len(scene.names(found.patch, tmp_path / "judge")) == 7


async def test_extract_names_git_cannot_represent_are_reported(scene: Scene) -> None:
    os.mkfifo(scene.path / "pipe")
    write(scene.path, {"GIT~1": b"", ".Git ": b"", "a\\.git": b"", "x.py": b"x"})
    found = await scene.harvested()
    assert found.problem == ""
    assert found.files == 1
    assert sorted(found.notes) == [
        "'.Git ' has a name that git rejects: left out, as are 2 more",
        "'pipe' is a named pipe: left out",
    ]


async def test_hard_links_are_files_of_their_own(scene: Scene, tmp_path: Path) -> None:
    (scene.path / "src/copy.py").hardlink_to(scene.path / "src/a.py")
    write(scene.path, {"src/m.py": b"m"})
    (scene.path / "src/n.py").hardlink_to(scene.path / "src/m.py")
    found = await scene.harvested()
    assert found.notes == ()
    assert scene.names(found.patch, tmp_path / "judge") == ["A\tsrc/copy.py", "A\tsrc/m.py", "A\tsrc/n.py"]


async def test_deleting_everything_is_a_patch(scene: Scene, tmp_path: Path) -> None:
    found = await extract_patch(box_of(archive_of(("testbed", FOLDER))), scene.testbed)
    assert found.problem == ""
    assert len(scene.names(found.patch, tmp_path / "judge")) == len(FILES)


@pytest.mark.parametrize(
    ("members", "problem"),
    [
        ((), "/testbed is gone"),
        ((("testbed", {"type": tarfile.SYMTYPE, "linkname": "/etc"}),), "/testbed was replaced by a link"),
        ((("testbed", b"file"),), "/testbed was replaced by a file"),
        ((("testbed", {"type": tarfile.FIFOTYPE}),), "/testbed was replaced by a named pipe"),
    ],
)
async def test_a_testbed_that_is_no_folder_any_more_makes_no_patch(
    scene: Scene, members: tuple[tuple[str, object], ...], problem: str
) -> None:
    assert await extract_patch(box_of(archive_of(*members)), scene.testbed) == ExtractedPatch(
        b"", 0, problem, ()
    )


async def test_extract_oversized_file_is_left_out_and_rest_taken(scene: Scene, tmp_path: Path) -> None:
    write(
        scene.path,
        {"huge.bin": bytes(5000), "src/b.py": bytes(6000), "small": b"s", "build/huge": bytes(5000)},
    )
    found = await scene.harvested(ExtractionLimits(file_bytes=4000))
    assert scene.names(found.patch, tmp_path / "judge") == ["A\tsmall"]
    assert found.problem == "2 files ('huge.bin', 'src/b.py') (11,000 bytes) left out: too large for a patch"


async def test_extract_prefers_small_files(scene: Scene, tmp_path: Path) -> None:
    write(scene.path, {"a": bytes(900), "b": b"b" * 300, "c": b"c" * 200, "src/b.py": b"x" * 400})
    found = await scene.harvested(ExtractionLimits(content_bytes=1000))
    assert scene.names(found.patch, tmp_path / "judge") == ["A\tb", "A\tc", "M\tsrc/b.py"]
    assert found.problem == "1 file ('a') (900 bytes) left out: too large for a patch"


async def test_a_patch_that_is_too_large_is_none(scene: Scene) -> None:
    write(scene.path, {"a": os.urandom(5000)})
    found = await scene.harvested(ExtractionLimits(patch_bytes=4000))
    assert found.patch == b""
    assert found.problem.startswith("the patch cannot be created: ")


async def test_extract_too_many_files_prefers_changes_to_base(scene: Scene, tmp_path: Path) -> None:
    write(scene.path, {f"many/{number}": b"" for number in range(40)} | {"src/b.py": b"changed\n"})
    found = await scene.harvested(ExtractionLimits(new_files=10))
    names = scene.names(found.patch, tmp_path / "judge")
    assert names[-1] == "M\tsrc/b.py"
    assert len(names) == 11, names
    assert found.problem == "only 10 of 40 new files are considered"


async def test_extract_endless_file_is_reported_and_hides_no_other(scene: Scene, tmp_path: Path) -> None:
    write(
        scene.path, {"src/b.py": b"changed\n", "kept.o": b"changed", "new": b"not found: R has no such name"}
    )
    (scene.path / "src/a.py").unlink()
    with (scene.path / "endless").open("wb") as file:
        file.truncate(3_000_000)
    found = await scene.harvested(ExtractionLimits(stream_bytes=1_500_000))
    assert found.problem == "/testbed could not be read whole: 'testbed/endless' has 3,000,000 bytes"
    # What was not seen may be there still.
    assert scene.names(found.patch, tmp_path / "judge") == ["M\tkept.o", "M\tsrc/b.py"]


async def test_extract_endless_tree_is_cut_and_earlier_files_taken(scene: Scene, tmp_path: Path) -> None:
    write(scene.path, {f"many/{number}": bytes(1000) for number in range(1000)} | {"a": b"a"})
    found = await scene.harvested(ExtractionLimits(stream_bytes=700_000))
    assert found.problem == "/testbed could not be read whole: it holds more than 700,000 bytes"
    assert scene.names(found.patch, tmp_path / "judge")[0] == "A\ta"


async def test_contents_that_had_no_room_beside_ignored_ones_are_read_again(
    scene: Scene, tmp_path: Path
) -> None:
    write(scene.path, {"build/junk": os.urandom(3000), "src/new.py": b"n" * 900})
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        archive.add(scene.path, "testbed")
    box = MadeBox(packed.getvalue())
    found = await extract_patch(box, scene.testbed, ExtractionLimits(spool_bytes=3500))  # type: ignore[arg-type]
    assert scene.names(found.patch, tmp_path / "judge") == ["A\tsrc/new.py"]
    assert box.readings == 2


async def test_nothing_is_left_on_this_machine_s_disk(
    scene: Scene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "scratch").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "scratch"))
    write(scene.path, {"x": b"x"})
    assert (await scene.harvested()).files == 1
    assert list((tmp_path / "scratch").iterdir()) == []
