"""A fetched benchmark is complete, checked and installed in one step; hostile archives are refused."""

from __future__ import annotations

import fcntl
import hashlib
import io
import json
import os
import re
import zipfile
from pathlib import Path
from typing import Any

import anyio
import pytest

from codetaste.benchmark.instance import Instance
from codetaste.benchmark.release.fetch import (
    MANIFEST_FILE,
    RELEASES,
    FetchedBenchmark,
    Release,
    fetch_benchmark,
)
from codetaste.errors import CodetasteError, ConfigError, SourceError, UnsafeArchive
from support.source.release_server import (
    INSTANCES,
    ServedFile,
    release_files,
    serving,
    write_files,
    zip_files,
)

FILES = release_files()
RELEASE = Release("made", "http://127.0.0.1:9/never-requested", instances=2)


def fetch(to: Path, source: str | Path = "", release: Release = RELEASE, **options: Any) -> FetchedBenchmark:
    return anyio.run(lambda: fetch_benchmark(release, to, source=str(source), **options))


def fetch_error(to: Path, source: str | Path, kind: type[CodetasteError], **options: Any) -> str:
    with pytest.raises(kind) as raised:
        fetch(to, source, **options)
    assert not to.exists()
    return str(raised.value)


def write_archive(tmp_path: Path, content: bytes) -> Path:
    path = tmp_path / "release.zip"
    path.write_bytes(content)
    return path


def test_the_release_is_downloaded_checked_and_unpacked(tmp_path: Path) -> None:
    content = zip_files(FILES)
    with serving(ServedFile(content, faults=[len(content) // 2])) as served:
        fetched = fetch(tmp_path / "to", release=Release("made", served.url, 2))
    assert (fetched.new, fetched.verified, fetched.sha256) == (
        True,
        False,
        hashlib.sha256(content).hexdigest(),
    )
    assert (fetched.inventory.instances, fetched.inventory.missing, fetched.inventory.missing_for_tests) == (
        2,
        (),
        (),
    )
    found = {p.relative_to(fetched.folder).as_posix() for p in fetched.folder.rglob("*") if p.is_file()}
    assert found == {*FILES, MANIFEST_FILE}
    manifest = json.loads((fetched.folder / MANIFEST_FILE).read_text())
    assert (manifest["source"], manifest["sha256"], manifest["verified"]) == (
        served.url,
        fetched.sha256,
        False,
    )
    assert list(tmp_path.iterdir()) == [fetched.folder]


def test_local_archive_or_folder_replaces_the_download(tmp_path: Path) -> None:
    one = fetch(
        tmp_path / "one", write_archive(tmp_path, zip_files({f"top/{n}": c for n, c in FILES.items()}))
    )
    two = fetch(tmp_path / "two", write_files(FILES, tmp_path / "folder"))
    for fetched in (one, two):
        assert all((fetched.folder / name).read_bytes() == content for name, content in FILES.items())


def test_second_fetch_compares_with_the_installed_benchmark(tmp_path: Path) -> None:
    path, to = write_archive(tmp_path, zip_files(FILES)), tmp_path / "to"
    first = fetch(to, path)
    again = fetch(to, path)
    assert (again.new, again.sha256, again.source) == (False, first.sha256, str(path))
    # Without a local source there is nothing to compare with, and nothing is downloaded.
    assert fetch(to).new is False
    path.write_bytes(zip_files(FILES | {"assets/more": b"1"}))
    with pytest.raises(ConfigError, match="has other content"):
        fetch(to, path)
    (to / "instances.csv").unlink()
    with pytest.raises(ConfigError, match=r"instances\.csv"):
        fetch(to)


def test_fetch_cancelled_while_waiting_leaves_other_fetch_folder(tmp_path: Path) -> None:
    other_folder = tmp_path / ".to.fetch"
    other_folder.mkdir()

    async def cancelled_fetch() -> None:
        with anyio.move_on_after(0.2) as scope:
            await fetch_benchmark(RELEASE, tmp_path / "to", source=str(tmp_path))
        assert scope.cancelled_caught

    lock = os.open(tmp_path, os.O_RDONLY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        anyio.run(cancelled_fetch)
    finally:
        os.close(lock)
    assert other_folder.is_dir()


def test_known_digest_decides(tmp_path: Path) -> None:
    content = zip_files(FILES)
    path = write_archive(tmp_path, content)
    right = hashlib.sha256(content).hexdigest()
    assert "the release's is 00" in fetch_error(
        tmp_path / "to", path, SourceError, release=Release("made", "http://127.0.0.1:9/", 2, "0" * 64)
    )
    assert fetch(tmp_path / "to", path, Release("made", "http://127.0.0.1:9/", 2, right)).verified


def test_incomplete_archive_is_refused_unless_allowed(tmp_path: Path) -> None:
    one = INSTANCES[0].path
    files = {name: content for name, content in FILES.items() if f"{one}/description.md" not in name}
    files[f"assets/rules/{one}/rules_negative.yml"] = b""
    del files[f"instance_images/{one}/scripts/run_tests"]
    path, to = write_archive(tmp_path, zip_files(files)), tmp_path / "to"
    message = fetch_error(to, path, ConfigError)
    assert f"assets/descriptions/{one}/description.md" in message
    assert "--incomplete accepts it as it is" in message
    fetched = fetch(to, path, incomplete=True)
    assert (len(fetched.inventory.missing), len(fetched.inventory.missing_for_tests)) == (2, 1)
    assert all(
        not line.startswith("/")
        for line in (*fetched.inventory.missing, *fetched.inventory.missing_for_tests)
    )


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"instances.csv": b"a,b\n"}, "the column 'owner' is missing"),
        ({"instances.csv": FILES["instances.csv"].replace(b"a" * 40, b"a" * 39)}, "not a full hash"),
        ({"instances.csv": FILES["instances.csv"].rsplit(b"made,", 1)[0]}, "has 1 instances, expected 2"),
        ({"instances.csv": None}, "instances.csv"),
    ],
)
def test_invalid_table_is_refused(tmp_path: Path, changed: dict[str, Any], message: str) -> None:
    files = {name: content for name, content in (FILES | changed).items() if content is not None}
    assert message in fetch_error(tmp_path / "to", write_archive(tmp_path, zip_files(files)), ConfigError)


def zip_with_link(name: str, target: str) -> bytes:
    packed = io.BytesIO(zip_files(FILES))
    with zipfile.ZipFile(packed, "a") as archive:
        info = zipfile.ZipInfo(name)
        info.external_attr = 0o120777 << 16
        archive.writestr(info, target)
    return packed.getvalue()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (zip_files(FILES | {"../out": b"x"}), "leaves the tree with '..'"),
        (zip_files(FILES | {"/etc/x": b"x"}), "absolute name"),
        (zip_files(FILES | {".git/config": b"x"}), "git directory"),
        (zip_files(FILES | {"INSTANCES.csv": b"x"}), "the same name on a file system without case"),
        (
            zip_files(FILES | {"a/e\u0301": b"x", "a/\u00e9": b"y"}),
            "the same name on a file system without case",
        ),
        (zip_with_link("link", "/etc/passwd"), "symbolic link out of the tree"),
        (zip_with_link("link", "instances.csv"), "is a link or a device"),
        (zip_files(FILES | {"bomb": b"\0" * 70_000_000}), "unpack to more than"),
        (zip_files(FILES)[:-30], "damaged"),
        (b"no archive at all", "damaged"),
    ],
    ids=["up", "absolute", "git", "case", "composed", "link out", "link", "bomb", "cut", "none"],
)
def test_a_hostile_or_damaged_archive_leaves_nothing(tmp_path: Path, content: bytes, message: str) -> None:
    path = write_archive(tmp_path, content)
    assert message in fetch_error(tmp_path / "to", path, SourceError)
    assert [each.name for each in tmp_path.iterdir()] == ["release.zip"]


def test_fetch_damaged_download_is_repeated(tmp_path: Path) -> None:
    with serving(ServedFile(zip_files(FILES)[:-30])) as served:
        release = Release("made", served.url, 2)
        with pytest.raises(SourceError, match="damaged"):
            fetch(tmp_path / "to", release=release)
        served.content = zip_files(FILES)
        assert fetch(tmp_path / "to", release=release).new


def test_links_in_a_local_folder_are_refused(tmp_path: Path) -> None:
    folder = write_files(FILES, tmp_path / "folder")
    (folder / "assets/link").symlink_to("/etc")
    with pytest.raises(UnsafeArchive, match="link"):
        fetch(tmp_path / "to", folder)


def test_known_release_has_the_address_of_its_authors() -> None:
    release = RELEASES["codetaste100"]
    assert re.fullmatch(
        r"https://github\.com/logic-star-ai/[a-z-]+/releases/download/v1\.0\.0/\S+\.zip", release.url
    )
    assert (release.instances, release.sha256) == (100, "")


def test_additional_instance_is_refused(tmp_path: Path) -> None:
    three = (*INSTANCES, Instance("made", "three", "e" * 40, "f" * 40, None, "", "go"))
    assert "has 3 instances" in fetch_error(
        tmp_path / "to", write_archive(tmp_path, zip_files(release_files(three))), ConfigError
    )
