"""The patch extracted from /testbed: what it contains, what it leaves out, and its limits."""

from __future__ import annotations

import io
import os
import shutil
import tarfile
from pathlib import Path

import pytest

from codetaste.harness.patch.extract import ExtractedPatch, ExtractionLimits, extract_patch
from codetaste.harness.testbed.testbed import Testbed
from support.harness.folder_sandbox import (
    ArchiveSandbox,
    archive_sandbox,
    folder_sandbox,
    make_archive,
    make_testbed,
    write_files,
)
from support.harness.testbed_tree import WorkTree, apply_patch, unpack_testbed

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


class Project:
    """R, its testbed, and a work tree of the testbed."""

    def __init__(self, base: Path, testbed: Testbed, tree: WorkTree) -> None:
        self.base, self.testbed, self.tree = base, testbed, tree
        self.path = tree.path

    async def extract(self, limits: ExtractionLimits | None = None) -> ExtractedPatch:
        return await extract_patch(folder_sandbox(self.path), self.testbed, limits)

    def changes(self, patch: bytes, scratch: Path) -> list[str]:
        """Apply the patch to R; return the changes (git's status letters and names)."""
        tree = apply_patch(self.base, scratch, patch)
        status = WorkTree(scratch).git("diff", "--no-renames", "--name-status", "HEAD", tree.decode())
        return status.decode().splitlines()


@pytest.fixture
async def project(tmp_path: Path) -> Project:
    base = write_files(tmp_path / "R", FILES)
    testbed = await make_testbed(base, tmp_path / "cache")
    return Project(base, testbed, await unpack_testbed(testbed, tmp_path / "sandbox"))


async def test_unchanged_testbed_gives_empty_patch(project: Project) -> None:
    assert await project.extract() == ExtractedPatch(b"", 0, "", ())


async def test_what_was_there_before_the_agent_is_left_out(project: Project, tmp_path: Path) -> None:
    write_files(project.path, {".venv/bin/python": b"", ".venvs": b"agent", "made.txt": b"", "src/b.py": b""})
    left_out = [".venv/", "made.txt", "src/b.py"]  # a file of R is no new file
    extracted = await extract_patch(folder_sandbox(project.path), project.testbed, left_out=left_out)
    assert project.changes(extracted.patch, tmp_path / "check") == ["A\t.venvs", "M\tsrc/b.py"]
    (note,) = extracted.notes
    assert "2 files ('.venv/bin/python', 'made.txt') left out" in note


async def test_patch_includes_contents_modes_links_and_binaries(project: Project, tmp_path: Path) -> None:
    path = project.path
    (path / "src/b.py").write_bytes(b"no newline")
    (path / "run.sh").chmod(0o755)
    (path / "logo.png").write_bytes(bytes(range(256)) * 5)
    (path / "link").unlink()
    (path / "link").symlink_to("/etc/passwd")
    (path / "kept.o").unlink()
    write_files(
        path, {"new/é \udcff\n.py": b"new", "build/out": b"ignored", "x.o": b"ignored", "up": "../.."}
    )
    extracted = await project.extract()
    assert extracted.problem == ""
    assert extracted.files == 7
    assert project.changes(extracted.patch, tmp_path / "check") == [
        "D\tkept.o",
        "M\tlink",
        "M\tlogo.png",
        'A\t"new/\\303\\251 \\377\\n.py"',
        "M\trun.sh",
        "M\tsrc/b.py",
        "A\tup",
    ]


async def test_patch_includes_committed_stashed_and_branched_changes(
    project: Project, tmp_path: Path
) -> None:
    write_files(project.path, {"committed": b"c"})
    project.tree.git("add", "--all")
    project.tree.git("commit", "-qm", "mine")
    write_files(project.path, {"stashed": b"s"})
    project.tree.git("stash", "--include-untracked", "--quiet")
    project.tree.git("checkout", "-qb", "other")
    write_files(project.path, {"loose": b"l"})
    extracted = await project.extract()
    assert project.changes(extracted.patch, tmp_path / "check") == ["A\tcommitted", "A\tloose"]


async def test_patch_equals_plain_git_diff(project: Project) -> None:
    (project.path / "src/a.py").rename(project.path / "src/moved.py")
    (project.path / "src/moved.py").write_bytes(TEXT.replace(b"line 7\n", b"line seven\n"))
    write_files(project.path, {"src/é.py": b"e\n"})
    extracted = await project.extract()
    project.tree.git("add", "--all")
    plain = project.tree.git("-c", "core.quotePath=false", "diff", "--cached", "--binary", "--full-index")
    assert extracted.patch == plain
    assert b"rename from src/a.py" in extracted.patch
    assert extracted.files == 2
    assert b"b/src/\xc3\xa9.py" in extracted.patch


async def test_git_settings_and_attributes_do_not_change_patch(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    canary = tmp_path / "canary"
    run = f"touch {canary}"
    write_files(tmp_path, {"settings": f"[diff]\n\tnoprefix = true\n\texternal = {run}\n".encode()})
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
        project.tree.git("config", key, run)
    project.tree.git(
        "config", "core.hooksPath", str(write_files(project.path / "hooks", {"post-checkout": run.encode()}))
    )
    project.tree.git("config", "includeIf.gitdir:/.path", str(tmp_path / "settings"))
    attributes = b"* diff=evil filter=evil -diff text eol=crlf ident export-ignore\n*.py binary\n"
    write_files(project.path, {".gitattributes": attributes, "src/a.py": b"$Id$\r\nchanged\n"})
    extracted = await project.extract()
    assert extracted.problem == ""
    assert b"-line 7\n" in extracted.patch
    assert b"+$Id$\r\n+changed\n" in extracted.patch
    assert project.changes(extracted.patch, tmp_path / "check")[0] == "A\t.gitattributes"
    assert not canary.exists()


async def test_gitignore_hiding_changes_is_reported(project: Project, tmp_path: Path) -> None:
    write_files(
        project.path,
        {".gitignore": b"*\n", "src/new.py": b"hidden", "src/b.py": b"seen\n", "y.o": b"as in R"},
    )
    extracted = await project.extract()
    assert project.changes(extracted.patch, tmp_path / "check") == ["M\t.gitignore", "M\tsrc/b.py"]
    assert extracted.problem == ""
    assert extracted.notes == (
        "1 file ('src/new.py') left out: ignored only by the agent's .gitignore files",
    )


async def test_changed_gitignore_may_include_more_files(project: Project, tmp_path: Path) -> None:
    write_files(
        project.path,
        {"build/.gitignore": b"", ".gitignore": b"build/*\n!build/in\n", "build/in": b"1", "x.o": b"2"},
    )
    extracted = await project.extract()
    assert project.changes(extracted.patch, tmp_path / "check") == ["M\t.gitignore", "A\tbuild/in", "A\tx.o"]


async def test_patch_includes_files_of_nested_repository(project: Project, tmp_path: Path) -> None:
    nested = WorkTree(write_files(project.path / "vendored", {"lib.py": b"lib"}))
    nested.git("init", "--quiet")
    write_files(project.path / "module", {"m.py": b"m", ".git": b"gitdir: ../.git/modules/m\n"})
    extracted = await project.extract()
    assert project.changes(extracted.patch, tmp_path / "check") == ["A\tmodule/m.py", "A\tvendored/lib.py"]
    assert extracted.notes == (
        "2 folders ('module', 'vendored') with a git repository of their own: only their files are taken",
    )


async def test_patch_replaces_files_by_folders_and_folders_by_files(project: Project, tmp_path: Path) -> None:
    (project.path / "run.sh").unlink()
    write_files(project.path, {"run.sh/inner.sh": b"#!/bin/sh\n"})
    shutil.rmtree(project.path / "src")
    write_files(project.path, {"src": b"b\n"})
    (project.path / "link").unlink()
    write_files(project.path, {"link/x": TEXT})
    extracted = await project.extract()
    assert extracted.problem == ""
    assert len(project.changes(extracted.patch, tmp_path / "check")) == 7


async def test_names_that_git_rejects_are_reported(project: Project) -> None:
    os.mkfifo(project.path / "pipe")
    write_files(project.path, {"GIT~1": b"", ".Git ": b"", "a\\.git": b"", "x.py": b"x"})
    extracted = await project.extract()
    assert extracted.problem == ""
    assert extracted.files == 1
    assert sorted(extracted.notes) == [
        "'.Git ' has a name that git rejects: left out, as are 2 more",
        "'pipe' is a named pipe: left out",
    ]


async def test_hard_links_are_extracted_as_separate_files(project: Project, tmp_path: Path) -> None:
    (project.path / "src/copy.py").hardlink_to(project.path / "src/a.py")
    write_files(project.path, {"src/m.py": b"m"})
    (project.path / "src/n.py").hardlink_to(project.path / "src/m.py")
    extracted = await project.extract()
    assert extracted.notes == ()
    assert project.changes(extracted.patch, tmp_path / "check") == [
        "A\tsrc/copy.py",
        "A\tsrc/m.py",
        "A\tsrc/n.py",
    ]


async def test_patch_of_empty_testbed_deletes_all_files(project: Project, tmp_path: Path) -> None:
    extracted = await extract_patch(archive_sandbox(make_archive(("testbed", FOLDER))), project.testbed)
    assert extracted.problem == ""
    assert len(project.changes(extracted.patch, tmp_path / "check")) == len(FILES)


@pytest.mark.parametrize(
    ("members", "problem"),
    [
        ((), "/testbed is gone"),
        ((("testbed", {"type": tarfile.SYMTYPE, "linkname": "/etc"}),), "/testbed was replaced by a link"),
        ((("testbed", b"file"),), "/testbed was replaced by a file"),
        ((("testbed", {"type": tarfile.FIFOTYPE}),), "/testbed was replaced by a named pipe"),
    ],
)
async def test_testbed_that_is_no_longer_a_folder_gives_no_patch(
    project: Project, members: tuple[tuple[str, object], ...], problem: str
) -> None:
    assert await extract_patch(archive_sandbox(make_archive(*members)), project.testbed) == ExtractedPatch(
        b"", 0, problem, ()
    )


async def test_oversized_files_are_left_out(project: Project, tmp_path: Path) -> None:
    write_files(
        project.path,
        {"huge.bin": bytes(5000), "src/b.py": bytes(6000), "small": b"s", "build/huge": bytes(5000)},
    )
    extracted = await project.extract(ExtractionLimits(file_bytes=4000))
    assert project.changes(extracted.patch, tmp_path / "check") == ["A\tsmall"]
    assert (
        extracted.problem == "2 files ('huge.bin', 'src/b.py') (11,000 bytes) left out: too large for a patch"
    )


async def test_small_files_are_preferred(project: Project, tmp_path: Path) -> None:
    write_files(project.path, {"a": bytes(900), "b": b"b" * 300, "c": b"c" * 200, "src/b.py": b"x" * 400})
    extracted = await project.extract(ExtractionLimits(content_bytes=1000))
    assert project.changes(extracted.patch, tmp_path / "check") == ["A\tb", "A\tc", "M\tsrc/b.py"]
    assert extracted.problem == "1 file ('a') (900 bytes) left out: too large for a patch"


async def test_too_large_patch_is_empty(project: Project) -> None:
    write_files(project.path, {"a": os.urandom(5000)})
    extracted = await project.extract(ExtractionLimits(patch_bytes=4000))
    assert extracted.patch == b""
    assert extracted.problem.startswith("the patch cannot be created: ")


async def test_changes_to_base_are_preferred_to_new_files(project: Project, tmp_path: Path) -> None:
    write_files(project.path, {f"many/{number}": b"" for number in range(40)} | {"src/b.py": b"changed\n"})
    extracted = await project.extract(ExtractionLimits(new_files=10))
    changes = project.changes(extracted.patch, tmp_path / "check")
    assert changes[-1] == "M\tsrc/b.py"
    assert len(changes) == 11, changes
    assert extracted.problem == "only 10 of 40 new files are considered"


async def test_file_over_stream_limit_is_reported_and_others_are_extracted(
    project: Project, tmp_path: Path
) -> None:
    write_files(
        project.path,
        {"src/b.py": b"changed\n", "kept.o": b"changed", "new": b"not found: R has no such name"},
    )
    (project.path / "src/a.py").unlink()
    with (project.path / "endless").open("wb") as file:
        file.truncate(3_000_000)
    extracted = await project.extract(ExtractionLimits(stream_bytes=1_500_000))
    assert extracted.problem == "/testbed could not be read whole: 'testbed/endless' has 3,000,000 bytes"
    # Files that were not read may still exist, so they are not deleted.
    assert project.changes(extracted.patch, tmp_path / "check") == ["M\tkept.o", "M\tsrc/b.py"]


async def test_files_before_stream_limit_are_extracted(project: Project, tmp_path: Path) -> None:
    write_files(project.path, {f"many/{number}": bytes(1000) for number in range(1000)} | {"a": b"a"})
    extracted = await project.extract(ExtractionLimits(stream_bytes=700_000))
    assert extracted.problem == "/testbed could not be read whole: it holds more than 700,000 bytes"
    assert project.changes(extracted.patch, tmp_path / "check")[0] == "A\ta"


async def test_files_dropped_from_full_spool_are_read_again(project: Project, tmp_path: Path) -> None:
    write_files(project.path, {"build/junk": os.urandom(3000), "src/new.py": b"n" * 900})
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        archive.add(project.path, "testbed")
    sandbox = ArchiveSandbox(packed.getvalue())
    extracted = await extract_patch(sandbox, project.testbed, ExtractionLimits(spool_bytes=3500))  # type: ignore[arg-type]
    assert project.changes(extracted.patch, tmp_path / "check") == ["A\tsrc/new.py"]
    assert sandbox.reads == 2


async def test_extraction_leaves_no_temporary_files(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "scratch").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "scratch"))
    write_files(project.path, {"x": b"x"})
    assert (await project.extract()).files == 1
    assert list((tmp_path / "scratch").iterdir()) == []
