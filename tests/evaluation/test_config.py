"""The section [evaluate] of a config: defaults, and faults by key."""

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
model = "m.py:reply"
price = { input = 1.0, output = 1.0 }
"""
AGENT = '[[agents]]\nid = "{}"\nharness = "codetaste"\nmodel = "m"\n[[tracks]]\ntrack = "open"\n'


def read(folder: Path, text: str) -> list[str]:
    """Return the problems of a config."""
    path = folder / "config.toml"
    path.write_text(BASE + text)
    try:
        read_config(path)
    except ConfigError as error:
        return [problem.removeprefix(f"{path}: ") for problem in error.problems]
    return []


def test_empty_evaluate_section_has_defaults(tmp_path: Path) -> None:
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
    ("text", "expected"),
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
def test_evaluate_config_fault_names_key(tmp_path: Path, text: str, expected: str) -> None:
    [problem] = read(tmp_path, f"[evaluate]\n{text}\n")
    assert problem.startswith(expected)


def test_rules_discovered_by_same_run_are_accepted(tmp_path: Path) -> None:
    assert read(tmp_path, '[discover]\nmodels = ["m"]\n[evaluate]\nrules = "discover/m"\n') == []
    [problem] = read(tmp_path, '[discover]\nmodels = ["m"]\n[evaluate]\nrules = "discover/mm"\n')
    assert "did you mean 'm'?" in problem


@pytest.mark.parametrize("agent", ["golden_agent", "null_agent"])
def test_agent_id_of_pseudo_agent_is_refused_with_evaluate(tmp_path: Path, agent: str) -> None:
    assert read(tmp_path, AGENT.format(agent)) == []
    [problem] = read(tmp_path, f"{AGENT.format(agent)}[evaluate]\n")
    assert problem.startswith(f"agents[{agent}].id: [evaluate] adds a pseudo agent of this id")


def test_config_pseudo_agents_accepts_its_old_name() -> None:
    assert not EvaluateConfig.model_validate({"references": False}).pseudo_agents


def test_more_memory_cannot_be_guaranteed_than_a_test_run_may_use(tmp_path: Path) -> None:
    (problem,) = read(tmp_path, '[evaluate]\ntest_memory = "1GiB"\ntest_memory_reserved = "2GiB"\n')
    assert "test_memory_reserved is 2.0 GiB, but a test run is killed at 1.0 GiB" in problem
    assert read(tmp_path, '[evaluate]\ntest_memory = "512MiB"\n') == []
    assert EvaluateConfig(test_memory=2**29).guaranteed_memory == 2**29
