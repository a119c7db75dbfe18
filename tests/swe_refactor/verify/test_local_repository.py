"""Dependencies that jobs have fetched are joined, and nothing leaves the folder."""

from __future__ import annotations

import io
import tarfile
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from codetaste.core.concurrency import gather
from codetaste.errors import SandboxError
from codetaste.swe_refactor.verify.local_repository import LocalRepository, PreparedBuild

pytestmark = pytest.mark.anyio


async def archive(files: dict[str, bytes], *, cut: int | None = None) -> AsyncIterator[bytes]:
    into = io.BytesIO()
    with tarfile.open(fileobj=into, mode="w") as tar:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    yield into.getvalue()[:cut]


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


async def test_files_of_jobs_are_joined_and_existing_ones_stay(tmp_path: Path) -> None:
    local = LocalRepository(tmp_path / "local")
    await local.open()
    tracking = b"# a comment\na-1.pom>codetaste=\n"
    first = {"repository/org/a/1/a-1.jar": b"first", "repository/org/a/1/_remote.repositories": tracking}
    await local.add("maven", archive(first))
    second = {
        "repository/org/a/1/a-1.jar": b"second",
        "repository/org/a/1/_remote.repositories": b"# a comment\na-1.jar>codetaste=\n",
        "repository/org/a/maven-metadata-codetaste.xml": b"<metadata/>",
        "repository/org/b/1/b-1.jar.lastUpdated": b"failed",
        "repository/../../escape": b"",
        "repository/a/.git/config": b"",
    }
    await local.add("maven", archive(second))
    assert contents(local.path("maven")) == {
        "org/a/1/a-1.jar": b"first",
        "org/a/1/_remote.repositories": b"# a comment\na-1.pom>codetaste=\na-1.jar>codetaste=\n",
        "org/a/maven-metadata-codetaste.xml": b"<metadata/>",
    }
    assert {path.name for path in local.folder.iterdir()} == {"maven", "gradle"}


async def test_jobs_write_one_after_the_other_and_what_a_killed_one_left_is_removed(tmp_path: Path) -> None:
    local = LocalRepository(tmp_path / "local")
    await local.open()
    (local.folder / "incoming-killed").mkdir()
    (local.folder / "incoming-killed" / "file").write_bytes(b"a part")
    files = {f"repository/a/{number}.jar": b"%d" % number * 50_000 for number in range(20)}

    async def add() -> None:
        async with local.writing():
            await local.add("maven", archive(files))

    await gather([add, add, add])
    expected = {name.removeprefix("repository/"): content for name, content in files.items()}
    assert contents(local.path("maven")) == expected
    assert {path.name for path in local.folder.iterdir()} == {"maven", "gradle", "lock"}


async def test_damaged_archive_is_one_line_and_leaves_nothing(tmp_path: Path) -> None:
    local = LocalRepository(tmp_path / "local")
    await local.open()
    with pytest.raises(SandboxError, match="the fetched dependencies cannot be read"):
        await local.add("maven", archive({"repository/a.jar": bytes(2000)}, cut=700))
    assert contents(local.folder) == {}


async def test_prepared_build_is_found_by_all_of_its_keys(tmp_path: Path) -> None:
    local = LocalRepository(tmp_path / "local")
    await local.open()
    assert local.find("maven", "a", "b") is None
    prepared = PreparedBuild(11, {8: "/opt/jdk/8", 11: "/opt/jdk/11"}, (3, 9))
    local.record(prepared, "maven", "a", "b")
    assert local.find("maven", "a", "b") == prepared
    assert local.find("maven", "b", "a") is None
    next(local.folder.glob("prepared/*")).write_text("no JSON")
    assert local.find("maven", "a", "b") is None
