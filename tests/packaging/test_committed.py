"""No committed file names a package registry's host, a path of a machine, or a key."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parents[2]
CHECK = CHECKOUT / ".ci" / "committed.py"


def check(folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, CHECK, folder], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("https://files.python" + "hosted.org/packages/x", "a registry's host name"),
        ("https://mirror.example/p/pluggy-1.0.0" + ".tar.gz", "a download address"),
        ("DATA = '/" + "work/shared/data'", "a path of one machine"),
        ("cd /" + "root/.cache", "a path of one machine"),
        ("key = 'sk-" + "ant-api03-abcdefghijklmnopqrstuvwxyz'", "something like a key"),
        ("-----BEGIN OPENSSH " + "PRIVATE KEY-----", "something like a key"),
    ],
)
def test_forbidden_text_is_reported_with_line_and_reason(
    tmp_path: Path, text: str, reason: str, require: Callable[..., None]
) -> None:
    require("git")
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    (tmp_path / "page.md").write_text(f"fine: docs/work/notes.md\n{text}\n")
    subprocess.run(["git", "-C", tmp_path, "add", "page.md"], check=True)
    done = check(tmp_path)
    assert done.returncode == 1
    assert done.stdout.startswith(f"page.md:2: {reason}: ")
    assert len(done.stdout.splitlines()) == 1


def test_this_checkout_has_no_forbidden_text(require: Callable[..., None]) -> None:
    require("git", ok=(CHECKOUT / ".git").exists(), reason="this is no git checkout")
    done = check(CHECKOUT)
    assert (done.returncode, done.stdout) == (0, "")
