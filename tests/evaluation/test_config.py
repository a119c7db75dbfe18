"""What [evaluate] may say, and what it may not."""

from __future__ import annotations

from pathlib import Path

import pytest

from codetaste.errors import ConfigError
from codetaste.evaluation.config import EvaluateConfig
from codetaste.run.config import read_config

BASE = """
[run]
name = "r"
[benchmark]
path = "quickstart"
[[models]]
id = "m"
provider = "scripted"
model = "m.py:play"
price = { input = 1.0, output = 1.0 }
"""
AGENT = '[[agents]]\nid = "{}"\nharness = "codetaste"\nmodel = "m"\n[[tracks]]\ntrack = "open"\n'


def read(folder: Path, text: str) -> list[str]:
    """Return what is wrong with a config."""
    path = folder / "config.toml"
    path.write_text(BASE + text)
    try:
        read_config(path)
    except ConfigError as error:
        return [problem.removeprefix(f"{path}: ") for problem in error.problems]
    return []


def test_an_empty_section_is_enough(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text(f"{BASE}[evaluate]\n")
    found = read_config(path).evaluate
    assert found is not None
    assert (found.rules, found.pseudo_agents, found.tests, found.baseline_runs) == (
        "benchmark",
        True,
        False,
        5,
    )
    assert found.discovery_model is None


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("pseudo_agent = true", "evaluate.pseudo_agent: unknown key (did you mean 'pseudo_agents'?)"),
        ('exclusions = "some"', "evaluate.exclusions: Input should be 'published' or 'none' (it is 'some')"),
        ("baseline_runs = 0", "evaluate.baseline_runs: "),
        ('rules = "mine"', "evaluate.rules: "),
        (
            'rules = "discover/m"',
            "evaluate.rules: [discover] has no model 'm'; write \"benchmark\"",
        ),
    ],
)
def test_evaluate_config_fault_names_key(tmp_path: Path, text: str, problem: str) -> None:
    [said] = read(tmp_path, f"[evaluate]\n{text}\n")
    assert said.startswith(problem)


def test_rules_that_the_same_run_finds_are_taken(tmp_path: Path) -> None:
    assert read(tmp_path, '[discover]\nmodels = ["m"]\n[evaluate]\nrules = "discover/m"\n') == []
    [said] = read(tmp_path, '[discover]\nmodels = ["m"]\n[evaluate]\nrules = "discover/mm"\n')
    assert "did you mean 'm'?" in said


@pytest.mark.parametrize("agent", ["golden_agent", "null_agent"])
def test_the_ids_of_pseudo_agents_are_taken_where_there_are_scores(tmp_path: Path, agent: str) -> None:
    assert read(tmp_path, AGENT.format(agent)) == []
    [said] = read(tmp_path, f"{AGENT.format(agent)}[evaluate]\n")
    assert said.startswith(f"agents[{agent}].id: [evaluate] adds a pseudo agent of this id")


def test_config_pseudo_agents_accepts_its_old_name() -> None:
    assert not EvaluateConfig.model_validate({"references": False}).pseudo_agents
