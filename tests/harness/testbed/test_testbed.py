"""What a box holds before the agent starts: R in a repository of its own, and nothing of the original's."""

from __future__ import annotations

import filecmp
import io
import os
import re
import tarfile
from pathlib import Path

import anyio
import pytest

from codetaste.errors import SourceError
from codetaste.harness.testbed.testbed import prepare_testbed, testbed_archive
from codetaste.source.checkout import checkout_trees
from codetaste.source.origin import GitOrigin
from codetaste.source.tree.store import Tree
from support.harness.folder_sandbox import testbed_of, write
from support.harness.testbed_tree import WorkTree, repository_of, unpacked

pytestmark = pytest.mark.anyio

FILES: dict[str, bytes | str] = {
    ".gitattributes": b"*.bat text eol=crlf\n*.u16 working-tree-encoding=UTF-16\n*.big filter=lfs\n",
    ".gitignore": b"*.log\n",
    "tracked.log": b"ignored, and tracked all the same\n",
    "a.bat": b"crlf\r\nlf\n",
    "b.u16": b"not UTF-16",
    "c.big": b"no pointer",
    "deep/er/é.py": b"x = 1\n",
    "new\nline": b"",
    '"quoted"\\': b"q",
    "caf\udce9": b"latin",
    "x" * 200: b"long",
    "link": "deep/../nowhere",
    "y" * 200: "z" * 300,
}


async def clone_with_history(tmp_path: Path) -> tuple[WorkTree, Path, str, str]:
    """A repository with a base, a golden commit after it, and all that could betray it."""
    write(tmp_path / "first", {"old.py": b"before R\n"})
    clone = repository_of(tmp_path / "first", tmp_path / "clone")
    clone.git("config", "user.name", "A")
    clone.git("config", "user.email", "a@example.org")
    write(clone.path, {"old.py": b"R\n", "run.sh": b"#!/bin/sh\n"})
    (clone.path / "run.sh").chmod(0o755)
    clone.git("add", "--all")
    clone.git("commit", "-qm", "R")
    base = clone.git("rev-parse", "HEAD").decode().strip()
    write(clone.path, {"old.py": b"the golden patch\n"})
    clone.git("commit", "-qam", "golden")
    golden = clone.git("rev-parse", "HEAD").decode().strip()
    clone.git("tag", "-a", "v1", "-m", "tag")
    clone.git("remote", "add", "origin", "https://example.org/x.git")
    trees = await checkout_trees(GitOrigin(str(clone.path), base, golden), tmp_path / "cache")
    testbed = await prepare_testbed(Tree(trees.base, trees.base_digest), tmp_path / "cache")
    tree = await unpacked(testbed, tmp_path / "box")
    return tree, clone.path, base, golden


async def test_git_history_in_sandbox_contains_only_base(tmp_path: Path) -> None:
    tree, clone, base, golden = await clone_with_history(tmp_path)
    everything = tree.git("cat-file", "--batch-all-objects", "--batch-check=%(objectname) %(objecttype)")
    commit = tree.git("rev-parse", "HEAD").decode().strip()
    listed = tree.git("ls-tree", "-r", "-t", "HEAD").decode()
    of_r = {
        commit,
        tree.git("rev-parse", "HEAD^{tree}").decode().strip(),
        *re.findall(r"[0-9a-f]{40}", listed),
    }
    assert {line.split()[0] for line in everything.decode().splitlines()} == of_r
    reachable = tree.git("rev-list", "--all", "--objects", "--no-object-names").decode().split()
    assert set(reachable) == of_r
    original = WorkTree(clone)
    assert listed == original.git("ls-tree", "-r", "-t", base).decode()
    assert commit not in {base, golden}
    for wanted in (
        golden,
        base,
        f"{golden}:old.py",
        original.git("rev-parse", f"{golden}:old.py").decode().strip(),
    ):
        assert tree.git("cat-file", "-t", wanted, check=False) == b""


async def test_testbed_repository_has_one_commit_without_history(tmp_path: Path) -> None:
    tree, _, _, _ = await clone_with_history(tmp_path)
    for silent in (
        ("remote", "-v"),
        ("reflog", "--all"),
        ("stash", "list"),
        ("notes", "list"),
        ("tag", "--list"),
        ("fsck", "--lost-found", "--unreachable", "--strict", "--no-progress"),
        ("status", "--porcelain", "--ignored"),
        ("diff-files", "--name-only"),
        ("submodule", "status"),
    ):
        assert tree.git(*silent) == b"", silent
    assert tree.git("for-each-ref", "--format=%(refname)") == b"refs/heads/main\n"
    assert tree.git("rev-list", "--count", "--all") == b"1\n"
    assert tree.git("worktree", "list", "--porcelain").count(b"worktree ") == 1
    assert tree.git("symbolic-ref", "HEAD") == b"refs/heads/main\n"
    files = {
        str(path.relative_to(tree.path / ".git")) for path in tree.path.glob(".git/**/*") if path.is_file()
    }
    packs = {name for name in files if name.startswith("objects/pack/pack-")}
    assert {Path(name).suffix for name in packs} == {".pack", ".idx"}
    assert len(packs) == 2
    assert files - packs == {"HEAD", "config", "index", "info/attributes", "refs/heads/main"}
    assert b"example.org" not in tree.git("config", "--list", "--local")


async def test_testbed_tree_equals_base_and_is_clean_for_git(tmp_path: Path) -> None:
    base = write(tmp_path / "R", FILES)
    (base / "deep/er/é.py").chmod(0o755)
    (base / "submodule").mkdir()
    tree = await unpacked(await testbed_of(base, tmp_path / "cache"), tmp_path / "box")
    wanted = repository_of(base, tmp_path / "judge")
    tree.git("diff-index", "--quiet", "HEAD")  # plumbing, which reads no file: the index must be up to date
    assert tree.git("status", "--porcelain", "--ignored") == b""
    assert tree.git("rev-parse", "HEAD^{tree}").strip() == wanted.tree()
    assert (tree.path / "submodule").is_dir()
    # What git itself writes is R as well, whatever its attributes would make of it.
    tree.git("rm", "-rqf", ".")
    tree.git("checkout", "-q", "HEAD", "--", ".")
    assert (tree.path / "a.bat").read_bytes() == b"crlf\r\nlf\n"
    assert (tree.path / "b.u16").read_bytes() == b"not UTF-16"
    tree.git("commit", "--allow-empty", "-qm", "an agent may commit at once")


async def test_testbed_extra_files_and_tree_belong_to_sandbox_user(tmp_path: Path) -> None:
    testbed = await testbed_of(write(tmp_path / "R", {"a": b"a"}), tmp_path / "cache")
    files = {"/task_description/description.md": b"do it", "/home/agent/.x/y/z.toml": b"z"}
    archive = b"".join([piece async for piece in testbed_archive(testbed, files)])
    with tarfile.open(fileobj=io.BytesIO(archive)) as members:
        found = members.getmembers()
        assert {(member.uid, member.gid) for member in found} == {(1000, 1000)}
        names = [member.name for member in found]
        content = members.extractfile("task_description/description.md")
        assert content is not None
        assert content.read() == b"do it"
    assert {"testbed", "testbed/a", "output", "home/agent", "home/agent/.x/y/z.toml"} <= set(names)
    assert len(names) == len(set(names))
    for name in names:
        above = os.path.dirname(name)  # noqa: PTH120 - a name in an archive
        assert above in {"", "home"} or names.index(above) < names.index(name)


@pytest.mark.parametrize(
    "path", ["/testbed/x", "/etc/passwd", "output/x", "/output/../etc/x", "/output", "/home/agent//x"]
)
async def test_testbed_writes_nothing_outside_its_folders(tmp_path: Path, path: str) -> None:
    testbed = await testbed_of(write(tmp_path / "R", {"a": b"a"}), tmp_path / "cache")
    with pytest.raises(SourceError, match="cannot be put into a sandbox"):
        [piece async for piece in testbed_archive(testbed, {path: b""})]


async def test_many_agents_on_one_tree_share_one_testbed(tmp_path: Path) -> None:
    base = write(tmp_path / "R", {"a": b"a", "b/c": b"c"})
    again = write(tmp_path / "again", {"a": b"a", "b/c": b"c"})
    found = []

    async def prepare(folder: Path) -> None:
        found.append(await testbed_of(folder, tmp_path / "cache"))

    async with anyio.create_task_group() as tasks:
        for folder in [base, again] * 8:
            tasks.start_soon(prepare, folder)
    assert len(set(found)) == 1
    assert len(list((tmp_path / "cache/trees").iterdir())) == 1
    elsewhere = await testbed_of(base, tmp_path / "other")
    assert elsewhere.commit == found[0].commit
    archives = (elsewhere.folder / "testbed.tar", found[0].folder / "testbed.tar")
    assert filecmp.cmp(*archives, shallow=False)


async def test_an_empty_r_is_a_testbed(tmp_path: Path) -> None:
    tree = await unpacked(await testbed_of(write(tmp_path / "R", {}), tmp_path / "cache"), tmp_path / "box")
    assert tree.git("status", "--porcelain") == b""
    assert tree.git("ls-tree", "HEAD") == b""


async def test_hooks_and_settings_of_this_machine_take_no_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    template = write(tmp_path / "template", {"hooks/post-checkout": b"#!/bin/sh\ntouch ran\n", "extra": b""})
    settings = write(tmp_path, {"settings": b"[init]\n\ttemplateDir = %b\n" % os.fsencode(template)})
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(settings / "settings"))
    monkeypatch.setenv("GIT_TEMPLATE_DIR", str(template))
    base = write(tmp_path / "R", {"a": b"a"})
    tree = await unpacked(await testbed_of(base, tmp_path / "cache"), tmp_path / "box")
    assert not (tree.path / ".git/hooks").exists()
    assert not (tree.path / ".git/extra").exists()
