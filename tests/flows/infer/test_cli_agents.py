"""The three real programs on all tracks and in all modes, end to end, in boxes of both kinds."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from support.flows.cli_agent_models import DONE, LOOK, plan_text
from support.flows.cli_agent_runs import KEYS, PROGRAMS, SECRET, TRACKS, Config, bench_of, bills, folder_of
from support.flows.tiny_benchmark import Bench, Ended, Place, Row, Tiny
from support.flows.trial_runs import applied, metadata

pytestmark = [pytest.mark.heavy, pytest.mark.timeout(600)]

EACH_ONE_MODE = {"open/plan": ("claude-code",), "open/multiplan": ("codex",), "open/direct": ("qwen-code",)}
ALL = {track: tuple(PROGRAMS) for track in TRACKS}
RUNS = {
    "bubblewrap": ("bubblewrap", ALL),
    "docker": ("docker", EACH_ONE_MODE),
    "docker, all": ("docker", ALL),
}
USUAL = {"agent_config.json", "inference_metadata.json", "prediction.diff"}
PLANS = {
    "direct": set[str](),
    "plan": {"refactoring_plan.md"},
    "multiplan": {f"refactoring_plans/refactoring_plan{number}.md" for number in range(5)},
}


@dataclass
class Compared:
    """A run that nothing happened to."""

    kind: str
    bench: Bench
    where: Place
    done: Ended
    tracks: dict[str, tuple[str, ...]]

    @property
    def row(self) -> Row:
        return self.bench.rows[0]

    def trials(self) -> Iterator[tuple[str, str, Path, dict[str, Any]]]:
        """Track, agent, folder and what is told of each."""
        for track, agents in self.tracks.items():
            for agent in agents:
                folder = folder_of(self.where, self.row, track, agent)
                yield track, agent, folder, metadata(folder)


@pytest.fixture(
    scope="module",
    params=[
        "bubblewrap",
        pytest.param("docker", marks=pytest.mark.system),
        pytest.param("docker, all", marks=[pytest.mark.system, pytest.mark.slow]),
    ],
)
def compared(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    tools: None,
    agents_cache: Path,
) -> Compared:
    kind, tracks = RUNS[request.param]
    sandbox = f'engine = "{kind}"\nmax = 4'
    if kind == "docker":
        sandbox += f'\nsocket = "{request.getfixturevalue("docker_engine").socket}"'
        request.getfixturevalue("lean_image")
    bench = bench_of(tmp_path_factory.mktemp("bench"), request.param.replace(", ", "-"))
    config = Config(bench, sandbox)
    config.programs("coder")
    config.model("judge", "judge")
    for track, agents in tracks.items():
        config.track(track, agents)
    where = config.place(tmp_path_factory.mktemp("compared"), agents_cache.parent)
    return Compared(kind, bench, where, where.run("--json", timeout_s=500), tracks)


def test_every_program_does_every_task_and_its_patch_applies_to_r(compared: Compared, tmp_path: Path) -> None:
    assert compared.done.code == 0, compared.done.err
    assert {job["status"] for job in compared.done.json["jobs"]} == {"done"}
    marks = {"direct": "direct", "plan": "marker-7", "multiplan": "marker-3"}
    for number, (track, agent, folder, told) in enumerate(compared.trials()):
        mode = track.partition("/")[2]
        assert (told["finish_reason"], told["additional"].get("message")) == ("success", DONE), (track, agent)
        files = applied(Tiny(compared.bench, tmp_path), folder, tmp_path / str(number))
        assert files["pack/store.py"].startswith(f"class Store:  # {marks[mode]}\n"), (track, agent)
        assert files["look.sh"] == LOOK, "its second edit"
        assert told["additional"]["patch_files"] == 3
        assert told["additional"]["sandbox"] == compared.kind
        assert told["additional"]["steps"]["execute"]["turns"] == 6


def test_the_outputs_have_the_published_layout(compared: Compared) -> None:
    root = compared.where.out / "outputs"
    found = {str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()}
    assert found == {
        f"{track}/{compared.row.path}/{agent}/{name}"
        for track, agents in compared.tracks.items()
        for agent in agents
        for name in USUAL | PLANS[track.partition("/")[2]]
    }
    for track, agent, folder, told in compared.trials():
        config = json.loads((folder / "agent_config.json").read_text())
        version = {"claude-code": "2.0.76", "codex": "0.77.0", "qwen-code": "0.7.1"}[agent]
        assert (config["agent"]["name"], config["agent"]["version"]) == (agent, version)
        assert (told["description_type"], told["mode"]) == tuple(track.split("/"))
        assert told["additional"]["selected_plan"] == (3 if track == "open/multiplan" else None)
        for name in PLANS[told["mode"]]:
            number = 7 if told["mode"] == "plan" else int(name[-4])
            assert (folder / name).read_text().strip() == plan_text(number).strip()


def test_trial_cost_is_metered_and_reported_cost_is_recorded(compared: Compared) -> None:
    for track, agent, _, told in compared.trials():
        billed = bills(compared.where, f"infer/{agent}/{track}/")
        cost = sum(float(line["cost_usd"]) for line in billed)
        assert told["cost_usd"] == pytest.approx(cost) != 0
        assert told["additional"]["unknown_usd"] == "0"
        assert told["additional"]["tokens"]["output"] == sum(line["usage"]["output"] for line in billed)
        executed = [line for line in billed if f"{compared.row.id}/execute" in line["call"]]
        told_usd = told["additional"]["steps"]["execute"].get("reported_cost_usd")
        assert (told_usd is None) == (agent != "claude-code")
        if told_usd is not None:
            own = sum(float(line["cost_usd"]) for line in executed)
            assert float(told_usd) == pytest.approx(own, rel=0.01)
            assert "cost_mismatch" not in str(told)


def test_sandbox_contains_no_key_oracle_or_foreign_token(compared: Compared) -> None:
    tokens: dict[tuple[str, str], set[str]] = {}
    for track, agent, folder, _ in compared.trials():
        seen = (folder / "prediction.diff").read_text()
        tokens[track, agent] = set(re.findall(r"ct-[\w-]{30,}", seen))
        assert "CODETASTE_TOKEN=ct-" in seen, "it looked"
        assert "/task_description/description.md" in seen, "it looked"
        assert (SECRET in seen) == (track == "instructed/direct"), (track, agent)
        assert "secret-reasoning" not in seen
        for hidden in (*KEYS.values(), compared.row.golden, "fetch_new", str(compared.bench.folder)):
            assert hidden not in seen, (track, agent, hidden)
    assert {len(found) for found in tokens.values()} == {1}
    assert len(set().union(*tokens.values())) == len(tokens)


def test_transcript_and_events_are_stored_without_keys(compared: Compared) -> None:
    for track, agent, _, told in compared.trials():
        for step in told["additional"]["steps"]:
            for kind in ("events", "transcripts") if step != "judge" else ("transcripts",):
                folder = compared.where.out / kind / f"infer/{agent}/{track}/{compared.row.id}"
                assert [path for path in folder.glob(f"{step}*.jsonl") if path.stat().st_size], (kind, step)
    for path in compared.where.out.rglob("*"):
        if path.is_file():
            content = path.read_bytes()
            assert not [key for key in KEYS.values() if key.encode() in content], path
