"""``codetaste.run(config)``: a run from Python, also where an event loop runs."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tomllib
from datetime import date
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

import codetaste
from codetaste.run import render_toml

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
NUMBERS = st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False) | st.booleans() | st.dates()
VALUES = st.recursive(
    TEXTS | NUMBERS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(TEXTS, VALUES, max_size=4))
def test_a_mapping_is_written_as_the_same_toml(config: dict[str, Any]) -> None:
    assert tomllib.loads(render_toml(config)) == config


def test_none_is_left_out_and_paths_are_texts() -> None:
    config = {"run": {"out": Path("x/y"), "time_limit": None}, "judge": None, "day": date(2026, 1, 2)}
    assert tomllib.loads(render_toml(config)) == {"run": {"out": "x/y"}, "day": date(2026, 1, 2)}
    with pytest.raises(codetaste.ConfigError, match="set is no value of a config"):
        render_toml({"run": {1, 2}})


def test_problems_of_a_config_are_errors_with_their_keys(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(codetaste.ConfigError, match=r"config: run\.nam: unknown key") as raised:
        codetaste.run({"run": {"nam": "x"}})
    assert len(raised.value.problems) > 1
    assert not list(tmp_path.iterdir())


@pytest.mark.heavy
def test_a_mapping_runs_beside_a_running_loop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    config = tomllib.loads((EXAMPLES / "quickstart.toml").read_text())
    config["run"]["out"] = "runs"
    config["models"][0]["model"] = f"{EXAMPLES / 'quickstart_model.py'}:reply"

    async def notebook() -> codetaste.FinishedRun:
        return codetaste.run(config, only=["discover/*/additive"])

    finished = anyio.run(notebook)
    assert (finished.exit_code, finished.folder) == (0, Path("runs/quickstart"))
    assert finished.summary["endings"] == {"ok": 1}
    assert {job.state for job in codetaste.load("quickstart").jobs} == {"done"}
    again = codetaste.run(config, only=["discover/*/additive"])
    assert all(job["resumed"] for job in again.summary["jobs"])


STOPPED = """
import sys, codetaste
finished = codetaste.run(sys.argv[1])
print(finished.exit_code, finished.folder)
"""


@pytest.mark.heavy
def test_one_interrupt_stops_the_run_cleanly(tmp_path: Path) -> None:
    config = (EXAMPLES / "quickstart.toml").read_text().replace("../runs", "runs")
    config = config.replace("quickstart_model.py:reply", "slow.py:reply")
    (tmp_path / "config.toml").write_text(config)
    (tmp_path / "slow.py").write_text(
        "from codetaste.llm.providers.scripted import ScriptedReply\n"
        "def reply(request):\n    return ScriptedReply('...', latency_s=600)\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", STOPPED, "config.toml"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    journal = tmp_path / "runs/quickstart/journal.jsonl"
    while not (journal.is_file() and '"reserved"' in journal.read_text()):
        assert process.poll() is None
        os.sched_yield()
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=120)
    assert out.split() == ["130", "runs/quickstart"]
