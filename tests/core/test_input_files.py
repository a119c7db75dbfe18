"""Input files: regular files only, of a stated size, read without waiting."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from codetaste.benchmark.benchmark import Benchmark, open_benchmark
from codetaste.core.files import read_regular_file, read_text_file
from codetaste.errors import ConfigError


def test_only_regular_files_are_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "socket"))
        for path in (tmp_path / "pipe", tmp_path / "folder", tmp_path / "socket", Path("/dev/zero")):
            with pytest.raises(OSError, match=r"regular file|No such device|Is a directory"):
                read_regular_file(path)
    with pytest.raises(OSError, match="null"):
        read_regular_file(Path("a\0b"))


def test_larger_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes("\ufeffabc".encode())
    assert read_text_file(path, 6) == "abc"
    with pytest.raises(OSError, match="larger than 5 bytes"):
        read_text_file(path, 5)


def test_pipe_in_place_of_the_table_and_long_ignore_file_are_refused(tmp_path: Path) -> None:
    table = tmp_path / "instances.csv"
    os.mkfifo(table)
    with pytest.raises(ConfigError, match="not a regular file"):
        open_benchmark(tmp_path)
    table.unlink()
    table.write_text("owner,repo,commit_hash,golden_commit_hash\n")
    ignore = tmp_path / "assets" / "default.semgrepignore"
    ignore.parent.mkdir()
    ignore.write_text("a\n" * 40_000)
    with pytest.raises(ConfigError, match="larger than 65,536 bytes"):
        Benchmark(tmp_path, ()).ignore_text()
