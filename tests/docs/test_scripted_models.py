"""docs/guide/scripted-models.md: its script and its config work as they stand."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = (Path(__file__).resolve().parents[2] / "docs/guide/scripted-models.md").read_text("utf-8")


def fence(language: str) -> str:
    [found] = re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    return str(found)


@pytest.mark.timeout(600)
def test_the_function_of_the_page_plays_a_model(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(fence("python"))
    (tmp_path / "scripted.toml").write_text(fence("toml"))
    (words,) = re.findall(r"^    codetaste (run .+)$", PAGE, re.MULTILINE)
    command = [word.strip("'") for word in words.split()]
    done = subprocess.run(
        [sys.executable, "-m", "codetaste", *command, "--json"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    (job,) = json.loads(done.stdout)["jobs"]
    assert (job["value"]["rules"], job["value"]["turns"], job["ending"]) == (1, 3, "done")
    assert "imports-public-hooks: registered (4 matches in the base code" in done.stderr
    ledger = (tmp_path / "runs/scripted/models/script.ledger.jsonl").read_text().splitlines()
    assert len(ledger) == 3
