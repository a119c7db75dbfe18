"""Exports are read by Harbor's own models and validator, and by Inspect's own code."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from codetaste.assembly.harbor.task import HARBOR_VERSION
from codetaste.results.outcome import OutcomeFacet
from support.cli import invoke
from support.site.synthetic import Size, write_results
from support.transcripts.gateway_lines import GatewayLines

INSPECT_VERSION = "0.3.285"
ODD = "</script>\x1b[31m\x00\ud800 ü"
READ_ATIF = """
import json, sys, typing
if not hasattr(typing, "override"):  # Harbor asks for Python 3.12, its models need no more of it than this
    typing.override = lambda function: function
sys.path.insert(0, "unpacked")
from harbor.models.trajectories import Trajectory
from harbor.utils.trajectory_validator import TrajectoryValidator
for path in sys.argv[1:]:
    validator = TrajectoryValidator()
    validator.validate(path)
    trajectory = Trajectory(**json.load(open(path)))
    calls = sum(len(step.tool_calls or ()) for step in trajectory.steps)
    subs = [sub.trajectory_id for sub in trajectory.subagent_trajectories or ()]
    print(json.dumps([validator.errors, trajectory.extra["codetaste"]["outcome"], calls, subs]))
"""
READ_INSPECT = """
import json, socket, sys
def refuse(*args, **more):
    raise RuntimeError("the network was touched")
socket.socket.connect = socket.create_connection = refuse
from inspect_ai.log import list_eval_logs, read_eval_log, read_eval_log_sample_summaries
for info in sorted(list_eval_logs(sys.argv[1]), key=lambda info: info.name):
    log = read_eval_log(info, resolve_attachments=True)
    for sample, summary in zip(log.samples, read_eval_log_sample_summaries(info), strict=True):
        assert (sample.id, sample.epoch, sample.scores) == (summary.id, summary.epoch, summary.scores)
        assert "attachment://" not in sample.model_dump_json()
    rows = [[s.id, len(s.messages), len(s.events), s.metadata["outcome"]] for s in log.samples]
    means = {score.name: score.metrics["mean"].value for score in log.results.scores}
    print(json.dumps([info.task, log.status, rows, means]))
"""


@pytest.fixture
def codetaste(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.chdir(tmp_path)
    return partial(invoke.codetaste, capsys)


def run_in(folder: Path, *command: str) -> str:
    home = {**os.environ, "HOME": str(folder), "XDG_DATA_HOME": str(folder / "data")}
    done = subprocess.run(command, cwd=folder, env=home, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def install(folder: Path, *packages: str) -> str:
    """Return the Python of a new environment that has ``packages``."""
    python = str(folder / "venv/bin/python")
    run_in(folder, sys.executable, "-m", "venv", "venv")
    pip = ["-m", "pip", "-q", "--disable-pip-version-check", "--cache-dir", str(pip_cache())]
    run_in(folder, python, *pip, "install", "--no-compile", *packages)
    return python


def pip_cache() -> Path:
    return Path(os.environ.get("PIP_CACHE_DIR") or Path.home() / ".cache/pip")


def make_run(folder: Path) -> Path:
    """Make a run with odd texts, a gateway's transcript with sub-agents, and a trial without transcript."""
    _, run = write_results(folder, Size(instances=3, agents=2, settings=2, turns=2))
    first, second, third = sorted(run.glob("outputs/*/*/*/*/*/*/inference.out"))[:3]
    line = {
        "role": "assistant",
        "content": [{"type": "text", "text": ODD}, {"type": "text", "text": "x" * 10_000_000}],
    }
    first.write_text("".join(json.dumps(each) + "\n" for each in ({"model": ODD, "system": ODD}, line)))
    second.unlink()
    lines = GatewayLines(third.parent, third.name)
    lines.path.write_text(lines.path.read_text().splitlines()[-1] + "\n")
    tool = {"type": "tool_use", "id": "c1", "name": "task", "input": {"a": [1.5, None]}}
    lines.exchange(
        [{"role": "user", "content": "task"}], {"role": "assistant", "content": [tool]}, tools=["task"]
    )
    lines.exchange([{"role": "user", "content": "sub"}], {"role": "assistant", "content": "found"})
    lines.exchange([{"role": "user", "content": "cut"}], error="overloaded", status=529)
    return run


@pytest.mark.heavy
@pytest.mark.timeout(1200)  # it installs packages
def test_harbor_reads_the_trajectories(tmp_path: Path, codetaste: Callable[..., str]) -> None:
    made = json.loads(codetaste("export", make_run(tmp_path), "--to", "atif", "-o", "out", "--json"))
    paths = [str((tmp_path / file["path"]).absolute()) for file in made["files"]]
    assert len(paths) == 3 * 2 * 2
    python = install(tmp_path, "pydantic==2.14.3")
    pip = (python, "-m", "pip", "-q", "download", "--no-deps", "--only-binary=:all:", "--python-version=3.12")
    run_in(tmp_path, *pip, "-d", "wheels", f"harbor=={HARBOR_VERSION}")
    (wheel,) = (tmp_path / "wheels").glob("harbor-*.whl")
    zipfile.ZipFile(wheel).extractall(tmp_path / "unpacked")
    rows = [json.loads(line) for line in run_in(tmp_path, python, "-c", READ_ATIF, *paths).splitlines()]
    assert len(rows) == len(paths)
    assert [errors for errors, *_ in rows] == [[]] * len(rows)
    assert {outcome for _, outcome, *_ in rows} <= {facet.value for facet in OutcomeFacet}
    assert ["inference.out#sub-agent 1", "inference.out#sub-agent 2"] in [subs for *_, subs in rows]
    assert {calls for *_, calls, _ in rows} >= {0, 1, 2}


@pytest.mark.heavy
@pytest.mark.timeout(1200)  # it installs packages
def test_inspect_reads_the_logs(tmp_path: Path, codetaste: Callable[..., str]) -> None:
    made = json.loads(codetaste("export", make_run(tmp_path), "--to", "inspect", "-o", "out", "--json"))
    assert len(made["files"]) == 2 * 2
    python = install(tmp_path, f"inspect_ai=={INSPECT_VERSION}")
    rows = [json.loads(line) for line in run_in(tmp_path, python, "-c", READ_INSPECT, "out").splitlines()]
    assert [len(samples) for _, _, samples, _ in rows] == [3] * 4
    assert {status for _, status, *_ in rows} <= {"success", "started"}
    for file, (_, _, samples, means) in zip(
        sorted(made["files"], key=lambda file: file["path"]), rows, strict=True
    ):
        outcomes = [outcome for *_, outcome in samples]
        assert {name: outcomes.count(name) for name in outcomes} == file["outcomes"]
        assert set(means) <= {"A", "PASS", "IFR", "PREC"}
    assert 0 in [messages for _, _, samples, _ in rows for _, messages, *_ in samples]
    bundle = (python, "-m", "inspect_ai", "view", "bundle", "--log-dir", "out", "--output-dir", "bundle")
    run_in(tmp_path, *bundle)
    assert len([*(tmp_path / "bundle").rglob("*.eval")]) == 4
