"""Files that are there whole or not at all, and what a killed writer leaves."""

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


def killed_while_writing(path: Path) -> None:
    ended = subprocess.run([sys.executable, "-c", KILLED_WRITER, str(path)], check=False)
    assert ended.returncode == -9


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("*") if path.is_file())


def test_what_a_killed_writer_left_is_swept_and_nothing_else(tmp_path: Path) -> None:
    write_atomically(tmp_path / "a" / "whole.md", "whole")
    killed_while_writing(tmp_path / "a" / "whole.md")
    under_way = f".other.{os.getpid()}.01234567.tmp"
    for name in (under_way, ".mine.tmp", "notes.1.01234567.tmp"):
        (tmp_path / "a" / name).write_text("kept")
    assert len(names(tmp_path)) == 5
    remove_stale_files(tmp_path)
    assert names(tmp_path) == sorted([under_way, ".mine.tmp", "notes.1.01234567.tmp", "whole.md"])
    assert (tmp_path / "a" / "whole.md").read_text() == "whole"


def test_a_session_sweeps_its_run_directory(tmp_path: Path) -> None:
    async def session() -> None:
        async with open_session(tmp_path / "run") as opened:
            await opened.run()

    anyio.run(session)
    before = names(tmp_path)
    killed_while_writing(tmp_path / "run" / "discover" / "m" / "rules.yml")
    assert len(names(tmp_path)) == len(before) + 1
    anyio.run(session)
    assert names(tmp_path) == before
