"""A second process on a run whose first process is running."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from flows.infer.test_gateway import make_program_workspace
from support.flows import tiny_benchmark
from support.flows.tiny_benchmark import TinyBenchmark
from support.flows.trial_runs import output_folder, read_metadata


@pytest.fixture(autouse=True)
def sandboxes(require: Callable[..., None], bubblewrap: Path, tools: None) -> None:
    require("python3", ok=Path("/usr/bin/python3").exists(), reason="no python3 for agents in sandboxes")


@pytest.mark.heavy
def test_second_process_is_refused_and_agents_continue(tmp_path: Path, alpha: TinyBenchmark) -> None:
    workspace = make_program_workspace(tmp_path, alpha, "by_shell_slowly")
    first = workspace.start("--json")
    try:
        tiny_benchmark.wait_for_progress(first, workspace.out, 4)
        first.send_signal(signal.SIGSTOP)
        second = workspace.run()
        first.send_signal(signal.SIGCONT)
        assert second.code != 0
        assert "is in use by process" in second.err
        result = tiny_benchmark.wait_for_result(first, 200)
    finally:
        first.kill()
    assert result.code == 0, result.err
    assert read_metadata(output_folder(workspace, alpha))["finish_reason"] == "success"
