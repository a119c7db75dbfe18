"""Running git: a full disk is reported as such, and nothing that a clone configures is run."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import anyio
import pytest

from codetaste.source.git import run_git
from support.source.repositories import make_repository

SCRIPT = """
mount -t tmpfs -o size="$2" tmpfs "$1" && git init -q --bare "$1/git" && exec "$3" -c "$4" "$1/git" "$5"
"""
PROGRAM = """
import sys
from pathlib import Path
import anyio
from codetaste.errors import StorageFull
from codetaste.source.git import run_git
async def main():
    with open(sys.argv[2], "rb") as stdin:
        try:
            await run_git("fast-import", "--quiet", git_dir=Path(sys.argv[1]), timeout_s=200, stdin=stdin)
        except StorageFull as error:
            print(error)
anyio.run(main)
"""


@pytest.mark.parametrize("size", ["512k", "601k", "700k"])
def test_git_full_disk_is_reported_as_full_disk(
    size: str, tmp_path: Path, require: Callable[..., None]
) -> None:
    command = ["unshare", "--mount", "--map-root-user"]
    probe = subprocess.run([*command, "mount", "-t", "tmpfs", "t", "/mnt"], capture_output=True, check=False)
    require("unshare", ok=probe.returncode == 0, reason=f"cannot mount a tmpfs: {probe.stderr.decode()}")
    blobs = tmp_path / "blobs"
    with blobs.open("wb") as file:
        for number in range(20_000):
            content = b"%d" % number * 20
            file.write(b"blob\ndata %d\n%b\n" % (len(content), content))
    (tmp_path / "disk").mkdir()
    done = subprocess.run(
        [*command, "sh", "-c", SCRIPT, "sh", tmp_path / "disk", size, sys.executable, PROGRAM, blobs],
        capture_output=True,
        text=True,
        timeout=250,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "git fast-import: no space left on the device" in done.stdout


def test_git_log_neither_verifies_signatures_nor_writes_in_an_encoding_of_the_clone(tmp_path: Path) -> None:
    repository = make_repository(tmp_path / "clone")
    tree = repository.git("rev-parse", f"{repository.commit({b'a': b'1'})}^{{tree}}")
    signed = (
        f"tree {tree}\nauthor A <a@b> 1700000000 +0000\ncommitter A <a@b> 1700000000 +0000\n"
        "gpgsig -----BEGIN PGP SIGNATURE-----\n \n x\n -----END PGP SIGNATURE-----\n\nRework ä\n"
    )
    commit = repository.git("hash-object", "-t", "commit", "-w", "--stdin", stdin=signed.encode())
    program = tmp_path / "gpg"
    program.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    program.chmod(0o755)
    for name, value in (
        ("log.showSignature", "true"),
        ("gpg.program", str(program)),
        ("i18n.logOutputEncoding", "UTF-16"),
    ):
        repository.git("config", name, value)
    read = partial(run_git, "log", "-1", "--format=%B", commit, git_dir=repository.path / ".git")
    assert anyio.run(read).output == "Rework ä\n\n".encode()
    assert not (tmp_path / "ran").exists()
