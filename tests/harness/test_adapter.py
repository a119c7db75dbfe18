"""Folders that describe agents: what is right in them, and what is told of everything wrong."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from codetaste.core.paths import resource_dir
from codetaste.errors import ConfigError
from codetaste.harness.adapter import adapter_names, load_adapter, read_adapter
from support.harness.adapters import PLAIN, made_agent, published_agent


def problems(act: Callable[[], object]) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        act()
    assert all("\n" not in problem for problem in caught.value.problems)
    return list(caught.value.problems)


def test_the_agents_that_come_with_codetaste_are_read() -> None:
    told = {name: load_adapter(name, Path("/nowhere")) for name in adapter_names()}
    assert {name: (each.protocol, each.choose_version()) for name, each in told.items()} == {
        "claude-code": ("anthropic", "2.0.76"),
        "codex": ("openai", "0.77.0"),
        "qwen-code": ("openai-chat", "0.7.1"),
    }
    assert told["codex"].resolve_options({}) == {"reasoning_effort": "medium"}
    assert told["codex"].resolve_options({"reasoning_effort": "high"}) == {"reasoning_effort": "high"}


def test_a_harness_is_a_name_or_a_folder_beside_the_config(tmp_path: Path) -> None:
    made_agent(tmp_path / "agents" / "mine")
    assert load_adapter("agents/mine", tmp_path).name == "mine"
    assert load_adapter(str(tmp_path / "agents/mine"), Path("/")).folder == tmp_path / "agents" / "mine"
    assert "nor a folder" in problems(lambda: load_adapter("long" * 2000, tmp_path))[0]
    (told,) = problems(lambda: load_adapter("claude", tmp_path))
    assert "did you mean 'claude-code'?" in told


def test_manifest_faults_are_all_reported_with_file_and_key(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "agent.toml").write_text(
        """
        protocol = "grpc"
        versions = ["1", "../2"]
        default = "1"
        colour = "red"
        [env]
        "NOT A NAME" = "x"
        [options.Big]
        default = 1
        [options.size]
        default = "s"
        choices = ["m", "l"]
        [[end_events]]
        when = { "a..b" = 1 }
        outcome = "fine"
        [numbers]
        costs = "usd"
        [exit_codes]
        900 = "no"
        """
    )
    told = problems(lambda: read_adapter(folder))
    assert all(each.startswith(f"{folder}/agent.toml: ") for each in told)
    keys = (
        "protocol",
        "versions",
        "colour",
        "env",
        "options",
        "end_events[0].when",
        "numbers.costs",
        "exit_codes",
    )
    assert [key for key in keys if not any(each.split(": ")[1].startswith(key) for each in told)] == []
    assert any("numbers.costs: unknown key (did you mean 'cost_usd'?)" in each for each in told)


@pytest.mark.parametrize(
    ("toml", "said"),
    [
        ("protocol = \n", "not valid TOML"),
        ('protocol = "none"\nversions = []\ndefault = "1"\n', "versions"),
        ('protocol = "none"\nversions = ["1"]\ndefault = "2"\n', "default: '2' is not one of versions"),
        (PLAIN + 'run = "../run.sh"\n', "the name of a file beside agent.toml"),
        (PLAIN + 'run = "start.sh"\n', "run: there is no file start.sh beside it"),
        (
            PLAIN + 'env = { CODETASTE_TOKEN = "x" }\n',
            "'CODETASTE_TOKEN' is not a variable that can be set here",
        ),
    ],
)
def test_a_manifest_that_is_wrong_is_refused_in_one_line(toml: str, said: str, tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "run.sh").write_text("#!/bin/sh\n")
    (folder / "install.sh").write_text("#!/bin/sh\n")
    (folder / "agent.toml").write_text(toml)
    (told,) = problems(lambda: read_adapter(folder))
    assert said in told


def test_folders_that_are_no_agents_are_refused(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert "neither agent.toml nor agent_config.json" in problems(lambda: read_adapter(tmp_path / "empty"))[0]
    made_agent(tmp_path / "linked")
    (tmp_path / "linked" / "more").symlink_to("/etc/passwd")
    assert "only regular files" in problems(lambda: read_adapter(tmp_path / "linked"))[0]
    made_agent(tmp_path / "big")
    with (tmp_path / "big" / "more").open("wb") as file:
        file.truncate(2**40)  # more than there is memory
    assert "so it is not an agent's folder" in problems(lambda: read_adapter(tmp_path / "big"))[0]


def test_unknown_options_and_wrong_types_are_all_reported() -> None:
    adapter = load_adapter("codex", Path())
    told = problems(lambda: adapter.resolve_options({"reasoning": "high", "reasoning_effort": 3}))
    assert told == [
        "options.reasoning: unknown option (did you mean 'reasoning_effort'?)",
        "options.reasoning_effort: 3 does not have the type of 'medium'",
    ]
    assert "is not one of" in problems(lambda: adapter.resolve_options({"reasoning_effort": "huge"}))[0]


def test_untested_release_is_accepted_if_well_formed() -> None:
    adapter = load_adapter("codex", Path())
    assert adapter.choose_version("0.78.0") == "0.78.0"
    assert "has no such release" in problems(lambda: adapter.choose_version("../../etc"))[0]


def test_any_change_of_a_file_makes_another_digest(tmp_path: Path) -> None:
    shutil.copytree(resource_dir("agents") / "codex", tmp_path / "codex")
    same = read_adapter(tmp_path / "codex").digest
    assert same == load_adapter("codex", Path()).digest
    (tmp_path / "codex" / "more").write_text("")
    assert read_adapter(tmp_path / "codex").digest != same


def test_a_folder_of_the_published_shape_is_an_adapter(tmp_path: Path) -> None:
    adapter = published_agent(tmp_path / "gpt51_mini", "true", provider="openai")
    assert (adapter.name, adapter.protocol, adapter.choose_version(), adapter.published) == (
        "gpt51-mini",
        "openai",
        "v1.0",
        True,
    )


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ("{", ["cannot be read as JSON"]),
        ("[]", ["not an object"]),
        ('{"id": "x", "agent": {"name": "a"}}', ["agent.provider: missing", "model: missing"]),
    ],
)
def test_a_published_config_that_is_wrong_is_refused(config: str, said: list[str], tmp_path: Path) -> None:
    published_agent(tmp_path / "theirs", "true")
    (tmp_path / "theirs" / "agent_config.json").write_text(config)
    told = problems(lambda: read_adapter(tmp_path / "theirs"))
    assert [part for part in said if not any(part in each for each in told)] == []


def test_the_old_names_of_keys_are_accepted(tmp_path: Path) -> None:
    new = resource_dir("agents") / "qwen-code"
    old = tmp_path / "qwen-code"
    shutil.copytree(new, old)
    text = (old / "agent.toml").read_text()
    for name, before in {
        "[[end_events]]": "[[ends]]",
        "failure_prefixes =": "failures =",
        "requires_message =": "words =",
        "[numbers]": "[figures]",
        "input_includes_cached =": "input_has_cached =",
    }.items():
        assert name in text
        text = text.replace(name, before)
    (old / "agent.toml").write_text(text)
    assert read_adapter(old).manifest == read_adapter(new).manifest
