"""A large file comes whole or not at all, and never twice what has come once; traffic is loopback only."""

from __future__ import annotations

import hashlib
import random
from pathlib import Path

import anyio
import pytest

from codetaste.errors import SourceError
from codetaste.source.download import Download, DownloadedFile, make_download_client
from support.source.release_server import Site, serving

CONTENT = random.Random(1).randbytes(300_000)


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("codetaste.source.download._BACK_OFF_S", (0.0, 0.0))


def get(site: Site, path: Path, **more: object) -> DownloadedFile:
    return fetch(Download(site.url, path, **more))  # type: ignore[arg-type]


def fetch(wanted: Download) -> DownloadedFile:
    async def main() -> DownloadedFile:
        async with make_download_client() as http:
            return await wanted.run(http)

    return anyio.run(main)


def test_a_file_comes_whole_with_its_digest_and_progress(tmp_path: Path) -> None:
    seen: list[tuple[int, int | None]] = []
    with serving(Site(CONTENT)) as site:
        got = get(site, tmp_path / "f", progress=lambda done, total: seen.append((done, total)))
    assert got.sha256 == hashlib.sha256(CONTENT).hexdigest()
    assert got.path.read_bytes() == CONTENT
    assert (seen[0], seen[-1]) == ((0, len(CONTENT)), (len(CONTENT), len(CONTENT)))


def test_download_broken_connection_resumes(tmp_path: Path) -> None:
    with serving(Site(CONTENT, faults=[100_000, 50_000])) as site:
        assert get(site, tmp_path / "f").path.read_bytes() == CONTENT
        assert site.asked == ["", "bytes=100000-", "bytes=150000-"]


def test_download_resumes_partial_file_of_earlier_call(tmp_path: Path) -> None:
    with serving(Site(CONTENT, faults=[100_000, 503, 503, 503])) as site:
        with pytest.raises(SourceError, match=r"answered 503; the partial file stays"):
            get(site, tmp_path / "f")
        assert get(site, tmp_path / "f").path.read_bytes() == CONTENT
        assert site.asked[-1] == "bytes=100000-"
        # Whole already: nothing is sent again.
        assert get(site, tmp_path / "f").sha256 == hashlib.sha256(CONTENT).hexdigest()
        assert site.asked[-1] == f"bytes={len(CONTENT)}-"


@pytest.mark.parametrize(
    "site", [Site(CONTENT, ranges=False), Site(CONTENT, etag=""), Site(CONTENT, etag='W/"1"')]
)
def test_download_possibly_changed_file_restarts(tmp_path: Path, site: Site) -> None:
    site.faults = [100_000]
    with serving(site):
        assert get(site, tmp_path / "f").path.read_bytes() == CONTENT


def test_download_file_replaced_meanwhile_restarts(tmp_path: Path) -> None:
    with serving(Site(b"old" * 99_999, faults=[100_000, 500, 500, 500])) as site:
        with pytest.raises(SourceError):
            get(site, tmp_path / "f")
        site.content, site.etag = CONTENT, '"two"'
        assert get(site, tmp_path / "f").path.read_bytes() == CONTENT


def test_what_is_there_of_another_address_is_not_gone_on_with(tmp_path: Path) -> None:
    with serving(Site(b"old" * 99_999, faults=[100_000, 500, 500, 500])) as other, pytest.raises(SourceError):
        get(other, tmp_path / "f")
    with serving(Site(CONTENT)) as site:
        assert get(site, tmp_path / "f").path.read_bytes() == CONTENT


@pytest.mark.parametrize(
    ("site", "said"),
    [
        (
            Site(CONTENT, faults=[404]),
            "not found; check the address",
        ),
        (Site(CONTENT, faults=[403]), "the server answered 403 Forbidden"),
        (
            Site(b"<html>", kind="text/html; charset=utf-8"),
            "the server sent a web page instead of an archive",
        ),
        (Site(CONTENT, faults=["loop"]), "Exceeded maximum allowed redirects"),
    ],
)
def test_download_not_an_archive_is_one_line_error(tmp_path: Path, site: Site, said: str) -> None:
    with serving(site), pytest.raises(SourceError, match=said) as raised:
        get(site, tmp_path / "f")
    assert "\n" not in str(raised.value)
    assert not (tmp_path / "f").exists()


def test_more_bytes_than_are_taken_are_refused(tmp_path: Path) -> None:
    with (
        serving(Site(CONTENT)) as site,
        pytest.raises(SourceError, match="more than the limit of 1,000"),
    ):
        get(site, tmp_path / "f", limit=1000)


def test_an_address_of_another_kind_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"not an http\(s\) address"):
        fetch(Download("file:///etc/passwd", tmp_path / "f"))
