"""Hours come down whole or not at all; traffic is loopback only."""

from __future__ import annotations

import gzip
from datetime import UTC, datetime
from pathlib import Path

import anyio
import pytest

from codetaste.mining.archive.download import download_hours
from support.source.release_server import ServedFile, serving

CONTENT = gzip.compress(b"{}\n" * 50_000, 0)
HOUR = datetime(2023, 4, 5, 6, tzinfo=UTC)


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("codetaste.source.download._BACK_OFF_S", (0.0,))


def download(served: ServedFile, folder: Path) -> dict[str, str]:
    address = served.url.rsplit("/", 1)[0]
    return anyio.run(download_hours, [HOUR], folder, address)


def test_hour_is_downloaded_once(tmp_path: Path) -> None:
    with serving(ServedFile(CONTENT, kind="application/gzip")) as served:
        assert download(served, tmp_path) == {}
        assert download(served, tmp_path) == {}
    assert (tmp_path / "2023-04-05-6.json.gz").read_bytes() == CONTENT
    assert len(served.range_headers) == 1
    assert list((tmp_path / "partial").iterdir()) == []


def test_broken_download_continues_and_is_never_seen_in_part(tmp_path: Path) -> None:
    with serving(ServedFile(CONTENT, kind="application/gzip", faults=[1000, 404])) as served:
        assert "2023-04-05-6.json.gz" in download(served, tmp_path)
        assert not (tmp_path / "2023-04-05-6.json.gz").exists()
        assert download(served, tmp_path) == {}
    assert served.range_headers[-1].startswith("bytes=")
    assert (tmp_path / "2023-04-05-6.json.gz").read_bytes() == CONTENT


def test_missing_hour_is_a_problem_with_its_name(tmp_path: Path) -> None:
    with serving(ServedFile(CONTENT, faults=[404])) as served:
        problems = download(served, tmp_path)
    assert problems == {
        "2023-04-05-6.json.gz": "2023-04-05-6.json.gz: not found; the archive has no such hour"
    }
