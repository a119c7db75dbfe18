"""Golden code is found wherever it is in a layer, and what is like it is not taken for it."""

from __future__ import annotations

import gzip
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codetaste.environment.leak_search.content import WINDOW_BYTES, Content, content_of
from codetaste.environment.leak_search.golden import GoldenTraces
from codetaste.environment.leak_search.report import MAX_HITS, LeakKind, LeakReport
from codetaste.environment.leak_search.search import LeakSearch
from support.environment.golden import (
    BASE,
    COMMIT,
    GOLDEN,
    NEW_FILE,
    PLACES,
    Files,
    as_diff,
    as_pyc,
    as_tar,
    as_zip,
    repository_files,
    write_tree,
)
from support.source.repositories import ENVIRONMENT

LAYER = "sha256:1234567890abcdef"


def search(golden: GoldenTraces, files: Files) -> LeakReport:
    leaks = LeakSearch(golden)
    leaks.begin_layer()
    for path, content in files.items():
        leaks.search_file(path.encode(), content_of(content))
    leaks.end_layer(LAYER)
    return leaks.report()


def kinds(report: LeakReport) -> set[LeakKind]:
    return {leak.kind for leak in report.leaks}


@pytest.mark.parametrize("place", PLACES)
def test_golden_file_is_found(golden: GoldenTraces, place: str) -> None:
    found = search(golden, PLACES[place](GOLDEN[NEW_FILE]))
    assert kinds(found) & {LeakKind.GOLDEN_FILE, LeakKind.GOLDEN_LINES}
    assert NEW_FILE in found.leaks[0].evidence
    assert found.leaks[0].layer == LAYER


@pytest.mark.parametrize("place", PLACES)
def test_base_is_no_hit_there(golden: GoldenTraces, place: str) -> None:
    for content in (BASE["forge/heat.py"], b"".join(BASE.values()), GOLDEN["package-lock.json"] * 9):
        found = search(golden, PLACES[place](content))
        assert found.leaks == ()
        assert found.not_searched == ()


def test_path_of_a_hit_leads_through_archives(golden: GoldenTraces) -> None:
    found = search(golden, PLACES["a wheel in a source archive"](GOLDEN[NEW_FILE]))
    assert str(found.leaks[0]) == (
        "golden file in sha256:1234567890ab: x.tar.gz!dist/x.whl!x.py: has the content of " + NEW_FILE
    )


def test_patch_in_a_log_is_found_in_both_directions(golden: GoldenTraces, tmp_path: Path) -> None:
    base, after = write_tree(tmp_path / "base", BASE), write_tree(tmp_path / "golden", GOLDEN)
    for patch in (as_diff(base, after), as_diff(after, base)):
        found = search(golden, {"var/log/setup.log": b"$ git show\n" + patch})
        assert kinds(found) == {LeakKind.GOLDEN_LINES}


@pytest.mark.parametrize("name", [NEW_FILE, "forge/heat.py"])
def test_compiled_golden_file_is_found(golden: GoldenTraces, tmp_path: Path, name: str) -> None:
    found = search(golden, {"x.cpython-311.pyc": as_pyc(name, GOLDEN[name], tmp_path)})
    assert kinds(found) == {LeakKind.GOLDEN_NAMES}
    assert name in found.leaks[0].evidence


def test_compiled_file_of_the_base_or_of_another_project_is_no_hit(
    golden: GoldenTraces, tmp_path: Path
) -> None:
    files = {
        "base.pyc": as_pyc("forge/heat.py", BASE["forge/heat.py"], tmp_path / "1"),
        # Another project's file with golden names, and one with the same path and other names.
        "other.pyc": as_pyc("oven/temperature_controller.py", b"TemperatureController = 1\n", tmp_path / "2"),
        "same.pyc": as_pyc(NEW_FILE, b"def something_else_entirely():\n    return 1\n", tmp_path / "3"),
    }
    assert search(golden, files).leaks == ()


@pytest.mark.parametrize("packed", [False, True])
def test_golden_objects_of_git_are_found(golden: GoldenTraces, tmp_path: Path, packed: bool) -> None:
    files = repository_files(tmp_path / "golden", GOLDEN, packed=packed)
    tables = {path: content for path, content in files.items() if path.endswith((".idx", "/index"))}
    stores = {path: content for path, content in files.items() if "/objects/" in path and path not in tables}
    for part in (tables, stores):
        assert LeakKind.GOLDEN_OBJECT in kinds(search(golden, part))
    assert search(golden, repository_files(tmp_path / "base", BASE, packed=packed)).leaks == ()


def test_pack_without_its_table_and_cut_off_is_searched(golden: GoldenTraces, tmp_path: Path) -> None:
    files = repository_files(tmp_path / "golden", GOLDEN, packed=True)
    pack = next(content for path, content in files.items() if path.endswith(".pack"))
    assert LeakKind.GOLDEN_OBJECT in kinds(search(golden, {"objects/pack/tmp_pack_1": pack}))
    damaged = search(golden, {"objects/pack/tmp_pack_1": pack[:-60]})
    assert [one.reason for one in damaged.not_searched] == ["a damaged git pack"]
    assert LeakKind.GOLDEN_OBJECT in kinds(damaged)


def test_bundle_and_changes_in_packs_are_searched(golden: GoldenTraces, tmp_path: Path) -> None:
    long = b"".join(b"line_number_%d = value_of_line(%d)\n" % (n, n * n) for n in range(400))
    repository_files(tmp_path / "r", {"forge/big.py": long, **BASE}, packed=False)
    git = ["git", "-C", str(tmp_path / "r")]
    (tmp_path / "r/forge/big.py").write_bytes(long + GOLDEN[NEW_FILE])
    for command in (
        ["commit", "-qam", "two"],
        ["repack", "-adfq", "--depth=50", "--window=50"],
        ["bundle", "create", "-q", str(tmp_path / "all.bundle"), "--all"],
    ):
        subprocess.run([*git, *command], check=True, env=ENVIRONMENT, stderr=subprocess.DEVNULL)
    found = search(golden, {"all.bundle": (tmp_path / "all.bundle").read_bytes()})
    assert LeakKind.GOLDEN_LINES in kinds(found)


def test_name_of_the_golden_commit_is_found(golden: GoldenTraces) -> None:
    config = b'{"vcs_info": {"commit_id": "' + COMMIT.encode() + b'"}}'
    found = search(golden, {"site-packages/forge.dist-info/direct_url.json": config})
    assert found.leaks[0].evidence == f"names the golden commit {COMMIT}"


def test_few_golden_lines_are_no_evidence(golden: GoldenTraces) -> None:
    lines = sorted(golden.files[-1].lines, key=len)
    library = b"import os\n" + lines[0] + b"\n" + lines[1] + b"\n"
    assert search(golden, {"site-packages/library.py": library}).leaks == ()


@given(data=st.data())
def test_three_long_lines_of_one_file_are_evidence_in_any_order(
    data: st.DataObject, golden: GoldenTraces
) -> None:
    lines = sorted(golden.files[-1].lines, key=len)[3:]
    chosen = data.draw(st.lists(st.sampled_from(lines), min_size=3, unique=True))
    between = data.draw(st.lists(st.binary(max_size=30), min_size=len(chosen), max_size=len(chosen)))
    text = b"".join(b"%s\n  + %s\n" % pair for pair in zip(between, chosen, strict=True))
    assert kinds(search(golden, {"x": b"start" + text})) == {LeakKind.GOLDEN_LINES}


@given(at=st.integers(-300, 300), size=st.sampled_from([WINDOW_BYTES, 2 * WINDOW_BYTES]))
def test_nothing_is_lost_between_the_pieces_of_a_large_file(at: int, size: int) -> None:
    needle, line = b"needle-of-twenty-two-b", b"a line that is looked for"
    noise = b"z" * (size + at)
    pieces = list(content_of(noise + needle + b"\n" + noise + b"\n" + line + b"\n" + noise).windows(64))
    assert any(needle in piece for piece in pieces)
    assert any(line in piece.split(b"\n") for piece in pieces)


def test_what_cannot_be_searched_is_named_and_counted(golden: GoldenTraces) -> None:
    locked = bytearray(as_zip({"secret.py": b"x" * 50}))
    for at in (6, locked.index(b"PK\x01\x02") + 8):
        locked[at] |= 1
    deep = GOLDEN[NEW_FILE]
    for _ in range(6):
        deep = gzip.compress(deep)
    files = {
        "a.zst": b"\x28\xb5\x2f\xfd" + bytes(20),
        "b.zst": b"\x28\xb5\x2f\xfd" + bytes(20),
        "c.7z": b"7z\xbc\xaf\x27\x1c" + bytes(20),
        "cut.gz": gzip.compress(b"x" * 10_000)[:-5],
        "bad.zip": b"PK\x03\x04" + b"\xff" * 300,
        "locked.zip": bytes(locked),
        "deep.gz": deep,
    }
    found = search(golden, files)
    assert [(one.reason, one.count, one.examples) for one in found.not_searched] == [
        ("a 7z archive", 1, ("c.7z",)),
        ("a damaged archive", 2, ("cut.gz", "bad.zip")),
        ("an archive in 4 others", 1, ("deep.gz",)),
        ("an encrypted member", 1, ("locked.zip!secret.py",)),
        ("compressed with zstd", 2, ("a.zst", "b.zst")),
    ]
    assert str(found.not_searched[-1]) == "2 files not searched: compressed with zstd (a.zst, b.zst)"


STARTS = [
    *(
        b"",
        b"PK\x03\x04",
        b"\x1f\x8b\x08",
        b"PACK\0\0\0\2\0\0\0\5",
        b"BZh91AY&SY",
        b"x\x9c",
        b"cc=4,PK\x03\x04",
    ),
    *(b"\xfftOc\0\0\0\2", b"# v2 git bundle\nPACK", b"DIRC", b"\xfd7zXZ\0", b"\xca\xfe\xba\xbe", b"\0\0\r\n"),
]


@given(content=st.binary(max_size=400), start=st.sampled_from(STARTS))
def test_any_content_is_searched_without_an_error(content: bytes, start: bytes, golden: GoldenTraces) -> None:
    cut_off = (as_tar({"a": content}) + content)[len(content) // 2 :]
    assert search(golden, {"x": start + content, "y.tar": cut_off}).leaks == ()


def test_archive_that_inflates_without_end_is_not_searched(
    golden: GoldenTraces, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("codetaste.environment.leak_search.archives.MAX_MEMBER_BYTES", 10**6)
    found = search(golden, {"bomb.gz": gzip.compress(bytes(5 * 10**6)), "ok.gz": gzip.compress(b"ok")})
    assert [str(one) for one in found.not_searched] == [
        "1 file not searched: a member has more than 1,000,000 bytes (bomb.gz)"
    ]


def test_number_of_reported_hits_is_limited(golden: GoldenTraces) -> None:
    found = search(golden, {f"copy{number}": GOLDEN[NEW_FILE] for number in range(MAX_HITS + 7)})
    assert (len(found.leaks), found.more_leaks) == (MAX_HITS, 7)
    assert str(found).startswith("207 hits in 207 files of 1 layer")


def test_golden_files_that_are_not_searched_for_are_counted(golden: GoldenTraces) -> None:
    assert search(golden, {}).left_out == {"has no distinctive line": 1, "lists dependencies": 1}


def test_search_ends_when_it_is_cancelled(golden: GoldenTraces) -> None:
    def cancel() -> None:
        raise InterruptedError

    content = content_of(b"text")
    with pytest.raises(InterruptedError):
        LeakSearch(golden, check=cancel).search_file(b"x", content)
    with pytest.raises(ValueError, match="closed"):
        Content.read(content)
