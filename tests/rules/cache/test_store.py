"""The match cache: bounded in size, shared by processes, and checked for damage."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codetaste.rules.cache.entry import CacheEntry, DamagedEntry, FileAnswer
from codetaste.rules.cache.store import MatchStore
from support.rules.cache_process import entry

SCRIPT = Path(__file__).parents[2] / "support" / "rules" / "cache_process.py"
keys = st.binary(min_size=16, max_size=16)
numbers = st.integers(0, 1 << 40)
texts = st.text(st.characters(codec=None), max_size=20)


@st.composite
def entries(draw: st.DrawFn) -> CacheEntry:
    rules = tuple(sorted(draw(st.lists(keys, min_size=1, max_size=5))))
    regions = st.lists(st.tuples(numbers, numbers, numbers, numbers), min_size=1, max_size=3).map(tuple)
    answers = st.builds(
        FileAnswer,
        scanned=st.booleans(),
        matches=st.dictionaries(st.sampled_from(rules), regions),
        problems=st.lists(st.tuples(texts, numbers), max_size=2).map(tuple),
    )
    return CacheEntry(rules, draw(st.dictionaries(keys, answers, max_size=8)))


@given(entries())
def test_entry_survives_encoding(one: CacheEntry) -> None:
    assert CacheEntry.from_bytes(one.to_bytes()) == one


@given(entries(), st.data())
def test_damage_of_an_entry_is_always_detected(one: CacheEntry, data: st.DataObject) -> None:
    whole = one.to_bytes()
    place = data.draw(st.integers(0, len(whole) - 1))
    flipped = bytearray(whole)
    flipped[place] ^= data.draw(st.integers(1, 255))
    for damaged in (bytes(flipped), whole[:place], whole + b"x", b""):
        with pytest.raises(DamagedEntry):
            CacheEntry.from_bytes(damaged)


def test_entries_are_found_by_their_rules_and_grow(tmp_path: Path) -> None:
    store = MatchStore(tmp_path, "engine")
    for number in range(3):
        store.add(entry(number))
    again = MatchStore(tmp_path, "engine")
    assert again.load(entry(1).rules) == entry(1)
    assert again.load(entry(1).rules[:1]) is None
    more = CacheEntry(entry(1).rules, {b"m" * 16: FileAnswer(scanned=False)})
    again.add(more)
    assert store.load(more.rules) == CacheEntry(more.rules, {**entry(1).files, **more.files})
    assert MatchStore(tmp_path, "another engine").load(entry(1).rules) is None


def command(
    cache: Path, *, engine: str = "e", size: int = 1 << 30, first: int = 0, count: int = 8
) -> list[str]:
    return [sys.executable, str(SCRIPT), str(cache), engine, str(size), str(first), str(count)]


def run(arguments: list[str]) -> dict[str, Any]:
    done = subprocess.run(arguments, capture_output=True, check=False, text=True)
    assert done.returncode == 0, done.stderr
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def size_on_disk(cache: Path) -> int:
    return sum(path.stat().st_blocks * 512 for path in cache.rglob("*") if path.is_file())


def test_cache_stays_within_its_size_and_evicts_least_recently_used(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes").write_text("x" * 100_000)
    size, store = 400_000, MatchStore(tmp_path, "engine", size=400_000)
    for number in range(300):
        store.add(entry(number))
        assert store.load(entry(0).rules) is not None
    assert store.load(entry(299).rules) is not None
    assert store.load(entry(100).rules) is None
    assert size_on_disk(tmp_path) - 102_400 < size * 1.1
    assert (tmp_path / "mine" / "notes").exists()


def test_cache_is_shared_by_processes(tmp_path: Path) -> None:
    commands = [
        command(tmp_path, engine=f"version {number % 2}", size=600_000, first=number * 7 % 20, count=60)
        for number in range(6)
    ]
    running = [subprocess.Popen(each, stdout=subprocess.PIPE, text=True) for each in commands]
    answers = [json.loads(process.communicate()[0]) for process in running]
    assert [answer["wrong"] for answer in answers] == [[]] * 6
    assert [answer["warnings"] for answer in answers] == [[]] * 6
    assert not [path for path in tmp_path.rglob(".*") if path.is_file() and path.parent != tmp_path]
    assert run(command(tmp_path, engine="version 0", first=0, count=90))["wrong"] == []


@pytest.mark.parametrize("how", ["flip", "cut", "empty", "swap", "folder"])
def test_damaged_entry_is_rebuilt_with_one_warning(tmp_path: Path, how: str) -> None:
    run(command(tmp_path))
    rng = random.Random(how)
    found = sorted(path for path in tmp_path.rglob("*") if path.is_file() and path.name != "secret")
    for path in found:
        data = bytearray(path.read_bytes())
        if how == "flip":
            data[rng.randrange(len(data))] ^= 4
        elif how == "folder":
            path.unlink()
            path.mkdir()
            continue
        path.write_bytes(
            {"flip": data, "cut": data[: len(data) // 2], "empty": b"", "swap": found[-1].read_bytes()}[how]
        )
    after = run(command(tmp_path))
    assert after["wrong"] == []
    assert len(after["warnings"]) == (0 if how == "swap" else 1)
    assert len(after["found"]) < 8
    if how != "folder":
        assert run(command(tmp_path)) == {"found": [*range(8)], "wrong": [], "warnings": []}


def test_uncreatable_cache_is_skipped_with_one_warning(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    after = run(command(tmp_path / "file" / "cache"))
    assert (after["found"], after["wrong"]) == ([], [])
    (warning,) = after["warnings"]
    assert "cannot be used" in warning
    assert "\n" not in warning


@pytest.fixture
def read_only(bubblewrap: Path) -> list[str]:
    """Return the words that run a command with a read-only file system."""
    return [str(bubblewrap), "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]


def test_read_only_cache_is_read_with_one_warning(tmp_path: Path, read_only: list[str]) -> None:
    run(command(tmp_path, count=4))
    after = run([*read_only, *command(tmp_path)])
    assert after["found"] == [0, 1, 2, 3]
    (warning,) = after["warnings"]
    assert "cannot be written: Read-only file system" in warning
    (warning,) = run([*read_only, *command(tmp_path / "none")])["warnings"]
    assert "Read-only file system" in warning


def test_unremovable_damaged_entry_is_reported_once_and_ignored(tmp_path: Path, read_only: list[str]) -> None:
    run(command(tmp_path))
    for path in tmp_path.rglob("entries/*"):
        path.write_bytes(b"damaged")
    after = run([*read_only, *command(tmp_path)])
    assert (after["found"], after["wrong"]) == ([], [])
    (warning,) = after["warnings"]
    assert "was damaged" in warning


def test_full_disk_is_reported_once(tmp_path: Path, read_only: list[str]) -> None:
    for size in (4096, 60_000):
        after = run([*read_only, "--size", str(size), "--tmpfs", str(tmp_path), *command(tmp_path, count=60)])
        assert after["wrong"] == []
        (warning,) = after["warnings"]
        assert "No space left" in warning or "no space left" in warning


def test_draft_of_a_killed_writer_is_removed(tmp_path: Path) -> None:
    run(command(tmp_path, count=1))
    (folder,) = tmp_path.glob("*/entries")
    draft = folder / f".{'0' * 32}.{'0' * 8}"
    draft.write_bytes(b"x" * 50_000)
    os.utime(draft, (1, 1))
    run(command(tmp_path, size=60_000, first=5, count=5))
    assert not draft.exists()
