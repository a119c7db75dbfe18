"""Source distributions from a package index are found, retried, checked and cached, but never built."""

from __future__ import annotations

import hashlib
import socket
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest

from codetaste.errors import SourceError, UnsafeArchive
from codetaste.source import sdist as sdist_module
from codetaste.source.checkout import Trees, checkout_trees
from codetaste.source.origin import SdistOrigin
from codetaste.source.sdist import index_url
from support.source.package_index import PackageIndex, sdist, serving
from support.source.repositories import contents

BUILD = "import pathlib; pathlib.Path(__file__).with_name('built').touch(); raise SystemExit('built')\n"
OLD = sdist("demo", "1.0", {"demo.py": "old\n", "setup.py": BUILD})
NEW = sdist("demo", "2.0", {"demo.py": "new\n", "setup.py": BUILD})


@pytest.fixture
def index(monkeypatch: pytest.MonkeyPatch) -> Iterator[PackageIndex]:
    package_index = PackageIndex(
        {"demo-1.0.tar.gz": OLD, "demo-2.0.tar.gz": NEW, "demo-2.0-py3-none-any.whl": b"PK"}
    )
    monkeypatch.setattr("codetaste.source.download._BACK_OFF_S", (0.0, 0.0, 0.0, 0.0))
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    with serving(package_index):
        monkeypatch.setenv("PIP_INDEX_URL", package_index.url)
        yield package_index


def origin(base: bytes = OLD, golden: bytes = NEW) -> SdistOrigin:
    return SdistOrigin(
        "demo", "1.0", "2.0", hashlib.sha256(base).hexdigest(), hashlib.sha256(golden).hexdigest()
    )


def fetch(releases: SdistOrigin, cache: Path) -> Trees:
    async def main() -> Trees:
        return await checkout_trees(releases, cache)

    return anyio.run(main)


@pytest.mark.parametrize("html", [False, True])
@pytest.mark.parametrize("hashes", [False, True])
def test_two_releases_become_two_trees_and_nothing_is_built(
    index: PackageIndex, tmp_path: Path, html: bool, hashes: bool
) -> None:
    index.html, index.hashes = html, hashes
    trees = fetch(origin(), tmp_path)
    assert contents(trees.base) == {b"demo.py": ("file", b"old\n"), b"setup.py": ("file", BUILD.encode())}
    assert contents(trees.golden)[b"demo.py"] == ("file", b"new\n")
    assert not any(path.endswith(".whl") for path in index.requested_paths)


def test_sdist_in_cache_is_not_downloaded_again(index: PackageIndex, tmp_path: Path) -> None:
    first = fetch(origin(), tmp_path)
    requested = list(index.requested_paths)
    assert fetch(origin(), tmp_path) == first
    (first.base / "demo.py").write_text("changed by hand")
    assert fetch(origin(), tmp_path) == first
    assert (first.base / "demo.py").read_text() == "old\n"
    assert index.requested_paths == requested


def test_temporary_faults_are_retried(index: PackageIndex, tmp_path: Path) -> None:
    index.faults = [503, 429, "whole", "cut", 500]
    assert (fetch(origin(), tmp_path).base / "demo.py").read_text() == "old\n"


def test_permanent_faults_are_explained(index: PackageIndex, tmp_path: Path) -> None:
    index.faults = [503] * 5
    with pytest.raises(SourceError, match=r"demo in the package index: no answer after 5 attempts: .*503"):
        fetch(origin(), tmp_path)
    index.faults = ["whole", 403]
    with pytest.raises(SourceError, match=r"demo 1\.0 \(demo-1\.0\.tar\.gz\): the server answered 403"):
        fetch(origin(), tmp_path)
    index.files.pop("demo-1.0.tar.gz")
    with pytest.raises(SourceError, match=r"demo 1\.0: the package index has no source distribution"):
        fetch(origin(), tmp_path)
    with pytest.raises(SourceError, match="not found; check the name"):
        fetch(SdistOrigin("other", "1", "2", "0" * 64, "1" * 64), tmp_path)
    assert list((tmp_path / "trees").iterdir()) == []


@pytest.mark.parametrize("hashes", [False, True])
def test_archive_with_another_hash_is_not_unpacked(index: PackageIndex, tmp_path: Path, hashes: bool) -> None:
    index.hashes = hashes
    index.files["demo-1.0.tar.gz"] = sdist("demo", "1.0", {"demo.py": "tampered"})
    with pytest.raises(SourceError, match=r"demo 1\.0.*sha256"):
        fetch(origin(), tmp_path)
    assert list((tmp_path / "trees").iterdir()) == []
    assert not (tmp_path / "sdists").exists() or list((tmp_path / "sdists").iterdir()) == []


def test_corrupt_archive_in_the_cache_is_fetched_again(index: PackageIndex, tmp_path: Path) -> None:
    releases = origin()
    (tmp_path / "sdists").mkdir()
    (tmp_path / "sdists" / releases.base_sha256).write_bytes(b"corrupt")
    assert (fetch(releases, tmp_path).base / "demo.py").read_text() == "old\n"


def test_hostile_archive_with_the_right_hash_is_refused(index: PackageIndex, tmp_path: Path) -> None:
    evil = sdist("demo", "1.0", {"../../../out": "x"})
    index.files["demo-1.0.tar.gz"] = evil
    with pytest.raises(UnsafeArchive, match=r"demo 1\.0: member 'demo-1\.0/\.\./\.\./\.\./out'"):
        fetch(origin(evil), tmp_path)


def test_invalid_index_page_is_a_one_line_error(index: PackageIndex, tmp_path: Path) -> None:
    index.page = lambda: ("application/vnd.pypi.simple.v1+json", b'{"files": 3')  # type: ignore[method-assign]
    with pytest.raises(SourceError, match="cannot be parsed") as caught:
        fetch(origin(), tmp_path)
    assert "\n" not in str(caught.value)
    index.page = lambda: ("application/vnd.pypi.simple.v1+json", b'{"files": 3}')  # type: ignore[method-assign]
    with pytest.raises(SourceError, match="cannot be parsed"):
        fetch(origin(), tmp_path)


def test_too_large_archive_is_refused(
    index: PackageIndex, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sdist_module, "_ARCHIVE_BYTES", 20)
    with pytest.raises(SourceError, match="more than the limit of 20"):
        fetch(origin(), tmp_path)


def test_sdist_unreachable_index_is_reported(
    index: PackageIndex, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        monkeypatch.setenv("PIP_INDEX_URL", f"http://user:secret@127.0.0.1:{bound.getsockname()[1]}/simple/")
        with pytest.raises(SourceError, match="no answer after 5 attempts") as caught:
            fetch(origin(), tmp_path)
    assert "secret" not in str(caught.value)


def test_index_address_is_read_from_pips_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("PIP_INDEX_URL", raising=False)
    config = tmp_path / "pip.conf"
    config.write_text("[global]\nindex-url = http://mirror.example.org/simple\n")
    monkeypatch.setenv("PIP_CONFIG_FILE", str(config))
    assert index_url() == "http://mirror.example.org/simple/"
    config.write_text("not an ini file")
    assert index_url().startswith("https://")
    monkeypatch.setenv("PIP_INDEX_URL", "ftp://mirror.example.org")
    with pytest.raises(SourceError, match="PIP_INDEX_URL"):
        index_url()


def test_index_works_without_a_home_folder(
    index: PackageIndex, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", "~no-such-user")
    assert contents(fetch(origin(), tmp_path).base)[b"demo.py"] == ("file", b"old\n")
