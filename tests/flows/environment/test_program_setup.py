"""The real CLI agents as setup agents, in containers with sudo, with scripted models at the gateway."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path

import pytest

from support.environment.tested_benchmark import MODELS, make_tested_benchmark, make_tested_workspace
from support.flows.cli_agent_runs import KEYS, PROGRAMS
from support.flows.tiny_benchmark import PRICE
from support.flows.trial_runs import agent_table
from support.system.dockerd import DockerEngine


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "program",
    ["claude-code", *(pytest.param(name, marks=pytest.mark.slow) for name in ("codex", "qwen-code"))],
)
def test_program_makes_an_environment(
    program: str, tmp_path: Path, docker_engine: DockerEngine, lean_image: str, agents_cache: Path
) -> None:
    bench, _ = make_tested_benchmark(tmp_path / "made", scripts=False)
    model = PROGRAMS[program]
    tables = [
        f'[[models]]\nid = "{model}"\nprovider = "scripted"\nprice = {PRICE}',
        f'model = "{MODELS}:program_builder"',
        agent_table("a", model, 'budget_usd = 2.0\ntime_limit = "10m"', program),
        f'[environment]\nagent = "a"\nimage = "{lean_image}"\nregistries = false\nrounds = 1',
    ]
    sandbox = f'engine = "docker"\nsocket = "{docker_engine.socket}"\nmax = 4'
    made = make_tested_workspace(tmp_path / "work", bench, agents_cache.parent, sandbox, "\n".join(tables))
    made.env.update(KEYS)
    done = made.run("--json", timeout_s=500)
    assert done.code == 0, done.err
    folder = next((made.out / "environment" / "instance_images").glob("*/*/*"))
    details = json.loads((folder / "environment.json").read_text())
    assert (details["level"], details["built_by"], details["attempts"]) == ("offline", "a", 1)
    assert Decimal(details["cost_usd"]) == sum(Decimal(line["cost_usd"]) for line in made.ledger(model)) > 0
