"""A download is complete or fails, and resumes a partial file; traffic is loopback only."""

from __future__ import annotations

import hashlib
import random
from pathlib import Path

import anyio
import pytest

from codetaste.errors import SourceError
from codetaste.source.download import Download, DownloadedFile, make_download_client
from support.source.release_server import ServedFile, serving

CONTENT = random.Random(1).randbytes(300_000)


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("codetaste.source.download._BACK_OFF_S", (0.0, 0.0))


def download(served: ServedFile, path: Path, **options: object) -> DownloadedFile:
    return fetch(Download(served.url, path, **options))  # type: ignore[arg-type]


def fetch(request: Download) -> DownloadedFile:
    async def main() -> DownloadedFile:
        async with make_download_client() as http:
            return await request.run(http)

    return anyio.run(main)


def test_file_is_downloaded_with_digest_and_progress(tmp_path: Path) -> None:
    progress: list[tuple[int, int | None]] = []
    with serving(ServedFile(CONTENT)) as served:
        downloaded = download(
            served, tmp_path / "f", progress=lambda done, total: progress.append((done, total))
        )
    assert downloaded.sha256 == hashlib.sha256(CONTENT).hexdigest()
    assert downloaded.path.read_bytes() == CONTENT
    assert (progress[0], progress[-1]) == ((0, len(CONTENT)), (len(CONTENT), len(CONTENT)))


def test_download_resumes_after_a_broken_connection(tmp_path: Path) -> None:
    with serving(ServedFile(CONTENT, faults=[100_000, 50_000])) as served:
        assert download(served, tmp_path / "f").path.read_bytes() == CONTENT
        assert served.range_headers == ["", "bytes=100000-", "bytes=150000-"]


def test_download_resumes_partial_file_of_earlier_call(tmp_path: Path) -> None:
    with serving(ServedFile(CONTENT, faults=[100_000, 503, 503, 503])) as served:
        with pytest.raises(SourceError, match=r"answered 503; the partial file stays"):
            download(served, tmp_path / "f")
        assert download(served, tmp_path / "f").path.read_bytes() == CONTENT
        assert served.range_headers[-1] == "bytes=100000-"
        # The file is complete already: nothing is sent again.
        assert download(served, tmp_path / "f").sha256 == hashlib.sha256(CONTENT).hexdigest()
        assert served.range_headers[-1] == f"bytes={len(CONTENT)}-"


@pytest.mark.parametrize(
    "served",
    [ServedFile(CONTENT, ranges=False), ServedFile(CONTENT, etag=""), ServedFile(CONTENT, etag='W/"1"')],
)
def test_download_of_a_possibly_changed_file_restarts(tmp_path: Path, served: ServedFile) -> None:
    served.faults = [100_000]
    with serving(served):
        assert download(served, tmp_path / "f").path.read_bytes() == CONTENT


def test_download_of_a_replaced_file_restarts(tmp_path: Path) -> None:
    with serving(ServedFile(b"old" * 99_999, faults=[100_000, 500, 500, 500])) as served:
        with pytest.raises(SourceError):
            download(served, tmp_path / "f")
        served.content, served.etag = CONTENT, '"two"'
        assert download(served, tmp_path / "f").path.read_bytes() == CONTENT


def test_partial_file_of_another_address_is_not_resumed(tmp_path: Path) -> None:
    with (
        serving(ServedFile(b"old" * 99_999, faults=[100_000, 500, 500, 500])) as other,
        pytest.raises(SourceError),
    ):
        download(other, tmp_path / "f")
    with serving(ServedFile(CONTENT)) as served:
        assert download(served, tmp_path / "f").path.read_bytes() == CONTENT


@pytest.mark.parametrize(
    ("served", "message"),
    [
        (
            ServedFile(CONTENT, faults=[404]),
            "not found; check the address",
        ),
        (ServedFile(CONTENT, faults=[403]), "the server answered 403 Forbidden"),
        (
            ServedFile(b"<html>", kind="text/html; charset=utf-8"),
            "the server sent a web page instead of an archive",
        ),
        (ServedFile(CONTENT, faults=["loop"]), "Exceeded maximum allowed redirects"),
    ],
)
def test_failed_download_is_a_one_line_error(tmp_path: Path, served: ServedFile, message: str) -> None:
    with serving(served), pytest.raises(SourceError, match=message) as raised:
        download(served, tmp_path / "f")
    assert "\n" not in str(raised.value)
    assert not (tmp_path / "f").exists()


def test_file_above_the_limit_is_refused(tmp_path: Path) -> None:
    with (
        serving(ServedFile(CONTENT)) as served,
        pytest.raises(SourceError, match="more than the limit of 1,000"),
    ):
        download(served, tmp_path / "f", limit=1000)


def test_address_of_another_protocol_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"not an http\(s\) address"):
        fetch(Download("file:///etc/passwd", tmp_path / "f"))
