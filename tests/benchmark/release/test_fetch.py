"""A benchmark is fetched whole, checked, and put in its place at once; what is hostile is refused."""

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
from support.source.release_server import INSTANCES, Site, laid_out, release_files, serving, zipped

FILES = release_files()
MADE = Release("made", "http://127.0.0.1:9/never-asked", instances=2)


def fetch(to: Path, source: str | Path = "", release: Release = MADE, **more: Any) -> FetchedBenchmark:
    return anyio.run(lambda: fetch_benchmark(release, to, source=str(source), **more))


def refused(to: Path, source: str | Path, kind: type[CodetasteError], **more: Any) -> str:
    with pytest.raises(kind) as raised:
        fetch(to, source, **more)
    assert not to.exists()
    return str(raised.value)


def archive(tmp_path: Path, content: bytes) -> Path:
    path = tmp_path / "release.zip"
    path.write_bytes(content)
    return path


def test_the_release_is_downloaded_checked_and_unpacked(tmp_path: Path) -> None:
    content = zipped(FILES)
    with serving(Site(content, faults=[len(content) // 2])) as site:
        got = fetch(tmp_path / "to", release=Release("made", site.url, 2))
    assert (got.new, got.verified, got.sha256) == (True, False, hashlib.sha256(content).hexdigest())
    assert (got.inventory.instances, got.inventory.missing, got.inventory.missing_for_tests) == (2, (), ())
    found = {p.relative_to(got.folder).as_posix() for p in got.folder.rglob("*") if p.is_file()}
    assert found == {*FILES, MANIFEST_FILE}
    manifest = json.loads((got.folder / MANIFEST_FILE).read_text())
    assert (manifest["source"], manifest["sha256"], manifest["verified"]) == (site.url, got.sha256, False)
    assert list(tmp_path.iterdir()) == [got.folder]


def test_an_archive_or_a_folder_at_hand_is_taken_in_its_place(tmp_path: Path) -> None:
    one = fetch(tmp_path / "one", archive(tmp_path, zipped({f"top/{n}": c for n, c in FILES.items()})))
    two = fetch(tmp_path / "two", laid_out(FILES, tmp_path / "folder"))
    for got in (one, two):
        assert all((got.folder / name).read_bytes() == content for name, content in FILES.items())


def test_a_second_fetch_compares(tmp_path: Path) -> None:
    path, to = archive(tmp_path, zipped(FILES)), tmp_path / "to"
    first = fetch(to, path)
    again = fetch(to, path)
    assert (again.new, again.sha256, again.source) == (False, first.sha256, str(path))
    # Without a name of something at hand there is nothing to compare with, and nothing is downloaded.
    assert fetch(to).new is False
    path.write_bytes(zipped(FILES | {"assets/more": b"1"}))
    with pytest.raises(ConfigError, match="has other content"):
        fetch(to, path)
    (to / "instances.csv").unlink()
    with pytest.raises(ConfigError, match=r"instances\.csv"):
        fetch(to)


def test_fetch_cancelled_while_waiting_leaves_other_fetch_folder(tmp_path: Path) -> None:
    theirs = tmp_path / ".to.fetch"
    theirs.mkdir()

    async def give_up() -> None:
        with anyio.move_on_after(0.2) as scope:
            await fetch_benchmark(MADE, tmp_path / "to", source=str(tmp_path))
        assert scope.cancelled_caught

    held = os.open(tmp_path, os.O_RDONLY)
    try:
        fcntl.flock(held, fcntl.LOCK_EX)
        anyio.run(give_up)
    finally:
        os.close(held)
    assert theirs.is_dir()


def test_a_digest_that_is_known_decides(tmp_path: Path) -> None:
    content = zipped(FILES)
    path = archive(tmp_path, content)
    right = hashlib.sha256(content).hexdigest()
    assert "the release's is 00" in refused(
        tmp_path / "to", path, SourceError, release=Release("made", "http://127.0.0.1:9/", 2, "0" * 64)
    )
    assert fetch(tmp_path / "to", path, Release("made", "http://127.0.0.1:9/", 2, right)).verified


def test_what_is_not_all_of_it_is_refused_unless_it_is_wanted(tmp_path: Path) -> None:
    one = INSTANCES[0].path
    files = {name: content for name, content in FILES.items() if f"{one}/description.md" not in name}
    files[f"assets/rules/{one}/rules_negative.yml"] = b""
    del files[f"instance_images/{one}/scripts/run_tests"]
    path, to = archive(tmp_path, zipped(files)), tmp_path / "to"
    said = refused(to, path, ConfigError)
    assert f"assets/descriptions/{one}/description.md" in said
    assert "--incomplete accepts it as it is" in said
    got = fetch(to, path, incomplete=True)
    assert (len(got.inventory.missing), len(got.inventory.missing_for_tests)) == (2, 1)
    assert all(
        not line.startswith("/") for line in (*got.inventory.missing, *got.inventory.missing_for_tests)
    )


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"instances.csv": b"a,b\n"}, "the column 'owner' is missing"),
        ({"instances.csv": FILES["instances.csv"].replace(b"a" * 40, b"a" * 39)}, "not a full hash"),
        ({"instances.csv": FILES["instances.csv"].rsplit(b"made,", 1)[0]}, "has 1 instances, expected 2"),
        ({"instances.csv": None}, "instances.csv"),
    ],
)
def test_a_table_that_is_wrong_is_refused(tmp_path: Path, changed: dict[str, Any], said: str) -> None:
    files = {name: content for name, content in (FILES | changed).items() if content is not None}
    assert said in refused(tmp_path / "to", archive(tmp_path, zipped(files)), ConfigError)


def linked(name: str, target: str) -> bytes:
    packed = io.BytesIO(zipped(FILES))
    with zipfile.ZipFile(packed, "a") as archive:
        info = zipfile.ZipInfo(name)
        info.external_attr = 0o120777 << 16
        archive.writestr(info, target)
    return packed.getvalue()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (zipped(FILES | {"../out": b"x"}), "leaves the tree with '..'"),
        (zipped(FILES | {"/etc/x": b"x"}), "absolute name"),
        (zipped(FILES | {".git/config": b"x"}), "git directory"),
        (zipped(FILES | {"INSTANCES.csv": b"x"}), "the same name on a file system without case"),
        (
            zipped(FILES | {"a/e\u0301": b"x", "a/\u00e9": b"y"}),
            "the same name on a file system without case",
        ),
        (linked("link", "/etc/passwd"), "symbolic link out of the tree"),
        (linked("link", "instances.csv"), "is a link or a device"),
        (zipped(FILES | {"bomb": b"\0" * 70_000_000}), "unpack to more than"),
        (zipped(FILES)[:-30], "damaged"),
        (b"no archive at all", "damaged"),
    ],
    ids=["up", "absolute", "git", "case", "composed", "link out", "link", "bomb", "cut", "none"],
)
def test_a_hostile_or_damaged_archive_leaves_nothing(tmp_path: Path, content: bytes, said: str) -> None:
    path = archive(tmp_path, content)
    assert said in refused(tmp_path / "to", path, SourceError)
    assert [each.name for each in tmp_path.iterdir()] == ["release.zip"]


def test_fetch_damaged_download_is_repeated(tmp_path: Path) -> None:
    with serving(Site(zipped(FILES)[:-30])) as site:
        release = Release("made", site.url, 2)
        with pytest.raises(SourceError, match="damaged"):
            fetch(tmp_path / "to", release=release)
        site.content = zipped(FILES)
        assert fetch(tmp_path / "to", release=release).new


def test_links_in_a_folder_at_hand_are_refused(tmp_path: Path) -> None:
    folder = laid_out(FILES, tmp_path / "folder")
    (folder / "assets/link").symlink_to("/etc")
    with pytest.raises(UnsafeArchive, match="link"):
        fetch(tmp_path / "to", folder)


def test_the_known_release_is_what_its_authors_name() -> None:
    release = RELEASES["codetaste100"]
    assert re.fullmatch(
        r"https://github\.com/logic-star-ai/[a-z-]+/releases/download/v1\.0\.0/\S+\.zip", release.url
    )
    assert (release.instances, release.sha256) == (100, "")


def test_an_unrelated_instance_is_no_stand_in(tmp_path: Path) -> None:
    three = (*INSTANCES, Instance("made", "three", "e" * 40, "f" * 40, None, "", "go"))
    assert "has 3 instances" in refused(
        tmp_path / "to", archive(tmp_path, zipped(release_files(three))), ConfigError
    )
