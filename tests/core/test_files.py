"""Files are written completely or not at all, and the files of a killed writer are removed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import anyio

from codetaste.core.files import remove_stale_files, write_atomically
from codetaste.orchestration.session import open_session

KILLED_WRITER = """
import os, sys
from pathlib import Path
import codetaste.core.files
os.fsync = lambda _: os.kill(os.getpid(), 9)
codetaste.core.files.write_atomically(Path(sys.argv[1]), "half")
"""


def write_and_be_killed(path: Path) -> None:
    process = subprocess.run([sys.executable, "-c", KILLED_WRITER, str(path)], check=False)
    assert process.returncode == -9


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("*") if path.is_file())


def test_only_files_of_killed_writers_are_removed(tmp_path: Path) -> None:
    write_atomically(tmp_path / "a" / "whole.md", "whole")
    write_and_be_killed(tmp_path / "a" / "whole.md")
    unfinished = f".other.{os.getpid()}.01234567.tmp"
    for name in (unfinished, ".mine.tmp", "notes.1.01234567.tmp"):
        (tmp_path / "a" / name).write_text("not stale")
    assert len(names(tmp_path)) == 5
    remove_stale_files(tmp_path)
    assert names(tmp_path) == sorted([unfinished, ".mine.tmp", "notes.1.01234567.tmp", "whole.md"])
    assert (tmp_path / "a" / "whole.md").read_text() == "whole"


def test_session_removes_stale_files_of_its_run_directory(tmp_path: Path) -> None:
    async def session() -> None:
        async with open_session(tmp_path / "run") as opened:
            await opened.run()

    anyio.run(session)
    before = names(tmp_path)
    write_and_be_killed(tmp_path / "run" / "discover" / "m" / "rules.yml")
    assert len(names(tmp_path)) == len(before) + 1
    anyio.run(session)
    assert names(tmp_path) == before
