"""Trees out of clones on disk: exact, safe, and clear about what is missing."""

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


def export(clone: Path, commit: str, into: Path) -> Path:
    async def main() -> None:
        await (await open_repository(clone)).export(commit, into)

    anyio.run(main)
    return into


def both(clone: Path | str, base: str, golden: str, cache: Path) -> Trees:
    async def main() -> Trees:
        return await checkout_trees(GitOrigin(str(clone), base, golden), cache)

    return anyio.run(main)


def test_a_tree_is_exactly_what_was_committed(tmp_path: Path) -> None:
    made = make_repository(tmp_path / "clone")
    (made.path / "run.sh").write_text("#!/bin/sh\n")
    (made.path / "run.sh").chmod(0o755)
    (made.path / "loop").symlink_to("loop")
    (made.path / "out").symlink_to("/etc/./x/")
    commit = made.commit(
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
    tree = export(made.path, commit, tmp_path / "tree")
    assert contents(tree) == {
        b"run.sh": ("program", b"#!/bin/sh\n"),
        b"loop": ("link", b"loop"),
        b"out": ("link", b"/etc/./x/"),
        b"caf\xe9/\xff\xfe.txt": ("file", b"latin\n"),
        b"crlf.txt": ("file", subprocess_show(made.path, commit, "crlf.txt")),
        b"version.txt": ("file", b"$Format:%H$ $Id$\n"),
        b"secret/hidden.txt": ("file", b"not exported by git archive\n"),
        b"new\nline": ("file", b""),
        b".gitattributes": contents(made.path)[b".gitattributes"],
        b".gitignore": ("file", b"crlf.txt\n"),
    }


def subprocess_show(clone: Path, commit: str, name: str) -> bytes:
    return subprocess.run(
        ["git", "-C", str(clone), "cat-file", "blob", f"{commit}:{name}"],
        capture_output=True,
        check=True,
        env=ENVIRONMENT,
    ).stdout


def test_a_clone_may_be_bare_a_link_or_a_linked_work_tree(tmp_path: Path) -> None:
    made = make_repository(tmp_path / "clone")
    base = made.commit({b"a": b"1"})
    golden = made.commit({b"a": b"2"})
    made.git("clone", "--quiet", "--bare", ".", str(tmp_path / "bare"))
    made.git("worktree", "add", "--quiet", str(tmp_path / "linked"), base)
    (tmp_path / "link").symlink_to("bare")
    for name in ("clone", "bare", "link", "linked", "clone/.git"):
        trees = both(tmp_path / name, base, golden, tmp_path / "cache" / name)
        assert (trees.base / "a").read_text() == "1"
        assert (trees.golden / "a").read_text() == "2"
        assert trees.base_digest != trees.golden_digest
    trees = both(f"file://{tmp_path}/bare", base, golden, tmp_path / "again")
    assert (trees.golden / "a").read_text() == "2"


def test_a_submodule_is_an_empty_folder_and_a_tree_has_no_git_folder(tmp_path: Path) -> None:
    inner = make_repository(tmp_path / "inner")
    head = inner.commit({b"x": b"x"})
    made = make_repository(tmp_path / "clone")
    made.commit({b"a": b"a"})
    made.git("update-index", "--add", "--cacheinfo", f"160000,{head},sub")
    made.git("commit", "--quiet", "--message", "sub")
    tree = export(made.path, made.git("rev-parse", "HEAD"), tmp_path / "tree")
    assert sorted(path.name for path in tree.iterdir()) == ["a", "sub"]
    assert list((tree / "sub").iterdir()) == []


def test_a_hundred_megabytes_in_one_file_are_ordinary_data(tmp_path: Path) -> None:
    made = make_repository(tmp_path / "clone")
    commit = made.commit({b"big.bin": b"\0" * 100_000_000})
    assert (export(made.path, commit, tmp_path / "tree") / "big.bin").stat().st_size == 100_000_000


@pytest.mark.parametrize("name", [b".git", b".GIT", b"..", b"git~1", ".g\u200cit".encode(), b"."])
def test_a_hostile_name_in_a_tree_is_refused(tmp_path: Path, name: bytes) -> None:
    made = make_repository(tmp_path / "clone")
    inner = made.tree(("100644", b"config", made.blob(b"x")))
    commit = made.commit_tree(made.tree(("40000", b"sub", made.tree(("40000", name, inner)))))
    if name == b".":  # means the folder itself
        assert contents(export(made.path, commit, tmp_path / "in/tree")) == {b"sub/config": ("file", b"x")}
        return
    with pytest.raises(UnsafeArchive, match="config"):
        export(made.path, commit, tmp_path / "in/tree")


def test_a_file_below_a_link_of_the_same_name_is_refused(tmp_path: Path) -> None:
    made = make_repository(tmp_path / "clone")
    outside = tmp_path / "outside"
    outside.mkdir()
    inner = made.tree(("100644", b"planted", made.blob(b"x")))
    commit = made.commit_tree(made.tree(("120000", b"a", made.blob(bytes(outside))), ("40000", b"a", inner)))
    with pytest.raises(UnsafeArchive, match="'a/planted' lies below 'a', which is a symbolic link"):
        export(made.path, commit, tmp_path / "tree")
    assert list(outside.iterdir()) == []


def test_a_commit_that_is_not_there_says_which_clone_to_bring_up_to_date(tmp_path: Path) -> None:
    made = make_repository(tmp_path / "clone")
    made.commit({b"a": b"1"})
    with pytest.raises(SourceError, match=rf"{made.path} has no commit {'0' * 40}; .*git -C .* fetch --all"):
        both(made.path, "0" * 40, "1" * 40, tmp_path / "cache")
    with pytest.raises(SourceError, match="not a full commit hash"):
        both(made.path, "--output=x", "1" * 40, tmp_path / "cache")


def test_a_tree_object_is_no_commit(tmp_path: Path) -> None:
    made = make_repository(tmp_path / "clone")
    made.commit({b"a": b"1"})
    with pytest.raises(SourceError, match="has no commit"):
        both(made.path, made.git("rev-parse", "HEAD^{tree}"), "1" * 40, tmp_path / "cache")


def test_shallow_clone_error_suggests_unshallow(tmp_path: Path) -> None:
    made = make_repository(tmp_path / "clone")
    base = made.commit({b"a": b"1"})
    golden = made.commit({b"a": b"2"})
    made.git("clone", "--quiet", "--depth=1", f"file://{made.path}", str(tmp_path / "shallow"))
    with pytest.raises(
        SourceError, match=rf"has no commit {base}; it is a shallow clone: git -C .* fetch --unshallow"
    ):
        both(tmp_path / "shallow", base, golden, tmp_path / "cache")


def test_a_partial_clone_is_reported_and_never_completed_behind_ones_back(tmp_path: Path) -> None:
    made = make_repository(tmp_path / "clone")
    commit = made.commit({b"a": b"1"})
    clone = tmp_path / "partial"
    made.git("clone", "--quiet", "--no-checkout", "--filter=blob:none", f"file://{made.path}", str(clone))
    with pytest.raises(SourceError, match=r"missing.*partial clone: git -C .* fetch --refetch"):
        export(clone, commit, tmp_path / "tree")
    subprocess.run(
        ["git", "-C", str(clone), "fetch", "--quiet", "--refetch", "--no-filter"], check=True, env=ENVIRONMENT
    )
    assert contents(export(clone, commit, tmp_path / "whole")) == {b"a": ("file", b"1")}


def test_non_repository_is_rejected_even_inside_another(tmp_path: Path) -> None:
    made = make_repository(tmp_path / "clone")
    commit = made.commit({b"sub/a": b"1"})
    with pytest.raises(SourceError, match="is not a git repository"):
        both(made.path / "sub", commit, commit, tmp_path / "cache")
    with pytest.raises(SourceError, match="no such folder"):
        both(made.path / "nothing", commit, commit, tmp_path / "cache")


def test_a_damaged_object_is_found(tmp_path: Path) -> None:
    made = make_repository(tmp_path / "clone")
    commit = made.commit({b"a": b"1", b"b": b"2"})
    right, wrong = (made.git("rev-parse", f"{commit}:{name}") for name in "ab")
    objects = made.path / ".git/objects"
    stored = objects / right[:2] / right[2:]
    stored.chmod(0o644)
    stored.write_bytes((objects / wrong[:2] / wrong[2:]).read_bytes())
    with pytest.raises(SourceError, match="'a'"):
        export(made.path, commit, tmp_path / "tree")


def test_a_clones_own_configuration_starts_no_program(tmp_path: Path) -> None:
    made = make_repository(tmp_path / "clone")
    commit = made.commit({b"a": b"1", b".gitattributes": b"* filter=evil diff=evil\n"})
    mark = tmp_path / "ran"
    for key in (
        "core.fsmonitor",
        "core.sshCommand",
        "core.pager",
        "filter.evil.smudge",
        "filter.evil.process",
    ):
        made.git("config", key, f"touch {mark}; cat")
    hook = made.path / ".git/hooks/post-checkout"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\ntouch {mark}\n")
    hook.chmod(0o755)
    export(made.path, commit, tmp_path / "tree")
    assert not mark.exists()


def test_missing_git_error_explains_installation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ToolMissing, match="apt-get install git"):
        both(tmp_path, "0" * 40, "1" * 40, tmp_path / "cache")
