"""A config expands to trials: strategies × models × instances × attempts; bad input is named with its key."""

from __future__ import annotations

import json
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from codetaste.errors import ConfigError
from codetaste.run.config import read_config
from codetaste.run.plan import resolve_and_select
from codetaste.run.resolve import resolve_config
from support.swe_refactor.documents import COMMIT, document

MODELS = """
[run]
name = "r"
[[models]]
id = "a"
provider = "scripted"
model = "m.py:reply"
price = { input = 1.0, output = 1.0 }
[[models]]
id = "b"
provider = "scripted"
model = "m.py:reply"
price = { input = 1.0, output = 1.0 }
[[agents]]
id = "own"
harness = "codetaste"
model = "b"
budget_usd = 2.0
"""
SECTION = '[swe_refactor]\ninstances = "i.json"\nrepositories = ["clone"]\n'
SIMPLE = '[[swe_refactor.strategies]]\nkind = "simple"\n'
AGENT = '[[swe_refactor.strategies]]\nkind = "agent"\n'


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    def make(text: str, instances: Any = None) -> Path:
        (tmp_path / "clone").mkdir(exist_ok=True)
        (tmp_path / "m.py").write_text("def reply(request):\n    return ''\n")
        if instances is None:
            instances = [
                document(uniqueId=f"{COMMIT}_1", type="Move Method"),
                document(uniqueId=f"{COMMIT}_2"),
            ]
        (tmp_path / "i.json").write_text(json.dumps(instances))
        path = tmp_path / "c.toml"
        path.write_text(MODELS + text)
        return path

    return make


def problems(path: Path) -> list[str]:
    with pytest.raises(ConfigError) as error:
        resolve_and_select(path, read_config(path))
    return [each.removeprefix(f"{path}: ") for each in error.value.problems]


def test_trials_are_strategies_by_models_by_instances_by_attempts(write: Callable[..., Path]) -> None:
    path = write(
        SECTION
        + SIMPLE
        + 'attempts = 2\nmodels = ["b"]\nbudget_usd = 0.5\n'
        + SIMPLE
        + 'name = "again"\ntries = 3\nbudget_usd = 0.25\n'
        + AGENT
    )
    config = read_config(path)
    _, flows = resolve_and_select(path, config)
    assert [trial.answer_key for trial in flows.strategy_trials] == [
        f"answer/{name}"
        for instance in (f"{COMMIT}_1", f"{COMMIT}_2")
        for name in (
            f"simple/b/{instance}",
            f"simple/b/{instance}/attempt-2",
            f"again/a/{instance}",
            f"again/b/{instance}",
            f"agent/own/{instance}",
        )
    ]
    assert flows.worst_case_usd(config) == 2 * (2 * Decimal("0.5") + 2 * Decimal("0.25") + 2)
    own = flows.strategy_trials[-1]
    assert (own.system, own.model_id, own.limits.usd) == ("own", "b", Decimal(2))
    assert len({trial.title for trial in flows.strategy_trials}) == len(flows.strategy_trials)


def test_globs_select_jobs(write: Callable[..., Path]) -> None:
    path = write(SECTION + SIMPLE)
    config = read_config(path)
    _, flows = resolve_and_select(path, config, ["answer/simple/a/*"])
    assert flows.selected_keys == {f"answer/simple/a/{COMMIT}_{number}" for number in (1, 2)}
    assert [trial.system for trial in flows.strategy_trials] == ["a", "a"]
    with pytest.raises(ConfigError, match="--only answer/rag/"):
        resolve_and_select(path, config, ["answer/rag/*"])


def types(path: Path) -> set[str]:
    return {trial.instance.type for trial in resolve_config(read_config(path), path.parent).trials}


def test_instances_are_selected_by_id_and_type(write: Callable[..., Path]) -> None:
    assert types(write(SECTION + f'select = ["*_2"]\n{SIMPLE}')) == {"Extract Method"}
    assert types(write(SECTION + f'types = ["Move Method"]\n{SIMPLE}')) == {"Move Method"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (SECTION, "swe_refactor: write build, or strategies with instances and repositories"),
        (f'[swe_refactor]\nrepositories = ["clone"]\n{SIMPLE}', "swe_refactor: strategies need instances"),
        (f'[swe_refactor]\ninstances = "i.json"\n{SIMPLE}', "swe_refactor: strategies need repositories"),
        (SECTION + SIMPLE + SIMPLE, "swe_refactor: two strategies are named 'simple': give one a name"),
        (SECTION + SIMPLE.replace("simple", "rag"), "needs retrieval, with the corpus of examples"),
        (SECTION + SIMPLE + "rounds = 2\n", 'rounds is not for kind = "simple"'),
        (SECTION + AGENT + "budget_usd = 1.0\n", 'budget_usd is not for kind = "agent"'),
        (SECTION + SIMPLE + 'models = ["c"]\n', "strategies[0].models: no [[models]] has the id 'c'"),
        (SECTION + AGENT + 'agents = ["owm"]\n', "strategies[0].agents: no [[agents]] has the id 'owm'"),
        (SECTION + SIMPLE + "[evaluate]\n", "evaluate: [swe_refactor] is for a config of its own"),
        (
            SECTION + SIMPLE + '[swe_refactor.build]\nrepositories = ["clone"]\n',
            "instances is for strategies, and build is for a config of its own",
        ),
        (SECTION.replace("clone", "nowhere") + SIMPLE, "swe_refactor.repositories: nowhere: no such folder"),
        (SECTION.replace("i.json", "j.json") + SIMPLE, "j.json: cannot be read: No such file or directory"),
        (SECTION + f'select = ["x*"]\n{SIMPLE}', "swe_refactor.select: 'x*' matches no instance"),
        (SECTION + f'types = ["Inline Method"]\n{SIMPLE}', "no instance is selected"),
        (SECTION + f"sample = {{ size = 2 }}\n{SIMPLE}", "too few instances for a sample of 2"),
    ],
)
def test_a_mistake_is_named_with_its_key(write: Callable[..., Path], text: str, expected: str) -> None:
    assert any(expected in problem for problem in problems(write(text)))


@pytest.mark.parametrize(
    ("instances", "expected"),
    [
        ({}, "must be a JSON list of instances"),
        ([document(uniqueId="../x")], "uniqueId ../x cannot be the name of a file"),
        ([document(commitId="HEAD")], "commitId is no full commit hash"),
        ([document(diffLocations=[])], "diffLocations is empty"),
        ([document(type=...)], "type: missing"),
    ],
)
def test_junk_instances_are_named(write: Callable[..., Path], instances: Any, expected: str) -> None:
    assert any(expected in problem for problem in problems(write(SECTION + SIMPLE, instances)))
