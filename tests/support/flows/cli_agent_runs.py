"""Configs and outputs of the three real CLI agents on a tiny benchmark, with scripted models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from support.flows import tiny_benchmark
from support.flows.tiny_benchmark import Bench, Row, Workspace
from support.flows.trial_runs import agent_table, track_table

MODELS = Path(__file__).parent / "cli_agent_models.py"
PROGRAMS = {"claude-code": "claude-sonnet-4-5", "codex": "gpt-5.1-codex", "qwen-code": "qwen3-coder-plus"}
"""The CLI agents at their pinned releases, each with a model for which it has its own tools."""
TRACKS = ("instructed/direct", "open/direct", "open/plan", "open/multiplan")
SECRET, AREA = "secret-description", "the-area-alone"
KEYS = {"ANTHROPIC_API_KEY": "sk-secret-one", "OPENAI_API_KEY": "sk-secret-two"}
EXPENSIVE_PRICE = "{ input = 1.0, output = 30.0 }"
"""The price of a model whose long replies cost a third of a small budget each."""


def make_bench(folder: Path, repo: str) -> Bench:
    """Create a benchmark of one instance; only its instructed description has ``SECRET``."""
    bench = Bench(folder)
    row = bench.add(repo)
    descriptions = bench.root / "assets/descriptions" / row.path
    (descriptions / "description.md").write_text(f"Make Store modern. {SECRET}\n")
    (descriptions / "open_description.md").write_text(f"Improve the store. {AREA}\n")
    return bench


@dataclass
class Config:
    """The tables of a config.toml; the models of ``PROGRAMS`` are scripted."""

    bench: Bench
    sandbox: str = 'engine = "bubblewrap"\nmax = 6'
    run: str = "budget_usd = 50.0"
    tables: list[str] = field(default_factory=list)

    def model(self, name: str, script: str, price: str = tiny_benchmark.PRICE) -> None:
        lines = (
            f'id = "{name}"',
            'provider = "scripted"',
            f'model = "{MODELS}:{script}"',
            f"price = {price}",
        )
        self.tables.append("[[models]]\n" + "\n".join(lines) + "\n")

    def programs(
        self, script: str, more: str = "", suffix: str = "", price: str = tiny_benchmark.PRICE
    ) -> None:
        """Add an agent for each CLI agent, and its model; ``suffix`` makes the ids unique."""
        for program in PROGRAMS:
            self.program(program, script, more, suffix, price)

    def program(
        self, program: str, script: str, more: str = "", suffix: str = "", price: str = tiny_benchmark.PRICE
    ) -> None:
        """Add one agent and its model."""
        model = PROGRAMS[program] + suffix
        self.model(model, script, price)
        self.tables.append(agent_table(program + suffix, model, more, program))

    def track(self, name: str, agents: Sequence[str] = (), more: str = "") -> None:
        listed = ", ".join(f'"{agent}"' for agent in agents)
        chosen = f"agents = [{listed}]\n" if agents else ""
        self.tables.append(track_table(name, chosen + more))

    def make_workspace(self, folder: Path, cache: Path) -> Workspace:
        """Write the config; ``cache`` has the installed CLI agents."""
        head = [
            f'[run]\nname = "r"\n{self.run}',
            f'[benchmark]\npath = "{self.bench.root}"\nrepos = "{self.bench.repos}"',
            f"[sandbox]\n{self.sandbox}\n",
        ]
        folder.mkdir(parents=True, exist_ok=True)
        config = folder / "config.toml"
        config.write_text("\n".join([*head, *self.tables]))
        return Workspace(folder, cache, config, env=dict(KEYS))


def trial_folder(workspace: Workspace, row: Row, track: str, agent: str) -> Path:
    return workspace.out / "outputs" / track / row.path / agent


def ledger_lines(workspace: Workspace, prefix: str) -> list[dict[str, Any]]:
    """The lines of all models' ledgers for the jobs with this key prefix."""
    names = [
        path.name.removesuffix(".ledger.jsonl") for path in (workspace.out / "models").glob("*.ledger.jsonl")
    ]
    return [line for name in names for line in workspace.ledger(name) if line["call"].startswith(prefix)]
