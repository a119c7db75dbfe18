"""Trees from local clones: exact, safe, with clear errors for what is missing."""

from __future__ import annotations

import subprocess
from pathlib import Path

import anyio
import pytest

from codetaste.errors import SourceError, ToolMissing, UnsafeArchive
from codetaste.source.checkout import Trees, checkout_trees
from codetaste.source.origin import GitOrigin
from codetaste.source.repository import open_repository
from support.source.repositories import ENVIRONMENT, contents, make_repository


def export_tree(clone: Path, commit: str, into: Path) -> Path:
    async def main() -> None:
        await (await open_repository(clone)).export(commit, into)

    anyio.run(main)
    return into


def checkout(clone: Path | str, base: str, golden: str, cache: Path) -> Trees:
    async def main() -> Trees:
        return await checkout_trees(GitOrigin(str(clone), base, golden), cache)

    return anyio.run(main)


def test_tree_has_exactly_the_committed_files(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "clone")
    (repository.path / "run.sh").write_text("#!/bin/sh\n")
    (repository.path / "run.sh").chmod(0o755)
    (repository.path / "loop").symlink_to("loop")
    (repository.path / "out").symlink_to("/etc/./x/")
    commit = repository.commit(
        {
            b"caf\xe9/\xff\xfe.txt": b"latin\n",
            b"crlf.txt": b"a\r\nb\r\n",
            b"version.txt": b"$Format:%H$ $Id$\n",
            b"secret/hidden.txt": b"not exported by git archive\n",
            b"new\nline": b"",
            b".gitattributes": b"* text=auto eol=crlf ident\n"
            b"version.txt export-subst\nsecret export-ignore\n",
            b".gitignore": b"crlf.txt\n",
        }
    )
    tree = export_tree(repository.path, commit, tmp_path / "tree")
    assert contents(tree) == {
        b"run.sh": ("program", b"#!/bin/sh\n"),
        b"loop": ("link", b"loop"),
        b"out": ("link", b"/etc/./x/"),
        b"caf\xe9/\xff\xfe.txt": ("file", b"latin\n"),
        b"crlf.txt": ("file", show_blob(repository.path, commit, "crlf.txt")),
        b"version.txt": ("file", b"$Format:%H$ $Id$\n"),
        b"secret/hidden.txt": ("file", b"not exported by git archive\n"),
        b"new\nline": ("file", b""),
        b".gitattributes": contents(repository.path)[b".gitattributes"],
        b".gitignore": ("file", b"crlf.txt\n"),
    }


def show_blob(clone: Path, commit: str, name: str) -> bytes:
    return subprocess.run(
        ["git", "-C", str(clone), "cat-file", "blob", f"{commit}:{name}"],
        capture_output=True,
        check=True,
        env=ENVIRONMENT,
    ).stdout


def test_a_clone_may_be_bare_a_link_or_a_linked_work_tree(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "clone")
    base = repository.commit({b"a": b"1"})
    golden = repository.commit({b"a": b"2"})
    repository.git("clone", "--quiet", "--bare", ".", str(tmp_path / "bare"))
    repository.git("worktree", "add", "--quiet", str(tmp_path / "linked"), base)
    (tmp_path / "link").symlink_to("bare")
    for name in ("clone", "bare", "link", "linked", "clone/.git"):
        trees = checkout(tmp_path / name, base, golden, tmp_path / "cache" / name)
        assert (trees.base / "a").read_text() == "1"
        assert (trees.golden / "a").read_text() == "2"
        assert trees.base_digest != trees.golden_digest
    trees = checkout(f"file://{tmp_path}/bare", base, golden, tmp_path / "again")
    assert (trees.golden / "a").read_text() == "2"


def test_submodule_is_an_empty_folder_and_tree_has_no_git_folder(tmp_path: Path) -> None:
    inner = make_repository(tmp_path / "inner")
    head = inner.commit({b"x": b"x"})
    repository = make_repository(tmp_path / "clone")
    repository.commit({b"a": b"a"})
    repository.git("update-index", "--add", "--cacheinfo", f"160000,{head},sub")
    repository.git("commit", "--quiet", "--message", "sub")
    tree = export_tree(repository.path, repository.git("rev-parse", "HEAD"), tmp_path / "tree")
    assert sorted(path.name for path in tree.iterdir()) == ["a", "sub"]
    assert list((tree / "sub").iterdir()) == []


def test_file_of_a_hundred_megabytes_is_exported(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "clone")
    commit = repository.commit({b"big.bin": b"\0" * 100_000_000})
    assert (export_tree(repository.path, commit, tmp_path / "tree") / "big.bin").stat().st_size == 100_000_000


@pytest.mark.parametrize("name", [b".git", b".GIT", b"..", b"git~1", ".g\u200cit".encode(), b"."])
def test_a_hostile_name_in_a_tree_is_refused(tmp_path: Path, name: bytes) -> None:
    repository = make_repository(tmp_path / "clone")
    inner = repository.tree(("100644", b"config", repository.blob(b"x")))
    commit = repository.commit_tree(
        repository.tree(("40000", b"sub", repository.tree(("40000", name, inner))))
    )
    if name == b".":  # the folder itself
        assert contents(export_tree(repository.path, commit, tmp_path / "in/tree")) == {
            b"sub/config": ("file", b"x")
        }
        return
    with pytest.raises(UnsafeArchive, match="config"):
        export_tree(repository.path, commit, tmp_path / "in/tree")


def test_a_file_below_a_link_of_the_same_name_is_refused(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "clone")
    outside = tmp_path / "outside"
    outside.mkdir()
    inner = repository.tree(("100644", b"planted", repository.blob(b"x")))
    commit = repository.commit_tree(
        repository.tree(("120000", b"a", repository.blob(bytes(outside))), ("40000", b"a", inner))
    )
    with pytest.raises(UnsafeArchive, match="'a/planted' lies below 'a', which is a symbolic link"):
        export_tree(repository.path, commit, tmp_path / "tree")
    assert list(outside.iterdir()) == []


def test_missing_commit_error_names_the_clone_to_update(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "clone")
    repository.commit({b"a": b"1"})
    with pytest.raises(
        SourceError, match=rf"{repository.path} has no commit {'0' * 40}; .*git -C .* fetch --all"
    ):
        checkout(repository.path, "0" * 40, "1" * 40, tmp_path / "cache")
    with pytest.raises(SourceError, match="not a full commit hash"):
        checkout(repository.path, "--output=x", "1" * 40, tmp_path / "cache")


def test_tree_object_is_not_a_commit(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "clone")
    repository.commit({b"a": b"1"})
    with pytest.raises(SourceError, match="has no commit"):
        checkout(repository.path, repository.git("rev-parse", "HEAD^{tree}"), "1" * 40, tmp_path / "cache")


def test_shallow_clone_error_suggests_unshallow(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "clone")
    base = repository.commit({b"a": b"1"})
    golden = repository.commit({b"a": b"2"})
    repository.git("clone", "--quiet", "--depth=1", f"file://{repository.path}", str(tmp_path / "shallow"))
    with pytest.raises(
        SourceError, match=rf"has no commit {base}; it is a shallow clone: git -C .* fetch --unshallow"
    ):
        checkout(tmp_path / "shallow", base, golden, tmp_path / "cache")


def test_partial_clone_is_reported_and_not_completed(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "clone")
    commit = repository.commit({b"a": b"1"})
    clone = tmp_path / "partial"
    repository.git(
        "clone", "--quiet", "--no-checkout", "--filter=blob:none", f"file://{repository.path}", str(clone)
    )
    with pytest.raises(SourceError, match=r"missing.*partial clone: git -C .* fetch --refetch"):
        export_tree(clone, commit, tmp_path / "tree")
    subprocess.run(
        ["git", "-C", str(clone), "fetch", "--quiet", "--refetch", "--no-filter"], check=True, env=ENVIRONMENT
    )
    assert contents(export_tree(clone, commit, tmp_path / "whole")) == {b"a": ("file", b"1")}


def test_non_repository_is_rejected_even_inside_another(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "clone")
    commit = repository.commit({b"sub/a": b"1"})
    with pytest.raises(SourceError, match="is not a git repository"):
        checkout(repository.path / "sub", commit, commit, tmp_path / "cache")
    with pytest.raises(SourceError, match="no such folder"):
        checkout(repository.path / "nothing", commit, commit, tmp_path / "cache")


def test_damaged_object_is_reported(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "clone")
    commit = repository.commit({b"a": b"1", b"b": b"2"})
    right, wrong = (repository.git("rev-parse", f"{commit}:{name}") for name in "ab")
    objects = repository.path / ".git/objects"
    stored = objects / right[:2] / right[2:]
    stored.chmod(0o644)
    stored.write_bytes((objects / wrong[:2] / wrong[2:]).read_bytes())
    with pytest.raises(SourceError, match="'a'"):
        export_tree(repository.path, commit, tmp_path / "tree")


def test_configuration_of_a_clone_starts_no_program(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "clone")
    commit = repository.commit({b"a": b"1", b".gitattributes": b"* filter=evil diff=evil\n"})
    mark = tmp_path / "ran"
    for key in (
        "core.fsmonitor",
        "core.sshCommand",
        "core.pager",
        "filter.evil.smudge",
        "filter.evil.process",
    ):
        repository.git("config", key, f"touch {mark}; cat")
    hook = repository.path / ".git/hooks/post-checkout"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\ntouch {mark}\n")
    hook.chmod(0o755)
    export_tree(repository.path, commit, tmp_path / "tree")
    assert not mark.exists()


def test_missing_git_error_explains_installation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ToolMissing, match="apt-get install git"):
        checkout(tmp_path, "0" * 40, "1" * 40, tmp_path / "cache")
