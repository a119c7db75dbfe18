"""The three real CLI agents on all tracks and in all modes, end to end, in bubblewrap and Docker."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from codetaste.environment.leak_search.secrets import GATEWAY_TOKEN
from support.flows.cli_agent_models import DONE, LOOK, plan_text
from support.flows.cli_agent_runs import (
    KEYS,
    PROGRAMS,
    SECRET,
    TRACKS,
    Config,
    ledger_lines,
    make_bench,
    trial_folder,
)
from support.flows.tiny_benchmark import Bench, CommandResult, Row, TinyBenchmark, Workspace
from support.flows.trial_runs import apply_prediction, published_cost, read_metadata

pytestmark = [pytest.mark.heavy, pytest.mark.timeout(600)]

EACH_ONE_MODE = {"open/plan": ("claude-code",), "open/multiplan": ("codex",), "open/direct": ("qwen-code",)}
ALL = {track: tuple(PROGRAMS) for track in TRACKS}
RUNS = {
    "bubblewrap": ("bubblewrap", ALL),
    "docker": ("docker", EACH_ONE_MODE),
    "docker, all": ("docker", ALL),
}
USUAL = {"agent_config.json", "inference_metadata.json", "inference.out", "prediction.diff"}
LOGS = {
    "direct": set[str](),
    "plan": {"plan_metadata.json", "plan.out"},
    "multiplan": {
        *("multiplan_generation_metadata.json", "multiplan.out"),
        *("multiplan_metadata.json", "judge.out"),
    },
}
PLANS = {
    "direct": set[str](),
    "plan": {"refactoring_plan.md"},
    "multiplan": {f"refactoring_plans/refactoring_plan{number}.md" for number in range(5)},
}


@dataclass
class AgentRuns:
    """An uninterrupted run of the CLI agents."""

    kind: str
    bench: Bench
    workspace: Workspace
    result: CommandResult
    tracks: dict[str, tuple[str, ...]]

    @property
    def row(self) -> Row:
        return self.bench.rows[0]

    def trials(self) -> Iterator[tuple[str, str, Path, dict[str, Any]]]:
        """Yield track, agent, output folder and metadata of each trial."""
        for track, agents in self.tracks.items():
            for agent in agents:
                folder = trial_folder(self.workspace, self.row, track, agent)
                yield track, agent, folder, read_metadata(folder)


@pytest.fixture(
    scope="module",
    params=[
        "bubblewrap",
        pytest.param("docker", marks=pytest.mark.system),
        pytest.param("docker, all", marks=[pytest.mark.system, pytest.mark.slow]),
    ],
)
def agent_runs(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    tools: None,
    agents_cache: Path,
) -> AgentRuns:
    kind, tracks = RUNS[request.param]
    sandbox = f'engine = "{kind}"\nmax = 4'
    if kind == "docker":
        sandbox += f'\nsocket = "{request.getfixturevalue("docker_engine").socket}"'
        request.getfixturevalue("lean_image")
    bench = make_bench(tmp_path_factory.mktemp("bench"), request.param.replace(", ", "-"))
    config = Config(bench, sandbox)
    config.programs("coder")
    config.model("judge", "judge")
    for track, agents in tracks.items():
        config.track(track, agents)
    workspace = config.make_workspace(tmp_path_factory.mktemp("compared"), agents_cache.parent)
    return AgentRuns(kind, bench, workspace, workspace.run("--json", timeout_s=500), tracks)


def test_every_cli_agent_solves_every_task_with_applicable_patch(
    agent_runs: AgentRuns, tmp_path: Path
) -> None:
    assert agent_runs.result.code == 0, agent_runs.result.err
    assert {job["status"] for job in agent_runs.result.json["jobs"]} == {"done"}
    marks = {"direct": "direct", "plan": "marker-7", "multiplan": "marker-3"}
    for number, (track, agent, folder, metadata) in enumerate(agent_runs.trials()):
        mode = track.partition("/")[2]
        assert (metadata["finish_reason"], metadata["additional"].get("message")) == ("success", DONE), (
            track,
            agent,
        )
        files = apply_prediction(TinyBenchmark(agent_runs.bench, tmp_path), folder, tmp_path / str(number))
        assert files["pack/store.py"].startswith(f"class Store:  # {marks[mode]}\n"), (track, agent)
        assert files["look.sh"] == LOOK, "the second edit"
        assert metadata["additional"]["patch_files"] == 3
        assert metadata["additional"]["sandbox"] == agent_runs.kind
        assert metadata["additional"]["steps"]["execute"]["turns"] == 6


def test_outputs_have_published_layout(agent_runs: AgentRuns) -> None:
    root = agent_runs.workspace.out / "outputs"
    found = {str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()}
    assert found == {
        f"{track}/{agent_runs.row.path}/{agent}/{name}"
        for track, agents in agent_runs.tracks.items()
        for agent in agents
        for name in USUAL | PLANS[track.partition("/")[2]] | LOGS[track.partition("/")[2]]
    }
    for track, agent, folder, metadata in agent_runs.trials():
        config = json.loads((folder / "agent_config.json").read_text())
        version = {"claude-code": "2.0.76", "codex": "0.77.0", "qwen-code": "0.7.1"}[agent]
        assert (config["agent"]["name"], config["agent"]["version"]) == (agent, version)
        assert (metadata["description_type"], metadata["mode"]) == tuple(track.split("/"))
        assert metadata["additional"]["selected_plan"] == (3 if track == "open/multiplan" else None)
        step = f"infer/{agent}/{track}/{agent_runs.row.id}/execute.attempt-1.jsonl"
        events = (agent_runs.workspace.out / "events" / step).read_bytes()
        assert (folder / "inference.out").read_bytes() == events != b""
        for name in PLANS[metadata["mode"]]:
            number = 7 if metadata["mode"] == "plan" else int(name[-4])
            assert (folder / name).read_text().strip() == plan_text(number).strip()


def test_trial_cost_is_metered_and_reported_cost_is_recorded(agent_runs: AgentRuns) -> None:
    for track, agent, folder, metadata in agent_runs.trials():
        billed = ledger_lines(agent_runs.workspace, f"infer/{agent}/{track}/")
        cost = sum(float(line["cost_usd"]) for line in billed)
        assert published_cost(folder) == pytest.approx(cost) != 0
        assert metadata["additional"]["unknown_usd"] == "0"
        assert metadata["additional"]["tokens"]["output"] == sum(line["usage"]["output"] for line in billed)
        executed = [line for line in billed if f"{agent_runs.row.id}/execute" in line["call"]]
        reported_usd = metadata["additional"]["steps"]["execute"].get("reported_cost_usd")
        assert (reported_usd is None) == (agent != "claude-code")
        if reported_usd is not None:
            own = sum(float(line["cost_usd"]) for line in executed)
            assert float(reported_usd) == pytest.approx(own, rel=0.01)
            assert "cost_mismatch" not in str(metadata)


def test_sandbox_contains_no_key_oracle_or_foreign_token(agent_runs: AgentRuns) -> None:
    for track, agent, folder, _ in agent_runs.trials():
        seen = (folder / "prediction.diff").read_text()
        assert "CODETASTE_TOKEN=[redacted]" in seen, "no look at the sandbox"
        assert not re.search(GATEWAY_TOKEN, seen), "a token of another job"
        assert "/task_description/description.md" in seen, "no look at the sandbox"
        assert (SECRET in seen) == (track == "instructed/direct"), (track, agent)
        assert "secret-reasoning" not in seen
        for hidden in (*KEYS.values(), agent_runs.row.golden, "fetch_new", str(agent_runs.bench.folder)):
            assert hidden not in seen, (track, agent, hidden)


def test_transcript_and_events_are_stored_without_keys(agent_runs: AgentRuns) -> None:
    for track, agent, _, metadata in agent_runs.trials():
        for step in metadata["additional"]["steps"]:
            for kind in ("events", "transcripts") if step != "judge" else ("transcripts",):
                folder = agent_runs.workspace.out / kind / f"infer/{agent}/{track}/{agent_runs.row.id}"
                assert [path for path in folder.glob(f"{step}*.jsonl") if path.stat().st_size], (kind, step)
    for path in agent_runs.workspace.out.rglob("*"):
        if path.is_file():
            content = path.read_bytes()
            assert not [key for key in KEYS.values() if key.encode() in content], path
            assert not re.search(GATEWAY_TOKEN.encode(), content), path
