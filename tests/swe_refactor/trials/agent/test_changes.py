"""The patch of an agent becomes files; what builds and agents leave beside the code does not count."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from codetaste.harness.patch.extract import ExtractedPatch, ExtractionLimits, extract_patch
from codetaste.harness.testbed.testbed import Testbed
from codetaste.swe_refactor.trials.agent.changes import AgentChanges, may_be_answer, read_changes
from support.harness.folder_sandbox import folder_sandbox, make_testbed, write_files
from support.harness.testbed_tree import unpack_testbed

pytestmark = pytest.mark.anyio
MAIN, OTHER = "src/main/java/p/A.java", "src/main/java/p/B.java"
FILES: dict[str, bytes | str] = {
    "pom.xml": b"<project/>",
    MAIN: b"class A {\r\n\xff}\r\n",
    OTHER: b"class B {}\n",
    "bin/Tool.java": b"class Tool {}\n",
    "latest": "pom.xml",
}


@dataclass
class Repository:
    base: Path
    testbed: Testbed
    path: Path
    scratch: Path

    async def patch(self, limits: ExtractionLimits | None = None) -> ExtractedPatch:
        return await extract_patch(
            folder_sandbox(self.path),
            self.testbed,
            limits,
            counts=lambda path: may_be_answer(path, self.base),
        )

    async def changes(self) -> AgentChanges:
        return await read_changes(await self.patch(), self.base, self.scratch)


@pytest.fixture
async def repository(tmp_path: Path) -> Repository:
    base = write_files(tmp_path / "base", FILES)
    testbed = await make_testbed(base, tmp_path / "cache")
    tree = await unpack_testbed(testbed, tmp_path / "sandbox")
    (tmp_path / "scratch").mkdir()
    return Repository(base, testbed, tree.path, tmp_path / "scratch")


async def test_changed_files_are_whole_and_exact(repository: Repository) -> None:
    path = repository.path
    (path / MAIN).write_bytes(b"class A {\r\n\xff int a;}\r\n")
    (path / OTHER).rename(path / "src/main/java/p/C.java")
    (path / "pom.xml").chmod(0o755)
    assert await repository.changes() == AgentChanges(
        {
            MAIN: b"class A {\r\n\xff int a;}\r\n",
            OTHER: None,
            "src/main/java/p/C.java": b"class B {}\n",
        }
    )
    assert not [*repository.scratch.iterdir()]


async def test_what_builds_and_agents_leave_does_not_count(repository: Repository) -> None:
    left = {
        "target/classes/p/A.class": b"\xca\xfe",
        "target/generated-sources/G.java": b"class G {}",
        "sub/build/tmp/H.java": b"class H {}",
        "NOTES.md": b"I extracted a method.",
        f"{MAIN}.orig": b"class A {}",
        "src/test/resources/junit-platform.properties": b"x = 1",
        "big.bin": bytes(1000),
    }
    write_files(repository.path, left)
    limits = ExtractionLimits(file_bytes=500, content_bytes=500)
    patch = await repository.patch(limits)
    assert (patch.patch, patch.files, patch.problem) == (b"", 0, "")
    (note,) = patch.notes
    assert "7 files" in note
    assert await read_changes(patch, repository.base, repository.scratch) == AgentChanges()


@pytest.mark.parametrize(
    ("path", "counts"),
    [
        ("src/main/java/p/target/New.java", True),
        ("bin/New.java", True),
        ("New.java", True),
        ("sub/pom.xml", True),
        ("target/classes/META-INF/maven/pom.xml", False),
        ("out/New.java", False),
        ("module/target/New.java", False),
        ("src/main/resources/x.txt", False),
    ],
)
async def test_new_files_that_count(repository: Repository, path: str, counts: bool) -> None:
    assert may_be_answer(path, repository.base) == counts


def link_file(path: Path) -> None:
    (path / MAIN).unlink()
    (path / MAIN).symlink_to("/etc/passwd")


def link_new_file(path: Path) -> None:
    (path / "src/main/java/p/New.java").symlink_to("../../../../../../etc/passwd")


def link_folder(path: Path) -> None:
    subprocess.run(["rm", "-r", path / "src"], check=True)
    (path / "src").symlink_to("/etc")


@pytest.mark.parametrize(
    ("do", "expected"),
    [(link_file, "outside"), (link_new_file, "outside"), (link_folder, None)],
)
async def test_links_are_no_answer(
    repository: Repository, do: Callable[[Path], None], expected: str | None
) -> None:
    do(repository.path)
    found = await repository.changes()
    if expected is None:
        assert dict(found.files) == {MAIN: None, OTHER: None}, "the files of the folder are gone"
    else:
        assert found.problem is not None
        assert (found.problem.kind, dict(found.files)) == (expected, {})
        assert "symbolic link" in found.problem.sentence


async def test_a_part_of_the_changes_is_no_answer(repository: Repository) -> None:
    write_files(repository.path, {MAIN: b"class A {}", OTHER: bytes(1000)})
    patch = await repository.patch(ExtractionLimits(file_bytes=500, content_bytes=500))
    found = await read_changes(patch, repository.base, repository.scratch)
    assert found.problem is not None
    assert (found.problem.kind, dict(found.files)) == ("bad_patch", {})
    assert "too large" in found.problem.sentence
