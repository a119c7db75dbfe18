"""The initial content of a sandbox: R in a new repository, without the original history."""

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
from support.harness.folder_sandbox import make_testbed, write_files
from support.harness.testbed_tree import WorkTree, make_repository, unpack_testbed

pytestmark = pytest.mark.anyio

FILES: dict[str, bytes | str] = {
    ".gitattributes": b"*.bat text eol=crlf\n*.u16 working-tree-encoding=UTF-16\n*.big filter=lfs\n",
    ".gitignore": b"*.log\n",
    "tracked.log": b"ignored but tracked\n",
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
    """Make a testbed of a clone that has a base, a later golden commit, a tag and a remote."""
    write_files(tmp_path / "first", {"old.py": b"before R\n"})
    clone = make_repository(tmp_path / "first", tmp_path / "clone")
    clone.git("config", "user.name", "A")
    clone.git("config", "user.email", "a@example.org")
    write_files(clone.path, {"old.py": b"R\n", "run.sh": b"#!/bin/sh\n"})
    (clone.path / "run.sh").chmod(0o755)
    clone.git("add", "--all")
    clone.git("commit", "-qm", "R")
    base = clone.git("rev-parse", "HEAD").decode().strip()
    write_files(clone.path, {"old.py": b"the golden patch\n"})
    clone.git("commit", "-qam", "golden")
    golden = clone.git("rev-parse", "HEAD").decode().strip()
    clone.git("tag", "-a", "v1", "-m", "tag")
    clone.git("remote", "add", "origin", "https://example.org/x.git")
    trees = await checkout_trees(GitOrigin(str(clone.path), base, golden), tmp_path / "cache")
    testbed = await prepare_testbed(Tree(trees.base, trees.base_digest), tmp_path / "cache")
    tree = await unpack_testbed(testbed, tmp_path / "sandbox")
    return tree, clone.path, base, golden


async def test_git_history_in_sandbox_contains_only_base(tmp_path: Path) -> None:
    tree, clone, base, golden = await clone_with_history(tmp_path)
    objects = tree.git("cat-file", "--batch-all-objects", "--batch-check=%(objectname) %(objecttype)")
    commit = tree.git("rev-parse", "HEAD").decode().strip()
    listed = tree.git("ls-tree", "-r", "-t", "HEAD").decode()
    base_objects = {
        commit,
        tree.git("rev-parse", "HEAD^{tree}").decode().strip(),
        *re.findall(r"[0-9a-f]{40}", listed),
    }
    assert {line.split()[0] for line in objects.decode().splitlines()} == base_objects
    reachable = tree.git("rev-list", "--all", "--objects", "--no-object-names").decode().split()
    assert set(reachable) == base_objects
    original = WorkTree(clone)
    assert listed == original.git("ls-tree", "-r", "-t", base).decode()
    assert commit not in {base, golden}
    for name in (
        golden,
        base,
        f"{golden}:old.py",
        original.git("rev-parse", f"{golden}:old.py").decode().strip(),
    ):
        assert tree.git("cat-file", "-t", name, check=False) == b""


async def test_testbed_repository_has_one_commit_without_history(tmp_path: Path) -> None:
    tree, _, _, _ = await clone_with_history(tmp_path)
    for command in (
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
        assert tree.git(*command) == b"", command
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
    base = write_files(tmp_path / "R", FILES)
    (base / "deep/er/é.py").chmod(0o755)
    (base / "submodule").mkdir()
    tree = await unpack_testbed(await make_testbed(base, tmp_path / "cache"), tmp_path / "sandbox")
    reference = make_repository(base, tmp_path / "check")
    tree.git("diff-index", "--quiet", "HEAD")  # reads no file, so it needs an up-to-date index
    assert tree.git("status", "--porcelain", "--ignored") == b""
    assert tree.git("rev-parse", "HEAD^{tree}").strip() == reference.staged_tree()
    assert (tree.path / "submodule").is_dir()
    # A checkout by git gives R too, in spite of its attributes.
    tree.git("rm", "-rqf", ".")
    tree.git("checkout", "-q", "HEAD", "--", ".")
    assert (tree.path / "a.bat").read_bytes() == b"crlf\r\nlf\n"
    assert (tree.path / "b.u16").read_bytes() == b"not UTF-16"
    tree.git("commit", "--allow-empty", "-qm", "an agent may commit at once")


async def test_testbed_files_belong_to_sandbox_user(tmp_path: Path) -> None:
    testbed = await make_testbed(write_files(tmp_path / "R", {"a": b"a"}), tmp_path / "cache")
    files = {"/task_description/description.md": b"do it", "/home/agent/.x/y/z.toml": b"z"}
    archive = b"".join([piece async for piece in testbed_archive(testbed, files)])
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        members = tar.getmembers()
        assert {(member.uid, member.gid) for member in members} == {(1000, 1000)}
        names = [member.name for member in members]
        content = tar.extractfile("task_description/description.md")
        assert content is not None
        assert content.read() == b"do it"
    assert {"testbed", "testbed/a", "output", "home/agent", "home/agent/.x/y/z.toml"} <= set(names)
    assert len(names) == len(set(names))
    for name in names:
        parent = os.path.dirname(name)  # noqa: PTH120 - a name in an archive
        assert parent in {"", "home"} or names.index(parent) < names.index(name)


@pytest.mark.parametrize(
    "path", ["/testbed/x", "/etc/passwd", "output/x", "/output/../etc/x", "/output", "/home/agent//x"]
)
async def test_testbed_refuses_files_outside_its_folders(tmp_path: Path, path: str) -> None:
    testbed = await make_testbed(write_files(tmp_path / "R", {"a": b"a"}), tmp_path / "cache")
    with pytest.raises(SourceError, match="cannot be put into a sandbox"):
        [piece async for piece in testbed_archive(testbed, {path: b""})]


async def test_equal_trees_share_one_testbed(tmp_path: Path) -> None:
    base = write_files(tmp_path / "R", {"a": b"a", "b/c": b"c"})
    copy = write_files(tmp_path / "copy", {"a": b"a", "b/c": b"c"})
    testbeds = []

    async def prepare(folder: Path) -> None:
        testbeds.append(await make_testbed(folder, tmp_path / "cache"))

    async with anyio.create_task_group() as tasks:
        for folder in [base, copy] * 8:
            tasks.start_soon(prepare, folder)
    assert len(set(testbeds)) == 1
    assert len(list((tmp_path / "cache/trees").iterdir())) == 1
    other = await make_testbed(base, tmp_path / "other")
    assert other.commit == testbeds[0].commit
    archives = (other.folder / "testbed.tar", testbeds[0].folder / "testbed.tar")
    assert filecmp.cmp(*archives, shallow=False)


async def test_testbed_of_two_trees_has_a_commit_each_and_the_later_work_tree(tmp_path: Path) -> None:
    base = write_files(tmp_path / "R", {**FILES, "removed/a": b"a", "changed": b"before", "kind": b"file"})
    golden = write_files(
        tmp_path / "golden", {**FILES, "added/b": b"b", "changed": b"after", "kind": "changed", "run": b""}
    )
    (golden / "run").chmod(0o755)
    tree = await unpack_testbed(await make_testbed(base, tmp_path / "cache", golden), tmp_path / "sandbox")
    for revision, folder in (("HEAD~1", base), ("HEAD", golden)):
        reference = make_repository(folder, tmp_path / f"check-{folder.name}")
        assert tree.git("rev-parse", f"{revision}^{{tree}}").strip() == reference.staged_tree()
    assert tree.git("log", "--format=%s %an", "--all") == b"head codetaste\nbase codetaste\n"
    tree.git("diff-index", "--quiet", "HEAD")  # reads no file, so it needs an up-to-date index
    assert tree.git("status", "--porcelain", "--ignored") == b""
    assert tree.git("show", "HEAD~1:changed") == b"before"
    assert (tree.path / "changed").read_bytes() == b"after"
    assert not (tree.path / "removed").exists()
    assert tree.git("fsck", "--unreachable", "--strict", "--no-progress") == b""


async def test_testbed_is_cached_by_the_order_of_its_trees(tmp_path: Path) -> None:
    one, other = (write_files(tmp_path / name, {"a": name.encode()}) for name in ("one", "other"))
    made = [await make_testbed(one, tmp_path / "cache", other) for _ in range(2)]
    assert made[0] == made[1]
    again = await make_testbed(one, tmp_path / "elsewhere", other)
    assert again.commit == made[0].commit
    assert filecmp.cmp(again.folder / "testbed.tar", made[0].folder / "testbed.tar", shallow=False)
    orders = [made[0], await make_testbed(other, tmp_path / "cache", one)]
    orders += [await make_testbed(tree, tmp_path / "cache") for tree in (one, other)]
    assert len({testbed.commit for testbed in orders}) == len({testbed.folder for testbed in orders}) == 4


async def test_empty_base_gives_a_testbed(tmp_path: Path) -> None:
    tree = await unpack_testbed(
        await make_testbed(write_files(tmp_path / "R", {}), tmp_path / "cache"), tmp_path / "sandbox"
    )
    assert tree.git("status", "--porcelain") == b""
    assert tree.git("ls-tree", "HEAD") == b""


async def test_hooks_and_settings_of_host_are_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    template = write_files(
        tmp_path / "template", {"hooks/post-checkout": b"#!/bin/sh\ntouch ran\n", "extra": b""}
    )
    settings = write_files(tmp_path, {"settings": b"[init]\n\ttemplateDir = %b\n" % os.fsencode(template)})
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(settings / "settings"))
    monkeypatch.setenv("GIT_TEMPLATE_DIR", str(template))
    base = write_files(tmp_path / "R", {"a": b"a"})
    tree = await unpack_testbed(await make_testbed(base, tmp_path / "cache"), tmp_path / "sandbox")
    assert not (tree.path / ".git/hooks").exists()
    assert not (tree.path / ".git/extra").exists()
