from pathlib import Path

import anyio
import pytest

from codetaste.errors import SourceError
from codetaste.mining.clones.clone import expand_hash, find_clone, find_clones, open_clone, repository_name
from support.mining.clones import MadeCommit, make_clone

ROOT = MadeCommit({b"a.py": b"1\n"})


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("https://github.com/acme/shop", "acme/shop"),
        ("https://user:secret@example.org/acme/shop.git/", "acme/shop"),
        ("git@github.com:acme/shop.git", "acme/shop"),
        ("ssh://git@example.org:2222/group/acme/shop.git", "acme/shop"),
        ("https://github.com", None),
        ("https://github.com/acme", None),
        ("https://github.com/acme/..", None),
        ("https://github.com/acme/sh op", None),
        ("", None),
    ],
)
def test_the_name_of_a_repository_is_the_end_of_its_url(url: str, name: str | None) -> None:
    assert repository_name(url) == name


@pytest.mark.parametrize(
    ("remotes", "name"),
    [
        ({}, "folder/shop"),
        ({"origin": "https://github.com/acme/store.git"}, "acme/store"),
        ({"fork": "https://github.com/me/fork", "origin": "git@github.com:acme/store"}, "acme/store"),
        ({"upstream": "https://github.com/acme/store"}, "acme/store"),
        ({"origin": "/srv/git/mirror/store"}, "folder/shop"),
        ({"origin": "file:///srv/git/mirror/store"}, "folder/shop"),
    ],
)
def test_a_clone_is_named_by_its_remote_or_else_by_its_folder(
    tmp_path: Path, remotes: dict[str, str], name: str
) -> None:
    made = make_clone(tmp_path / "folder" / "shop.git", [ROOT])
    for remote, url in remotes.items():
        made.repository.git("remote", "add", remote, url)
    clone = anyio.run(open_clone, made.path)
    assert clone.repository == name
    assert anyio.run(open_clone, made.path, "given/name").repository == "given/name"
    assert (clone.shallow, clone.partial) == (frozenset(), False)


def test_a_link_to_a_clone_is_named_by_the_link(tmp_path: Path) -> None:
    made = make_clone(tmp_path / "store+all" / "repo", [ROOT])
    link = tmp_path / "acme" / "shop"
    link.parent.mkdir()
    link.symlink_to(made.path)
    assert anyio.run(open_clone, link).repository == "acme/shop"


def test_a_folder_that_is_no_clone_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="not a git repository"):
        anyio.run(open_clone, tmp_path)


def test_clones_of_a_folder_are_found_by_name(tmp_path: Path) -> None:
    for name in ("acme/shop", "acme/bare.git", "zoo/app", "two words/app", "zoo/-app"):
        make_clone(tmp_path / name, [ROOT])
    (tmp_path / "zoo" / "empty").mkdir()
    (tmp_path / "file").write_text("")
    assert list(find_clones(tmp_path)) == ["acme/bare", "acme/shop", "zoo/app"]
    assert find_clone(tmp_path, "acme/bare") == tmp_path / "acme" / "bare.git"
    assert find_clone(tmp_path, "zoo/empty") is None
    with pytest.raises(SourceError, match="cannot be read"):
        find_clones(tmp_path / "none")


def test_the_beginning_of_a_hash_is_expanded_if_it_is_one_commit(tmp_path: Path) -> None:
    made = make_clone(tmp_path / "acme" / "shop", [ROOT])
    clone = anyio.run(open_clone, made.path)
    (commit,) = made.commits
    made.repository.git("update-ref", "refs/heads/beef", commit)
    blob = made.repository.git("rev-parse", f"{commit}:a.py")
    for digits, expected in ((commit[:8], commit), (commit, commit), (blob, None), ("0" * 40, None)):
        assert anyio.run(expand_hash, clone, digits) == expected
    for text in ("HEAD", "--all", commit[:3], f"{commit}^", ""):
        assert anyio.run(expand_hash, clone, text) is None
