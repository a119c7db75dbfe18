"""A run with trials, made by hand, and configs of the agents that study them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from support.case_study.study_models import BOAST, FIRST_LINE
from support.flows.tiny_benchmark import PRICE, Bench, CommandResult, Workspace, read_journal

MODELS = Path(__file__).parent / "study_models.py"
PATCH = (
    f"{FIRST_LINE}\n--- a/pack/store.py\n+++ b/pack/store.py\n"
    "@@ -1 +1 @@\n-class Store(object):\n+class Store:\n"
)


@dataclass(frozen=True)
class StudiedRun:
    """A run's folder with trials of one instance, and a place for commands."""

    bench: Bench
    workspace: Workspace

    @property
    def out(self) -> Path:
        return self.workspace.out

    @property
    def studies(self) -> Path:
        return self.out / "case_studies"

    def trial(self, agent: str, track: str = "open/direct") -> Path:
        return self.out / "outputs" / track / self.bench.rows[0].path / agent

    def transcript(self, agent: str, track: str = "open/direct") -> Path:
        folder = self.out / "transcripts/infer" / agent / track / self.bench.rows[0].id
        return folder / "execute.jsonl"

    def add_trial(self, agent: str, track: str = "open/direct", patch: str = PATCH) -> Path:
        folder = self.trial(agent, track)
        (folder / "evaluation").mkdir(parents=True)
        (folder / "prediction.diff").write_text(patch)
        metadata = {"finish_reason": "success", "cost_usd": 0.1}
        (folder / "inference_metadata.json").write_text(json.dumps(metadata))
        (folder / "evaluation/scores.json").write_text(json.dumps({"status": "scored", "ifr": 0.5}))
        self.write_transcript(agent, track)
        return folder

    def write_transcript(self, agent: str, track: str = "open/direct") -> None:
        call = {"type": "call", "id": "c1", "name": "bash", "arguments": {"command": "sed -i s/a/b/ x"}}
        lines: list[dict[str, Any]] = [
            {"model": "m", "system": "s", "tools": ["bash"]},
            {"role": "user", "content": [{"type": "text", "text": "Improve the store."}]},
            {"role": "assistant", "content": [{"type": "text", "text": "I edit."}, call]},
            {"role": "user", "content": [{"type": "result", "call": "c1", "content": "[no output]"}]},
            {"role": "assistant", "content": [{"type": "text", "text": BOAST}]},
        ]
        path = self.transcript(agent, track)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))

    def write_config(self, script: str, agent: str = "", harness: str = "codetaste", name: str = "m") -> None:
        """Write the config of the agent "examiner"."""
        self.workspace.config.write_text(
            f'[sandbox]\nengine = "bubblewrap"\nmax = 4\n'
            f'[[models]]\nid = "{name}"\nprovider = "scripted"\n'
            f'model = "{MODELS}:{script}"\nprice = {PRICE}\n'
            f'[[agents]]\nid = "examiner"\nharness = "{harness}"\nmodel = "{name}"\n'
            f"budget_usd = 1.0\n{agent}\n"
        )

    def arguments(self, *more: str) -> list[str]:
        return ["case-study", str(self.out), "--config", str(self.workspace.config), *more]

    def study(self, *more: str) -> CommandResult:
        return self.workspace.cli(*self.arguments(*more, "--json"))

    def report(self, track: str = "open/direct") -> dict[str, Any]:
        path = self.studies / "reports" / self.bench.rows[0].path / track / "examiner.json"
        document: dict[str, Any] = json.loads(path.read_text())
        return document

    def journal(self) -> list[dict[str, Any]]:
        return read_journal(self.studies)

    def ledger(self, name: str = "m") -> list[dict[str, Any]]:
        path = self.studies / "models" / f"{name}.ledger.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def make_studied_run(folder: Path, bench: Bench, cache: Path) -> StudiedRun:
    """Make a run with the trials of two agents, as ``codetaste run`` leaves them."""
    workspace = Workspace(folder, cache, folder / "config.toml")
    made = StudiedRun(bench, workspace)
    workspace.out.mkdir(parents=True)
    benchmark = {"path": str(bench.root), "repos": str(bench.repos)}
    (workspace.out / "config.json").write_text(json.dumps({"benchmark": benchmark}))
    for agent in ("swift", "slow"):
        made.add_trial(agent)
    made.write_config("honest")
    return made
