"""A run on a full disk: a small tmpfs in a user namespace of the test."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parents[2] / "support" / "orchestration" / "full_disk_run.py"
SCRIPT = """
set -eu
mount -t tmpfs -o size=128k tmpfs "$1"
status=0; "$2" "$3" "$1/run" || status=$?
echo "first $status"
cp "$1/run/journal.jsonl" "$4"
mount -o remount,size=8m tmpfs "$1"
status=0; "$2" "$3" "$1/run" || status=$?
echo "second $status"
cp "$1/run/journal.jsonl" "$5"
"""
BLOBS = """
import anyio, sys
from pathlib import Path
from codetaste.errors import StorageFull
from codetaste.orchestration.journal.blobs import Blobs
async def main():
    blobs = Blobs(Path(sys.argv[1]) / "blobs")
    digest = await blobs.store("short")
    try:
        await blobs.store("x" * 1_000_000)
    except StorageFull as error:
        print(error)
    assert await blobs.load(digest) == "short"
    print(len([path for path in Path(sys.argv[1]).rglob("*") if path.is_file()]))
anyio.run(main)
"""


@pytest.fixture
def own_mounts(require: Callable[..., None]) -> list[str]:
    """Return the command that runs a program in a namespace where it may mount."""
    command = ["unshare", "--mount", "--map-root-user"]
    done = subprocess.run([*command, "mount", "-t", "tmpfs", "t", "/mnt"], capture_output=True, check=False)
    require("unshare", ok=done.returncode == 0, reason=f"cannot mount a tmpfs: {done.stderr.decode()}")
    return command


def test_full_disk_is_one_error_and_run_continues_with_space(tmp_path: Path, own_mounts: list[str]) -> None:
    (tmp_path / "disk").mkdir()
    journals = [tmp_path / "full.jsonl", tmp_path / "end.jsonl"]
    done = subprocess.run(
        [*own_mounts, "sh", "-c", SCRIPT, "sh", tmp_path / "disk", sys.executable, PROGRAM, *journals],
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    error, first, outcomes, second = done.stdout.splitlines()
    assert error.endswith(
        "journal.jsonl: No space left on device; free space on that disk, then repeat the command"
    )
    assert (first, second) == ("first 3", "second 0")
    assert json.loads(outcomes) == {f"job-{number}": "done" for number in range(8)}
    full, end = ([json.loads(line) for line in path.read_text().splitlines()] for path in journals)
    assert end[: len(full)] == full  # the file was valid to its last byte, and resuming removed nothing
    effects = [(line["key"], line["name"]) for line in end if line["event"] == "effect"]
    assert len(effects) == len(set(effects)) == 8 * 20  # no recorded effect was repeated
    settled = [line["call"].partition("#")[0] for line in end if line["event"] == "settled"]
    assert len(settled) == len(set(settled)) == 8 * 20  # and none was paid twice


def test_text_larger_than_the_disk_leaves_no_file(tmp_path: Path, own_mounts: list[str]) -> None:
    script = 'mount -t tmpfs -o size=64k tmpfs "$1" && exec "$2" -c "$3" "$1"'
    done = subprocess.run(
        [*own_mounts, "sh", "-c", script, "sh", tmp_path, sys.executable, BLOBS],
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    error, files = done.stdout.splitlines()
    assert "No space left on device" in error
    assert files == "1"
