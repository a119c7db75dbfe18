"""``kill -9`` during a run of many short jobs, as ``perf/kills.py`` measures it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "perf" / "kills.py"


def run_with_kills(kills: int, jobs: int, tmp_path: Path) -> dict[str, float]:
    command = [sys.executable, str(SCRIPT), "--kills", str(kills), "--jobs", str(jobs), "--json"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return {row["name"]: row["median"] for row in json.loads(done.stdout)["rows"]}


def check(figures: dict[str, float], kills: int) -> None:
    assert figures["kills"] == kills
    assert (figures["repeated"], figures["lost"], figures["bought twice"]) == (0, 0, 0)
    assert figures["billed usd"] == figures["settled usd"] > 0
    assert figures["unknown usd"] == 0


@pytest.mark.heavy
def test_repeatedly_killed_run_repeats_and_loses_nothing(tmp_path: Path) -> None:
    check(run_with_kills(6, 60, tmp_path), 6)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_run_killed_a_hundred_times_repeats_and_loses_nothing(tmp_path: Path) -> None:
    check(run_with_kills(100, 1000, tmp_path), 100)
