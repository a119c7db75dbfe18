"""Hostile and ordinary archives: what is unpacked, what is refused, and no write outside the tree."""

from __future__ import annotations

import io
import os
import stat
import tarfile
import tempfile
import warnings
import zipfile
from collections import deque
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codetaste.errors import SourceError, UnsafeArchive
from codetaste.source.archive import ArchiveLimits, unpack_archive
from codetaste.source.tree.writer import TreeLimits
from support.source.repositories import contents

Member = tuple[str, bytes, str]
"""Name, kind (a tarfile type) and content or link target."""

FILE, LINK, HARD, FOLDER = tarfile.REGTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.DIRTYPE


def write_tar(path: Path, members: list[Member], mode: str = "gz", permissions: int = 0o644) -> Path:
    with tarfile.open(path, f"w:{mode}") as archive:  # type: ignore[call-overload]
        for name, kind, text in members:
            info = tarfile.TarInfo(name)
            info.type = kind
            info.mode = permissions
            if kind == FILE:
                content = text.encode("utf-8", "surrogateescape")
                info.size = len(content)
                archive.addfile(info, io.BytesIO(content))
            else:
                info.linkname = text
                archive.addfile(info)
    return path


def write_zip(path: Path, members: list[Member]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, kind, text in members:
            info = zipfile.ZipInfo(name)
            info.create_system = 3
            info.compress_type = zipfile.ZIP_DEFLATED
            info.external_attr = ((stat.S_IFLNK if kind == LINK else stat.S_IFREG) | 0o755) << 16
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # some tests need the same name twice
                archive.writestr(info, text)
    return path


@pytest.mark.parametrize("mode", ["", "gz", "bz2", "xz"])
def test_single_top_folder_is_stripped(tmp_path: Path, mode: str) -> None:
    members = [
        ("pkg-1.0", FOLDER, ""),
        ("pkg-1.0/a.py", FILE, "a"),
        ("pkg-1.0/sub/caf\udce9.py", FILE, "latin"),
        ("pkg-1.0/sub/up", LINK, "../a.py"),
        ("pkg-1.0/loop", LINK, "loop"),
        ("pkg-1.0/nowhere", LINK, "nothing/there"),
        ("pkg-1.0/same.py", HARD, "pkg-1.0/a.py"),
        ("pkg-1.0/A.py", FILE, "another on a case-sensitive system"),
    ]
    unpack_archive(write_tar(tmp_path / "a", members, mode), tmp_path / "tree")
    assert contents(tmp_path / "tree") == {
        b"a.py": ("file", b"a"),
        b"sub/caf\xe9.py": ("file", b"latin"),
        b"sub/up": ("link", b"../a.py"),
        b"loop": ("link", b"loop"),
        b"nowhere": ("link", b"nothing/there"),
        b"same.py": ("file", b"a"),
        b"A.py": ("file", b"another on a case-sensitive system"),
    }
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "tree"]


def test_archive_without_a_single_top_folder_is_unpacked_unchanged(tmp_path: Path) -> None:
    unpack_archive(write_tar(tmp_path / "a", [("x", FILE, "1"), ("y/z", FILE, "2")]), tmp_path / "tree")
    assert contents(tmp_path / "tree") == {b"x": ("file", b"1"), b"y/z": ("file", b"2")}


def test_a_zip_is_unpacked_with_links_and_modes(tmp_path: Path) -> None:
    unpack_archive(write_zip(tmp_path / "a", [("p/x", FILE, "1"), ("p/l", LINK, "x")]), tmp_path / "tree")
    assert contents(tmp_path / "tree") == {b"x": ("program", b"1"), b"l": ("link", b"x")}


def test_setuid_and_other_odd_permissions_are_removed(tmp_path: Path) -> None:
    unpack_archive(
        write_tar(tmp_path / "a", [("p/x", FILE, "1"), ("p/d", FOLDER, "")], permissions=0o7777),
        tmp_path / "tree",
    )
    assert stat.S_IMODE((tmp_path / "tree/x").stat().st_mode) == 0o755
    assert stat.S_IMODE((tmp_path / "tree/d").stat().st_mode) & 0o7000 == 0


HOSTILE: dict[str, tuple[list[Member], str]] = {
    "traversal": ([("p/../../out", FILE, "x")], "'p/../../out' leaves the tree"),
    "absolute name": ([("/tmp/out", FILE, "x")], "'/tmp/out' has an absolute name"),
    "git folder": ([("p/.git/config", FILE, "x")], "git directory"),
    "absolute link": ([("p/l", LINK, "/etc")], "'p/l' is a symbolic link out of the tree, to '/etc'"),
    "link out": ([("p/l", LINK, "../../etc")], "'p/l' is a symbolic link out"),
    "link out of the stripped top": (
        [("p/l", LINK, "../p/x"), ("p/x", FILE, "")],
        "'p/l' is a symbolic link out",
    ),
    "chained link": (
        [("p/x/y/z/up", LINK, "../../.."), ("p/out", LINK, "x/y/z/up/../passwd")],
        "'p/out' is a symbolic link out",
    ),
    "file through a link": ([("p/l", LINK, "d"), ("p/l/x", FILE, "x")], "'p/l/x' lies below 'p/l'"),
    "link over a folder": ([("p/d/x", FILE, ""), ("p/d", LINK, ".")], "'p/d' is a symbolic link, but"),
    "file over a link": ([("p/l", LINK, "x"), ("p/l", FILE, "x")], "'p/l' is a file, but"),
    "link twice": ([("p/l", LINK, "x"), ("p/l", LINK, "..")], "appears twice"),
    "hard link out": ([("p/h", HARD, "../../etc/passwd")], "leaves the tree"),
    "absolute hard link": ([("p/h", HARD, "/etc/passwd")], "absolute"),
    "hard link to a link": ([("p/l", LINK, "x"), ("p/h", HARD, "p/l")], "not an earlier file"),
    "hard link forward": ([("p/h", HARD, "p/x"), ("p/x", FILE, "x")], "not an earlier file"),
    "device": ([("p/null", tarfile.CHRTYPE, "")], "'p/null' is a device"),
    "block device": ([("p/sda", tarfile.BLKTYPE, "")], "device"),
    "named pipe": ([("p/pipe", tarfile.FIFOTYPE, "")], "named pipe"),
    "unknown kind": ([("p/x", b"Z", "")], "unknown kind"),
    "over-long part": ([("p/" + "n" * 256, FILE, "")], "over-long name"),
    "over-long path": ([("p/" + "n/" * 1500, FOLDER, "")], "over-long name"),
    "empty link": ([("p/l", LINK, "")], "invalid target"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_member_is_named_and_refused(tmp_path: Path, name: str) -> None:
    members, message = HOSTILE[name]
    archive = write_tar(tmp_path / "evil.tar.gz", [("p/ok", FILE, "fine"), *members])
    with pytest.raises(UnsafeArchive) as caught:
        unpack_archive(archive, tmp_path / "in/tree")
    assert message in str(caught.value)
    assert "evil.tar.gz" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert list((tmp_path / "in").iterdir()) == []


def test_a_hostile_zip_is_refused_too(tmp_path: Path) -> None:
    for name, kind, text in [
        ("", FILE, "x"),
        ("../out", FILE, "x"),
        ("/out", FILE, "x"),
        ("p/l", LINK, "../../x"),
    ]:
        archive = write_zip(tmp_path / "evil.zip", [("p/ok", FILE, ""), (name, kind, text)])
        with pytest.raises(UnsafeArchive):
            unpack_archive(archive, tmp_path / "tree")


def test_bombs_are_stopped_by_ratio_size_and_count(tmp_path: Path) -> None:
    limits = ArchiveLimits(TreeLimits(members=50, total_bytes=1_000_000), ratio=20, ratio_floor_bytes=100_000)
    big = [("p/zeros", FILE, "\0" * 900_000)]
    with pytest.raises(UnsafeArchive, match="unpacks to more than"):
        unpack_archive(write_tar(tmp_path / "ratio.tar.gz", big), tmp_path / "tree", limits=limits)
    with pytest.raises(UnsafeArchive, match="unpack to more than"):
        unpack_archive(write_zip(tmp_path / "ratio.zip", big), tmp_path / "tree", limits=limits)
    with pytest.raises(UnsafeArchive, match="larger than 1,000,000 bytes"):
        unpack_archive(
            write_tar(tmp_path / "size.tar", [*big, ("p/more", HARD, "p/zeros")], ""),
            tmp_path / "tree",
            limits=limits,
        )
    many = [(f"p/{number}", FILE, "") for number in range(60)]
    for archive in (write_tar(tmp_path / "many.tar", many, ""), write_zip(tmp_path / "many.zip", many)):
        with pytest.raises(UnsafeArchive, match=r"50 members|61 members|60 members"):
            unpack_archive(archive, tmp_path / "tree", limits=limits)


def test_a_sparse_file_is_refused(tmp_path: Path) -> None:
    info = tarfile.TarInfo("p/sparse")
    info.pax_headers = {"GNU.sparse.major": "0", "GNU.sparse.minor": "1", "GNU.sparse.map": "0,0",
                        "GNU.sparse.size": str(10**15), "GNU.sparse.name": "p/sparse"}  # fmt: skip
    with tarfile.open(tmp_path / "a.tar", "w", format=tarfile.PAX_FORMAT) as archive:
        archive.addfile(info)
    with pytest.raises(UnsafeArchive, match="'p/sparse' is a sparse file"):
        unpack_archive(tmp_path / "a.tar", tmp_path / "tree")


def test_truncated_archive_is_reported_as_damaged(tmp_path: Path) -> None:
    whole = write_tar(tmp_path / "a.tar.gz", [("p/x", FILE, os.urandom(3000).hex())])
    whole.write_bytes(whole.read_bytes()[:1500])
    with pytest.raises(SourceError, match=r"a.tar.gz: .*(damaged|ends)"):
        unpack_archive(whole, tmp_path / "tree")
    (tmp_path / "page.html").write_text("<html>not an archive</html>")
    with pytest.raises(SourceError, match="damaged"):
        unpack_archive(tmp_path / "page.html", tmp_path / "tree")
    assert not (tmp_path / "tree").exists()


part = st.sampled_from(["a", "b", "..", ".", "", "a", "b", "c"])
name = st.builds(
    lambda absolute, parts: ("/" if absolute else "") + "/".join(parts),
    st.sampled_from([False, False, False, True]),
    st.lists(part, min_size=1, max_size=5),
)
kinds = st.sampled_from([FILE, FILE, LINK, LINK, HARD, FOLDER, tarfile.FIFOTYPE])
tame = st.builds("/".join, st.lists(st.sampled_from(["a", "b", "c"]), min_size=1, max_size=3))
member = st.tuples(st.one_of(tame, tame, name), kinds, name)


archives = given(st.lists(member, min_size=1, max_size=8), st.booleans(), st.booleans())


@settings(max_examples=300, deadline=None)
@archives
def test_nothing_is_written_outside_the_tree(members: list[Member], below: bool, as_zip: bool) -> None:
    check_unpacking(members, below=below, as_zip=as_zip)


@pytest.mark.slow
@pytest.mark.timeout(600)
@settings(max_examples=10_000, deadline=None)
@archives
def test_nothing_is_written_outside_the_tree_by_many_archives(
    members: list[Member], below: bool, as_zip: bool
) -> None:
    check_unpacking(members, below=below, as_zip=as_zip)


def check_unpacking(members: list[Member], *, below: bool, as_zip: bool) -> None:
    if below:
        members = [(f"p/{name}", kind, target) for name, kind, target in members]
    with tempfile.TemporaryDirectory() as folder:
        # So deep that no '..' of the test leaves the temporary folder.
        home = Path(folder).resolve().joinpath(*"123456")
        home.mkdir(parents=True)
        archive = write_zip(home / "x", members) if as_zip else write_tar(home / "x", members, "")
        before = listing(Path(folder))
        try:
            unpack_archive(archive, home / "tree")
        except SourceError:
            assert listing(Path(folder)) == before
            return
        tree = home / "tree"
        outside = {path for path in listing(Path(folder)) if not path.startswith(f"{tree}/")}
        assert outside - {str(tree)} == before
        for below_tree in tree.rglob("*"):
            assert below_tree.is_symlink() or below_tree.is_dir() or below_tree.is_file()
            end = follow_links(below_tree)
            assert end is None or end.is_relative_to(tree)


MAX_LINKS = 40
"""As many as Linux follows."""


def follow_links(path: Path) -> Path | None:
    """Return where ``path`` leads, also through folders that do not exist yet; None for a loop of links.

    ``os.path.realpath`` gives a wrong path for a loop with a "//" behind it.
    """
    here, left, links = Path("/"), deque(path.parts[1:]), 0
    while left:
        part = left.popleft()
        if part == "..":
            here = here.parent
        elif (here / part).is_symlink():
            links += 1
            if links > MAX_LINKS:
                return None
            target = str((here / part).readlink())
            here = Path("/") if target.startswith("/") else here
            left.extendleft(reversed(target.split("/")))
        else:
            here /= part
    return here


def listing(root: Path) -> set[str]:
    return {f"{folder}/{name}" for folder, folders, files in os.walk(root) for name in folders + files}


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_damaged_archive_is_unpacked_or_refused(data: st.DataObject) -> None:
    members: list[Member] = [("p/a", FILE, "content " * 40), ("p/l", LINK, "a"), ("p/d/b", FILE, "more")]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x"
        if data.draw(st.booleans()):
            write_zip(path, members)
        else:
            write_tar(path, members, data.draw(st.sampled_from(["", "gz", "bz2", "xz"])))
        content = bytearray(path.read_bytes())
        for _ in range(data.draw(st.integers(1, 5))):
            place = data.draw(st.integers(0, min(len(content), 3000) - 1))
            content[place] = data.draw(st.integers(0, 255))
        path.write_bytes(
            content[: data.draw(st.integers(0, len(content)))] if data.draw(st.booleans()) else content
        )
        try:
            unpack_archive(path, Path(folder) / "tree")
        except SourceError:
            assert not (Path(folder) / "tree").exists()
