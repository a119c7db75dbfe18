"""Java sources of a commit, from git's objects."""

from __future__ import annotations

from pathlib import Path

import pytest

from codetaste.errors import SourceError
from codetaste.source.repository import open_repository
from codetaste.swe_refactor.enrich.sources import export_java_files, read_changed_sources
from support.source.repositories import make_repository
from support.swe_refactor.history import AFTER, BEFORE, CALLER, make_history

pytestmark = pytest.mark.anyio


async def test_the_changed_java_files_have_both_texts(tmp_path: Path) -> None:
    path, commit = make_history(tmp_path / "repository")
    changed = await read_changed_sources(await open_repository(path), commit)
    assert changed.before == {name: BEFORE[name] for name in AFTER}
    assert changed.after == AFTER


async def test_added_deleted_renamed_and_odd_files_are_on_their_sides(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "repository")
    repository.commit(
        {b"Old.java": b"class Old {}", b"Gone.java": b"\xff", b"A B\xc3\xa9.java": b"1", b"x.txt": b"1"}
    )
    (repository.path / "Old.java").rename(repository.path / "New.java")
    (repository.path / "Gone.java").unlink()
    (repository.path / "Link.java").symlink_to("New.java")
    commit = repository.commit({"A Bé.java".encode(): b"2", b"x.txt": b"2", b"Empty.java": b""})
    changed = await read_changed_sources(await open_repository(repository.path), commit)
    assert changed.before == {"Old.java": "class Old {}", "Gone.java": "\ufffd", "A Bé.java": "1"}
    assert changed.after == {"New.java": "class Old {}", "A Bé.java": "2", "Empty.java": ""}


async def test_only_regular_java_files_are_exported(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "repository")
    (repository.path / "Link.java").symlink_to("/etc/hostname")
    commit = repository.commit({b"a/A.java": b"class A {}", b"a/A.kt": b"", b"B.java": b""})
    await export_java_files(await open_repository(repository.path), commit, tmp_path / "tree")
    found = {
        str(path.relative_to(tmp_path / "tree")) for path in (tmp_path / "tree").rglob("*") if path.is_file()
    }
    assert found == {"a/A.java", "B.java"}


async def test_a_first_commit_and_a_missing_one_are_named(tmp_path: Path) -> None:
    path, commit = make_history(tmp_path / "repository")
    repository = await open_repository(path)
    parent = (await read_changed_sources(repository, commit)).parent
    with pytest.raises(SourceError, match="has no parent here"):
        await read_changed_sources(repository, parent)
    for missing in ("f" * 40, "no commit"):
        with pytest.raises(SourceError, match=r"has no (complete tree of|commit)"):
            await read_changed_sources(repository, missing)
        with pytest.raises(SourceError, match="has no complete tree of"):
            await export_java_files(repository, missing, tmp_path / "none")
    assert CALLER in BEFORE
