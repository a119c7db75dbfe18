"""JDKs are found in the usual places, told by their version, and the right one is chosen."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from codetaste.core.processes import process_exists, process_stat
from codetaste.errors import ToolMissing
from codetaste.java import jdk as jdk_module
from codetaste.java.jdk import feature_release, find_jdk, find_jdks, read_jdk

pytestmark = pytest.mark.anyio


def make_jdk(home: Path, version: str, *, compiler: bool = True, works: bool = True) -> Path:
    (home / "bin").mkdir(parents=True)
    lines = f"echo 'openjdk version \"{version}\" 2026-01-01' >&2\n" + ("" if works else "exit 1\n")
    for name in ("java", *(["javac"] if compiler else [])):
        (home / "bin" / name).write_text(f"#!/bin/sh\n{lines}")
        (home / "bin" / name).chmod(0o755)
    return home


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(jdk_module, "_PLACES", (str(tmp_path / "jvm"),))
    make_jdk(tmp_path / "jvm" / "eleven", "11.0.2")
    make_jdk(tmp_path / "jvm" / "eight", "1.8.0_402")
    make_jdk(tmp_path / "jvm" / "runtime-25", "25.0.1", compiler=False)
    make_jdk(tmp_path / "jvm" / "broken-21", "21.0.1", works=False)
    (tmp_path / "jvm" / "link").symlink_to("eleven")
    (tmp_path / "jvm" / "empty").mkdir()
    return tmp_path


async def test_each_working_jdk_is_found_once_the_oldest_first(host: Path) -> None:
    found = await find_jdks(environ={"PATH": ""})
    assert [(each.feature, each.compiler) for each in found] == [(8, True), (11, True), (25, False)]


async def test_what_the_user_names_comes_first(host: Path) -> None:
    seventeen = make_jdk(host / "mine", "17")
    by_variable = await find_jdks(environ={"JAVA_HOME": str(seventeen), "PATH": ""})
    assert [each.feature for each in by_variable] == [17, 8, 11, 25]
    named = await find_jdks([host / "jvm" / "eleven"], environ={"PATH": ""})
    assert [each.feature for each in named] == [11, 8, 25]


async def test_installed_ones_and_those_of_tools_are_found(host: Path) -> None:
    make_jdk(host / "cache" / "jdks" / "openjdk-24", "24")
    make_jdk(host / ".sdkman" / "candidates" / "java" / "26", "26-ea")
    on_path = make_jdk(host / "elsewhere", "12")
    found = await find_jdks(cache=host / "cache", environ={"HOME": str(host), "PATH": str(on_path / "bin")})
    assert [each.feature for each in found] == [8, 11, 12, 24, 25, 26]


async def test_the_oldest_that_is_new_enough_and_has_a_compiler_is_chosen(host: Path) -> None:
    assert (await find_jdk(9, purpose="x", environ={"PATH": ""})).feature == 11
    with pytest.raises(ToolMissing) as caught:
        await find_jdk(23, purpose="RefactoringMiner 3.1.4", environ={"PATH": ""})
    assert str(caught.value).startswith(
        "RefactoringMiner 3.1.4 needs a JDK of release 23 or newer; on this machine: 8 in"
    )
    assert "codetaste java install" in str(caught.value)


@pytest.mark.parametrize(
    ("version", "feature"),
    [("1.8.0_402", 8), ("8", 8), ("11.0.2", 11), ("25-ea", 25), ("25.0.3", 25), ("x", None), ("", None)],
)
def test_feature_release_of_a_version(version: str, feature: int | None) -> None:
    assert feature_release(version) == feature


async def test_a_folder_without_java_is_none(tmp_path: Path) -> None:
    assert await read_jdk(tmp_path) is None


@pytest.mark.parametrize(
    "home",
    ["/" + "a" * 5000, "/a\0b", "loop", "folder", "file"],
    ids=["long", "null", "loop", "folder", "file"],
)
async def test_a_home_that_is_none_is_left_out(host: Path, home: str) -> None:
    (host / "loop").symlink_to("loop")
    (host / "folder" / "bin" / "java").mkdir(parents=True)
    (host / "file" / "bin").mkdir(parents=True)
    (host / "file" / "bin" / "java").write_text("no program")
    found = await find_jdks([host / home], environ={"JAVA_HOME": str(host / home), "PATH": ""})
    assert [each.feature for each in found] == [8, 11, 25]


async def test_nothing_of_a_java_that_hangs_runs_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jdk_module, "_VERSION_TIMEOUT_S", 0.5)
    java = make_jdk(tmp_path / "hangs", "21") / "bin" / "java"
    java.write_text(f"#!/bin/sh\nsleep 600 & echo $! >{tmp_path}/child\nwait\n")
    assert await read_jdk(tmp_path / "hangs") is None
    child = int((tmp_path / "child").read_text())
    for _ in range(100):  # until init has reaped it
        if not process_exists(child) or process_stat(child)[0] == b"Z":
            return
        await anyio.sleep(0.1)
    pytest.fail("a child of java -version still runs")
