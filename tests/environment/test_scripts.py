"""Scripts of an environment: read and written byte for byte; scripts that cannot be run are named."""

from __future__ import annotations

import io
import os
import tarfile
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codetaste.environment.scripts import (
    MAX_FILE_BYTES,
    MAX_FILES,
    EnvironmentScripts,
    ScriptFile,
    make_scripts,
    read_scripts,
    read_scripts_archive,
)
from codetaste.errors import ConfigError
from support.environment.instances import RUN_TESTS, SETUP_SHELL, SETUP_SYSTEM, scripts

pytestmark = pytest.mark.anyio


async def pieces(archive: bytes, size: int = 700) -> AsyncIterator[bytes]:
    for at in range(0, len(archive), size):
        yield archive[at : at + size]


def problems_of(**changed: bytes) -> str:
    contents = {"setup_system": SETUP_SYSTEM, "setup_shell": SETUP_SHELL, "run_tests": RUN_TESTS, **changed}
    with pytest.raises(ConfigError) as caught:
        make_scripts(**contents)
    assert len(caught.value.problems) == 1
    return caught.value.problems[0]


def test_scripts_are_written_and_read_byte_for_byte_with_their_modes(tmp_path: Path) -> None:
    made = EnvironmentScripts(
        {
            **scripts().files,
            "lib/report.py": ScriptFile(b"print()\r\n\0"),
            "lib/deep/wrapper.sh": ScriptFile(b"#!/bin/sh\n", executable=True),
        }
    )
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder/earlier").write_text("of another attempt")
    previous = os.umask(0o077)
    try:
        made.write(tmp_path / "folder")
    finally:
        os.umask(previous)
    assert read_scripts(tmp_path / "folder") == made
    modes = {
        path.relative_to(tmp_path).as_posix(): path.stat().st_mode & 0o777 for path in tmp_path.rglob("*")
    }
    assert modes == {
        "folder": 0o755,
        "folder/lib": 0o755,
        "folder/lib/deep": 0o755,
        "folder/lib/report.py": 0o644,
        "folder/lib/deep/wrapper.sh": 0o755,
        "folder/SUMMARY.md": 0o644,
        **{f"folder/{name}": 0o755 for name in ("setup_system.sh", "setup_shell.sh", "run_tests")},
    }


async def test_archive_of_a_sandbox_gives_the_same_scripts() -> None:
    made = scripts()
    assert await read_scripts_archive(pieces(made.archive())) == made
    assert (made.setup_system, made.setup_shell, made.run_tests) == (SETUP_SYSTEM, SETUP_SHELL, RUN_TESTS)
    assert made.summary == "# Summary\n"


def test_digest_is_of_names_contents_and_modes() -> None:
    made = scripts()
    assert made.digest == EnvironmentScripts(dict(reversed(made.files.items()))).digest
    assert made.archive() == scripts().archive()
    others = [
        scripts(SETUP_SHELL + b"\n"),
        EnvironmentScripts({**made.files, "more": ScriptFile(b"")}),
        EnvironmentScripts({**made.files, "SUMMARY.md": ScriptFile(b"# Summary\n", executable=True)}),
    ]
    assert len({made.digest, *(other.digest for other in others)}) == 4


def test_mount_is_at_the_fixed_place(tmp_path: Path) -> None:
    mount = scripts().as_mount(tmp_path / "scripts")
    assert (mount.source, mount.target) == (tmp_path / "scripts", "/scripts")


@pytest.mark.parametrize("missing", ["setup_system.sh", "setup_shell.sh", "run_tests"])
def test_missing_script_is_named(tmp_path: Path, missing: str) -> None:
    scripts().write(tmp_path / "s")
    (tmp_path / "s" / missing).unlink()
    with pytest.raises(ConfigError, match=f"{missing}: missing"):
        read_scripts(tmp_path / "s")


def test_summary_may_be_missing(tmp_path: Path) -> None:
    scripts().write(tmp_path / "s")
    (tmp_path / "s/SUMMARY.md").unlink()
    assert read_scripts(tmp_path / "s").summary == ""


def test_every_problem_is_named_at_once(tmp_path: Path) -> None:
    scripts().write(tmp_path / "s")
    (tmp_path / "s/run_tests").chmod(0o644)
    (tmp_path / "s/setup_system.sh").write_bytes(b"exit 0\n")
    (tmp_path / "s/link").symlink_to("/etc/passwd")
    os.mkfifo(tmp_path / "s/pipe")
    with pytest.raises(ConfigError) as caught:
        read_scripts(tmp_path / "s")
    assert sorted(line.removeprefix(f"{tmp_path}/s/") for line in caught.value.problems) == [
        "link: not a regular file",
        "pipe: not a regular file",
        "run_tests: is not executable; run chmod +x run_tests",
        "setup_system.sh: its first line names no interpreter; it must be like #!/bin/bash",
    ]


def test_folder_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"none: cannot be read: No such file or directory"):
        read_scripts(tmp_path / "none")


@pytest.mark.parametrize("first", [b"#!/bin/bash", b"#!/usr/bin/env bash", b"#! /bin/sh -e", b"set -e", b""])
def test_sourced_script_needs_no_interpreter_but_may_name_a_shell(first: bytes) -> None:
    made = make_scripts(SETUP_SYSTEM, first + b"\nexport A=1\n", b"#!/usr/bin/env python3\n")
    assert made.setup_shell.startswith(first)


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        (
            {"setup_shell": b"#!/usr/bin/env python3\n"},
            "is sourced by bash, but its first line names python3",
        ),
        ({"run_tests": b"\xef\xbb\xbf#!/bin/bash\n"}, "its first line names no interpreter"),
        ({"run_tests": b"#!/bin/bash\r\necho\r\n"}, "has the line ends of Windows"),
        ({"run_tests": b""}, "its first line names no interpreter"),
        ({"setup_system": b"#!/bin/sh\n\0"}, "has NUL bytes"),
        ({"run_tests": b"#!/bin/sh\n" + b"#" * MAX_FILE_BYTES}, "more than 1,048,576 bytes"),
    ],
)
def test_script_that_cannot_be_run_is_named(changed: dict[str, bytes], problem: str) -> None:
    assert problem in problems_of(**changed)


def test_number_and_size_of_files_are_limited(tmp_path: Path) -> None:
    scripts().write(tmp_path / "s")
    for number in range(MAX_FILES):
        (tmp_path / f"s/{number}").write_bytes(b"")
    with pytest.raises(ConfigError, match="more than 64 files"):
        read_scripts(tmp_path / "s")
    for number in range(5):
        (tmp_path / f"s/{number}").write_bytes(b"#" * 1024**2)
    for number in range(5, MAX_FILES):
        (tmp_path / f"s/{number}").unlink()
    with pytest.raises(ConfigError, match="more than 4,194,304 bytes"):
        read_scripts(tmp_path / "s")


def archive_with(*members: tarfile.TarInfo) -> bytes:
    into = io.BytesIO()
    with tarfile.open(fileobj=into, mode="w") as archive:
        for name, file in scripts().files.items():
            info = tarfile.TarInfo(f"scripts/{name}")
            info.size, info.mode = len(file.content), file.mode
            archive.addfile(info, io.BytesIO(file.content))
        for info in members:
            archive.addfile(info, io.BytesIO(bytes(info.size)))
    return into.getvalue()


def member(name: str, kind: bytes = tarfile.REGTYPE, size: int = 0, link: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.size, info.linkname = kind, size, link
    return info


@pytest.mark.parametrize(
    ("bad", "problem"),
    [
        (member("scripts/x", tarfile.SYMTYPE, link="/etc/passwd"), "x: a link, not a regular file"),
        (member("scripts/x", tarfile.CHRTYPE), "x: a device, not a regular file"),
        (member("scripts/../../etc/passwd"), "cannot be there"),
        (member("scripts/a/b/c/d/e"), "cannot be there"),
        (member("scripts/x", size=MAX_FILE_BYTES + 1), "x: 1,048,577 bytes, at most 1,048,576"),
    ],
)
async def test_member_that_is_no_script_is_named(bad: tarfile.TarInfo, problem: str) -> None:
    with pytest.raises(ConfigError) as caught:
        await read_scripts_archive(pieces(archive_with(bad)))
    assert len(caught.value.problems) == 1
    assert problem in caught.value.problems[0]


async def test_caches_of_python_are_no_scripts() -> None:
    found = await read_scripts_archive(pieces(archive_with(member("scripts/__pycache__/x.pyc", size=4))))
    assert found == scripts()


async def test_archive_with_too_many_files_is_one_line() -> None:
    many = [member(f"scripts/{number}") for number in range(200)]
    with pytest.raises(ConfigError, match="more than 64 files"):
        await read_scripts_archive(pieces(archive_with(*many)))


async def test_endless_archive_ends() -> None:
    async def endless() -> AsyncIterator[bytes]:
        while True:
            yield archive_with(*[member(f"scripts/{number}", size=10**6) for number in range(9)])[:-10240]

    with pytest.raises(ConfigError, match="more than"):
        await read_scripts_archive(endless())


@given(cut=st.integers(0, 3000), noise=st.binary(max_size=40))
async def test_damaged_archive_gives_scripts_or_names_its_folder(cut: int, noise: bytes) -> None:
    whole = scripts().archive()
    damaged = pieces(whole[:cut] + noise + whole[cut + len(noise) :])
    problems = await problems_of_archive(damaged)
    assert all(problem.startswith("/scripts") for problem in problems)


async def problems_of_archive(archive: AsyncIterator[bytes]) -> tuple[str, ...]:
    try:
        await read_scripts_archive(archive)
    except ConfigError as error:
        return error.problems
    return ()
