"""Hostile and damaged archives: the reader and the extraction limit them, report faults and do no harm."""

from __future__ import annotations

import contextlib
import io
import tarfile
from pathlib import Path
from typing import Any

import anyio
import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, example, given, settings

from codetaste.core.tar import DamagedTar, TarMember, TarReader
from codetaste.harness.patch.extract import ExtractedPatch, ExtractionLimits, extract_patch
from codetaste.harness.testbed.testbed import Testbed
from support.harness.folder_sandbox import archive_sandbox, make_archive, make_testbed, write_files
from support.harness.testbed_tree import WorkTree, apply_patch

FOLDER = {"type": tarfile.DIRTYPE}


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_files(tmp_path_factory.mktemp("tar") / "R", {"a": b"a\n", "d/b": b"b\n"})


@pytest.fixture(scope="module")
def testbed(base: Path, tmp_path_factory: pytest.TempPathFactory) -> Testbed:
    return anyio.run(make_testbed, base, tmp_path_factory.mktemp("cache"))


class RecordingHandler:
    """Records all members and contents that a reader passes to it."""

    def __init__(self) -> None:
        self.members: list[TarMember] = []
        self.contents: list[bytes] = []

    def member(self, member: TarMember) -> bool:
        self.members.append(member)
        self.contents.append(b"")
        return True

    def content(self, chunk: bytes) -> None:
        assert chunk
        self.contents[-1] += chunk

    def end(self) -> None:
        assert len(self.contents[-1]) == self.members[-1].size


def extract(testbed: Testbed, archive: bytes, limits: ExtractionLimits | None = None) -> ExtractedPatch:
    return anyio.run(extract_patch, archive_sandbox(archive), testbed, limits)


def files_after(base: Path, scratch: Path, patch: bytes) -> dict[str, bytes]:
    apply_patch(base, scratch, patch)
    listed = WorkTree(scratch).git("ls-files", "-z").split(b"\0")[:-1]
    return {name.decode(): (scratch / name.decode()).read_bytes() for name in listed}


FIELDS = st.builds(
    lambda name, kind, link, content: (name, kind, link, content),
    name=st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1, max_size=300),
    kind=st.sampled_from(
        [tarfile.REGTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.DIRTYPE, tarfile.FIFOTYPE]
    ),
    link=st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1, max_size=300),
    content=st.binary(max_size=1500),
)


@example(members=[("folder/", tarfile.REGTYPE, "", b"content")] * 2, form=tarfile.PAX_FORMAT, cuts=[])
@given(
    members=st.lists(FIELDS, max_size=6),
    form=st.sampled_from([tarfile.PAX_FORMAT, tarfile.GNU_FORMAT]),
    cuts=st.lists(st.integers(1, 2000), max_size=20),
)
def test_archives_of_python_are_read_in_any_chunks(
    members: list[tuple[str, bytes, str, bytes]], form: int, cuts: list[int]
) -> None:
    packed, expected = io.BytesIO(), []
    with tarfile.open(fileobj=packed, mode="w", format=form, encoding="utf-8") as archive:
        for name, kind, link, content in members:
            info = tarfile.TarInfo(name)
            info.type, info.mode = kind, 0o755
            is_file = kind == tarfile.REGTYPE
            info.size = len(content) if is_file else 0
            info.linkname = link if kind in {tarfile.SYMTYPE, tarfile.LNKTYPE} else ""
            archive.addfile(info, io.BytesIO(content))
            has_content = is_file and not name.endswith("/")
            expected.append((name.encode().rstrip(b"/"), info.linkname.encode(), content * has_content))
    handler, data = RecordingHandler(), packed.getvalue()
    reader = TarReader(handler, 10**9)
    for cut in cuts:
        if data[:cut]:
            reader.feed(data[:cut])
        data = data[cut:]
    if data:
        reader.feed(data)
    assert reader.ended
    found = [
        (member.name.rstrip(b"/"), member.link, content)
        for member, content in zip(handler.members, handler.contents, strict=True)
    ]
    assert found == expected


@given(
    data=st.binary(max_size=3000),
    flips=st.lists(st.tuples(st.integers(0, 4000), st.integers(0, 255)), max_size=6),
)
def test_any_input_is_read_or_rejected(data: bytes, flips: list[tuple[int, int]]) -> None:
    whole = bytearray(make_archive(("testbed", FOLDER), ("testbed/" + "n" * 200, data), ("testbed/x", b"x")))
    for at, value in flips:
        whole[at % len(whole)] = value
    for archive in (bytes(whole), data):
        reader = TarReader(RecordingHandler(), 10**9)
        with contextlib.suppress(DamagedTar):
            if archive:
                reader.feed(archive)
            reader.feed(b"")
            assert reader.ended


NAMES = [
    *("testbed", "testbed/a", "testbed/d", "testbed/d/b", "testbed/a/x", "testbed/n", "testbed/n/m"),
    *("testbed/.git/config", "testbed/.gitignore", "other", ".", ""),
    *("/testbed/a", "testbed/../a", "testbed/./a", "testbed//a"),
]
MEMBERS = st.tuples(
    st.sampled_from(NAMES),
    st.one_of(
        st.sampled_from([b"", b"a\n", b"b\n", b"*\n", b"\0"]),
        st.sampled_from([tarfile.SYMTYPE, tarfile.LNKTYPE]).flatmap(
            lambda kind: st.sampled_from(["testbed/a", "testbed/n", "/etc/passwd", "testbed/../x"]).map(
                lambda link: {"type": kind, "linkname": link}
            )
        ),
        st.sampled_from([FOLDER, {"type": tarfile.CHRTYPE}, {"type": tarfile.FIFOTYPE}, {"type": b"?"}]),
    ),
)


@given(members=st.lists(MEMBERS, max_size=8), end=st.booleans())
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
def test_patch_of_hostile_archive_applies(
    base: Path,
    testbed: Testbed,
    members: list[tuple[str, Any]],
    end: bool,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    extracted = extract(testbed, make_archive(("testbed", FOLDER), *members, end=end))
    assert "apply" not in extracted.problem
    assert end or "could not be read whole" in extracted.problem
    apply_patch(base, tmp_path_factory.mktemp("check") / "R", extracted.patch)


@pytest.mark.parametrize(
    ("member", "expected"),
    [
        (("/etc/cron.d/x", b"evil"), "'/etc/cron.d/x' has a name outside the tree: left out"),
        (("testbed/../../x", b"evil"), "'testbed/../../x' has a name outside the tree: left out"),
        (("other/x", b"evil"), "'other/x' has a name outside the tree: left out"),
        (("testbed/dev", {"type": tarfile.BLKTYPE}), "'dev' is a device: left out"),
        (("testbed/odd", {"type": b"?"}), "'odd' is of an unknown kind: left out"),
        (
            ("testbed/h", {"type": tarfile.LNKTYPE, "linkname": "/etc/passwd"}),
            "'h' is a hard link to something that is not a file of the tree: left out",
        ),
        (
            ("testbed/.gitmodules", {"type": tarfile.SYMTYPE, "linkname": "/etc/passwd"}),
            "'.gitmodules' is a link, which git rejects under that name: left out",
        ),
    ],
)
def test_member_that_git_rejects_is_left_out_and_reported(
    base: Path, testbed: Testbed, tmp_path: Path, member: tuple[str, Any], expected: str
) -> None:
    rest: list[tuple[str, Any]] = [("testbed/a", b"a\n"), ("testbed/d/b", b"b\n"), ("testbed/new", b"n\n")]
    extracted = extract(testbed, make_archive(("testbed", FOLDER), member, *rest))
    assert (extracted.problem, extracted.notes) == ("", (expected,))
    assert files_after(base, tmp_path / "check", extracted.patch) == {
        "a": b"a\n",
        "d/b": b"b\n",
        "new": b"n\n",
    }


def test_last_member_of_a_name_counts(base: Path, testbed: Testbed, tmp_path: Path) -> None:
    members = [
        ("testbed/a", b"first"),
        ("testbed/d/b", b"x"),
        ("testbed/a", b"last"),
        ("testbed/d/b", b"b\n"),
    ]
    extracted = extract(testbed, make_archive(("testbed", FOLDER), *members))
    assert files_after(base, tmp_path / "check", extracted.patch) == {"a": b"last", "d/b": b"b\n"}


def test_truncated_archive_gives_earlier_files_and_deletes_nothing(
    base: Path, testbed: Testbed, tmp_path: Path
) -> None:
    whole = make_archive(("testbed", FOLDER), ("testbed/a", b"changed\n"), ("testbed/long", bytes(5000)))
    extracted = extract(testbed, whole[:4000])
    assert extracted.problem == "/testbed could not be read whole: the archive ends too early"
    assert files_after(base, tmp_path / "check", extracted.patch) == {"a": b"changed\n", "d/b": b"b\n"}


def test_folder_replacing_file_counts_in_truncated_archive(
    base: Path, testbed: Testbed, tmp_path: Path
) -> None:
    extracted = extract(
        testbed, make_archive(("testbed", FOLDER), ("testbed/a/x", b"x"), ("testbed/d", b"d"), end=False)
    )
    assert files_after(base, tmp_path / "check", extracted.patch) == {"a/x": b"x", "d": b"d"}


def header(kind: bytes, size: int, name: bytes = b"testbed/x") -> bytes:
    info = tarfile.TarInfo(name.decode())
    info.type, info.size = kind, size
    return info.tobuf(tarfile.GNU_FORMAT)


@pytest.mark.parametrize(
    ("archive", "expected"),
    [
        (header(b"x", 1 << 40), "an extended header of 1,099,511,627,776 bytes"),
        (header(b"L", 2 << 20), "an extended header of 2,097,152 bytes"),
        (header(b"0", 1 << 62), "'testbed/x' has 4,611,686,018,427,387,904 bytes"),
        (header(b"x", 512) + b"99999999999 a=b\n".ljust(512, b"\0"), "header is invalid"),
        (header(b"x", 512) + b"-5 a=b\n".ljust(512, b"\0"), "a size is not a number"),
        (header(b"x", 512) + (b"12 size=-99\n" * 42).ljust(512, b"\0"), "a size is not a number"),
        (b"x" * 512, "is damaged"),
        (b"no tar", "ends too early"),
        (header(b"0", 5)[:300] + b"\xff" + header(b"0", 5)[301:], "checksum is wrong"),
    ],
)
def test_damaged_archive_is_reported_in_one_line(testbed: Testbed, archive: bytes, expected: str) -> None:
    extracted = extract(testbed, make_archive(("testbed", FOLDER), end=False) + archive)
    assert extracted.patch == b""
    assert expected in extracted.problem
    assert "\n" not in extracted.problem


def test_many_extended_headers_take_no_memory(testbed: Testbed) -> None:
    record = b"".join(b"%d k%06d=v\n" % (len("13 k000000=v\n"), number) for number in range(39))
    bomb = (header(b"x", len(record)) + record.ljust(512, b"\0")) * 2000
    reader = TarReader(RecordingHandler(), 10**9)
    for _ in range(5):
        reader.feed(bomb)
    assert len(reader._data) <= len(bomb) + 512
