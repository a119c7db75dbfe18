"""Candidates of an hour file are found like by a reader of single lines, whatever is between them."""

from __future__ import annotations

import gzip
import json
import random
import tempfile
import zlib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codetaste.mining.archive import lines as lines_module
from codetaste.mining.archive.lines import HourLines, LineFault
from support.mining.archive_events import MergedChange, event_of_2023, other_event

MERGED = json.dumps(event_of_2023(MergedChange()), separators=(",", ":")).encode()
UNMERGED = json.dumps(event_of_2023(MergedChange(merged=False)), separators=(",", ":")).encode()
RANDOM = random.Random(1)
NOISE = RANDOM.randbytes(20_000)
OTHER = json.dumps(other_event(1), separators=(",", ":")).encode()
SPACED = b'{"type": "PullRequestEvent", "merged": false}'
QUOTED = rb'{"type":"X","text":"say \"PullRequestEvent\""}'
LINES = (
    MERGED,
    UNMERGED,
    OTHER,
    SPACED,
    QUOTED,
    b"",
    b"<html>",
    b'["PullRequestEvent"]',
    b'{"torn',
    b"  {}  ",
)


def read(path: Path) -> tuple[HourLines, list[tuple[int, bytes]]]:
    hour = HourLines(path)
    return hour, [tuple(line) for line in hour.candidates()]


def read_by_hand(content: bytes) -> tuple[int, list[tuple[int, bytes]], list[int]]:
    """Return the count of lines, the candidates, and the lines that are no objects."""
    found, broken = [], []
    lines = content.split(b"\n")
    if not lines[-1]:
        lines.pop()
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if not (text.startswith(b"{") and text.endswith(b"}")):
            broken.append(number)
        elif b'"PullRequestEvent"' in text and b'"merged":false' not in text:
            found.append((number, text))
    return len(lines), found, broken


@settings(max_examples=150)
@given(
    st.lists(st.sampled_from(LINES), max_size=12),
    st.booleans(),
    st.sampled_from((7, 100, 4096)),
    st.booleans(),
)
def test_candidates_are_those_of_a_reader_of_lines(
    lines: list[bytes], ended: bool, read_bytes: int, members: bool
) -> None:
    content = b"\n".join(lines) + (b"\n" if ended and lines else b"")
    half = len(content) // 2 if members else 0
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(lines_module, "_READ_BYTES", read_bytes)
        path = Path(folder) / "2023-04-05-6.json.gz"
        path.write_bytes(gzip.compress(content[:half], 1) + gzip.compress(content[half:], 1))
        hour, found = read(path)
    count, expected, broken = read_by_hand(content)
    assert (hour.count, found, hour.torn) == (count, expected, "")
    assert [fault.line for fault in hour.faults.examples] == broken


def test_plain_file_is_read_too(tmp_path: Path) -> None:
    path = tmp_path / "2023-04-05-6.json"
    path.write_bytes(MERGED + b"\n")
    assert read(path)[1] == [(1, MERGED)]


def test_events_without_line_breaks_are_separated(tmp_path: Path) -> None:
    path = tmp_path / "2012-03-11-0.json.gz"
    path.write_bytes(gzip.compress(UNMERGED + MERGED + OTHER + MERGED))
    hour, found = read(path)
    assert found == [(2, MERGED), (4, MERGED)]
    assert not hour.faults.counts


@pytest.mark.parametrize("cut", [1, 9, 5000])
def test_lines_before_the_end_of_a_torn_file_are_found(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "h.json.gz"
    noise = json.dumps({"type": "X", "noise": NOISE.hex()}).encode()
    path.write_bytes(gzip.compress(MERGED + b"\n" + noise + b"\n" + MERGED)[:-cut])
    hour, found = read(path)
    assert found[0] == (1, MERGED)
    assert hour.torn == "the gzip data ends too early"


def test_torn_line_is_counted_with_its_number(tmp_path: Path) -> None:
    path = tmp_path / "h.json.gz"
    noise = json.dumps({"type": "X", "noise": NOISE.hex()}).encode()
    path.write_bytes(gzip.compress(MERGED + b"\n" + noise)[:-10_000])
    hour, _ = read(path)
    assert hour.faults.examples == [LineFault(2, "cut off by the end of the readable data")]


def test_damaged_data_ends_the_hour(tmp_path: Path) -> None:
    data = bytearray(
        gzip.compress(b"".join(RANDOM.randbytes(500).hex().encode() + b"\n" for _ in range(500)))
    )
    data[len(data) // 2 : len(data) // 2 + 40] = b"\xff" * 40
    path = tmp_path / "h.json.gz"
    path.write_bytes(bytes(data))
    hour, _ = read(path)
    assert "damaged gzip data before byte" in hour.torn


def test_what_follows_the_gzip_data_is_named_and_padding_is_not(tmp_path: Path) -> None:
    path = tmp_path / "h.json.gz"
    path.write_bytes(gzip.compress(MERGED + b"\n") + b"\0" * 100_000)
    assert read(path)[0].torn == ""
    path.write_bytes(gzip.compress(MERGED + b"\n") + b"<html>")
    hour, found = read(path)
    assert found == [(1, MERGED)]
    assert "something else follows" in hour.torn


def test_huge_line_is_skipped_and_the_next_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines_module, "_MAX_LINE_BYTES", 100_000)
    path = tmp_path / "h.json"
    path.write_bytes(MERGED + b'\n{"a":"' + b"x" * 500_000 + b'"}\n' + MERGED + b"\n")
    hour, found = read(path)
    assert found == [(1, MERGED), (3, MERGED)]
    assert hour.faults.examples == [LineFault(2, "longer than 32 MiB")]


@pytest.mark.parametrize("content", [b"", b"\x1f", b"\x1f\x8b", zlib.compress(MERGED), NOISE[:1000]])
def test_foreign_files_raise_nothing(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "h.json.gz"
    path.write_bytes(content)
    assert read(path)[1] == []


def test_unreadable_file_says_why(tmp_path: Path) -> None:
    hour, found = read(tmp_path / "gone.json.gz")
    assert found == []
    assert hour.torn == "cannot be read: No such file or directory"
