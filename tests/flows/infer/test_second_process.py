"""A second process that is told to work on a run while the first one does."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from flows.infer.test_gateway import program_place
from support.flows import tiny_benchmark
from support.flows.tiny_benchmark import Tiny
from support.flows.trial_runs import metadata, output


@pytest.fixture(autouse=True)
def boxes(require: Callable[..., None], bubblewrap: Path, tools: None) -> None:
    require("python3", ok=Path("/usr/bin/python3").exists(), reason="no python3 for programs in boxes")


def test_it_is_refused_and_takes_nothing_from_the_agents_at_work(tmp_path: Path, alpha: Tiny) -> None:
    where = program_place(tmp_path, alpha, "by_shell_slowly")
    first = where.start("--json")
    try:
        tiny_benchmark.wait_for_progress(first, where.out, 4)
        first.send_signal(signal.SIGSTOP)
        second = where.run()
        first.send_signal(signal.SIGCONT)
        assert second.code != 0
        assert "is in use by process" in second.err
        done = tiny_benchmark.finished(first, 60)
    finally:
        first.kill()
    assert done.code == 0, done.err
    assert metadata(output(where, alpha))["finish_reason"] == "success"
