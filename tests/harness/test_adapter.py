"""Agent folders: valid ones are read, and every fault in an invalid one is reported."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import pytest

from codetaste.benchmark.layout import FinishReason
from codetaste.core.paths import resource_dir
from codetaste.errors import ConfigError
from codetaste.harness.adapter import adapter_names, load_adapter, read_adapter
from codetaste.harness.output import OutputParser
from codetaste.harness.result import result_of_exit
from codetaste.sandbox.base import CommandResult
from support.harness.adapters import PLAIN_MANIFEST, make_adapter, make_published_adapter


def config_problems(action: Callable[[], object]) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        action()
    assert all("\n" not in problem for problem in caught.value.problems)
    return list(caught.value.problems)


def test_included_agents_are_read() -> None:
    adapters = {name: load_adapter(name, Path("/nowhere")) for name in adapter_names()}
    assert {name: (each.protocol, each.choose_version()) for name, each in adapters.items()} == {
        "claude-code": ("anthropic", "2.0.76"),
        "codex": ("openai", "0.77.0"),
        "qwen-code": ("openai-chat", "0.7.1"),
    }
    assert adapters["codex"].resolve_options({}) == {"reasoning_effort": "medium"}
    assert adapters["codex"].resolve_options({"reasoning_effort": "high"}) == {"reasoning_effort": "high"}


def test_adapter_is_found_by_name_or_folder(tmp_path: Path) -> None:
    make_adapter(tmp_path / "agents" / "mine")
    assert load_adapter("agents/mine", tmp_path).name == "mine"
    assert load_adapter(str(tmp_path / "agents/mine"), Path("/")).folder == tmp_path / "agents" / "mine"
    assert "nor a folder" in config_problems(lambda: load_adapter("long" * 2000, tmp_path))[0]
    (problem,) = config_problems(lambda: load_adapter("claude", tmp_path))
    assert "did you mean 'claude-code'?" in problem


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
    problems = config_problems(lambda: read_adapter(folder))
    assert all(each.startswith(f"{folder}/agent.toml: ") for each in problems)
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
    assert [key for key in keys if not any(each.split(": ")[1].startswith(key) for each in problems)] == []
    assert any("numbers.costs: unknown key (did you mean 'cost_usd'?)" in each for each in problems)


@pytest.mark.parametrize(
    ("toml", "expected"),
    [
        ("protocol = \n", "not valid TOML"),
        ('protocol = "none"\nversions = []\ndefault = "1"\n', "versions"),
        ('protocol = "none"\nversions = ["1"]\ndefault = "2"\n', "default: '2' is not one of versions"),
        (PLAIN_MANIFEST + 'run = "../run.sh"\n', "the name of a file beside agent.toml"),
        (PLAIN_MANIFEST + 'run = "start.sh"\n', "run: there is no file start.sh beside it"),
        (
            PLAIN_MANIFEST + 'env = { CODETASTE_TOKEN = "x" }\n',
            "'CODETASTE_TOKEN' is not a variable that can be set here",
        ),
    ],
)
def test_invalid_manifest_is_refused_with_one_line(toml: str, expected: str, tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "run.sh").write_text("#!/bin/sh\n")
    (folder / "install.sh").write_text("#!/bin/sh\n")
    (folder / "agent.toml").write_text(toml)
    (problem,) = config_problems(lambda: read_adapter(folder))
    assert expected in problem


def test_folder_that_is_not_an_agent_is_refused(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert (
        "neither agent.toml nor agent_config.json"
        in config_problems(lambda: read_adapter(tmp_path / "empty"))[0]
    )
    make_adapter(tmp_path / "linked")
    (tmp_path / "linked" / "more").symlink_to("/etc/passwd")
    assert "only regular files" in config_problems(lambda: read_adapter(tmp_path / "linked"))[0]
    make_adapter(tmp_path / "big")
    with (tmp_path / "big" / "more").open("wb") as file:
        file.truncate(2**40)  # larger than the memory
    assert "so it is not an agent's folder" in config_problems(lambda: read_adapter(tmp_path / "big"))[0]


def test_unknown_options_and_wrong_types_are_all_reported() -> None:
    adapter = load_adapter("codex", Path())
    problems = config_problems(lambda: adapter.resolve_options({"reasoning": "high", "reasoning_effort": 3}))
    assert problems == [
        "options.reasoning: unknown option (did you mean 'reasoning_effort'?)",
        "options.reasoning_effort: 3 does not have the type of 'medium'",
    ]
    assert (
        "is not one of" in config_problems(lambda: adapter.resolve_options({"reasoning_effort": "huge"}))[0]
    )


def test_untested_release_is_accepted_if_well_formed() -> None:
    adapter = load_adapter("codex", Path())
    assert adapter.choose_version("0.78.0") == "0.78.0"
    assert "has no such release" in config_problems(lambda: adapter.choose_version("../../etc"))[0]


def test_change_of_a_file_changes_digest(tmp_path: Path) -> None:
    shutil.copytree(resource_dir("agents") / "codex", tmp_path / "codex")
    digest = read_adapter(tmp_path / "codex").digest
    assert digest == load_adapter("codex", Path()).digest
    (tmp_path / "codex" / "more").write_text("")
    assert read_adapter(tmp_path / "codex").digest != digest


def test_published_agent_folder_is_read_as_adapter(tmp_path: Path) -> None:
    adapter = make_published_adapter(tmp_path / "gpt51_mini", "true", provider="openai")
    assert (adapter.name, adapter.protocol, adapter.choose_version(), adapter.published) == (
        "gpt51-mini",
        "openai",
        "v1.0",
        True,
    )


@pytest.mark.parametrize(
    ("reported", "expected"),
    [
        *((reason, reason) for reason in FinishReason),
        ("error_max_budget_usd", "budget_exceeded"),
        ("something else", "error"),
    ],
)
def test_published_finish_reasons_are_all_read(tmp_path: Path, reported: str, expected: str) -> None:
    manifest = make_published_adapter(tmp_path / "theirs", "true").manifest
    parser = OutputParser(manifest)
    line = {"codetaste": "metadata", "finish_reason": reported, "cost_usd": 0.25}
    parser.feed(json.dumps(line).encode() + b"\n")
    ended = CommandResult(0, b"", b"", truncated=False, timed_out=False, wall_s=1.0)
    reason, _ = result_of_exit(ended, parser.result(), manifest)
    assert (reason, parser.result().cost_usd) == (expected, Decimal("0.25"))


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ("{", ["cannot be read as JSON"]),
        ("[]", ["not an object"]),
        ('{"id": "x", "agent": {"name": "a"}}', ["agent.provider: missing", "model: missing"]),
    ],
)
def test_invalid_published_config_is_refused(config: str, expected: list[str], tmp_path: Path) -> None:
    make_published_adapter(tmp_path / "theirs", "true")
    (tmp_path / "theirs" / "agent_config.json").write_text(config)
    problems = config_problems(lambda: read_adapter(tmp_path / "theirs"))
    assert [part for part in expected if not any(part in each for each in problems)] == []


def test_old_key_names_are_accepted(tmp_path: Path) -> None:
    original = resource_dir("agents") / "qwen-code"
    renamed = tmp_path / "qwen-code"
    shutil.copytree(original, renamed)
    text = (renamed / "agent.toml").read_text()
    for name, old_name in {
        "[[end_events]]": "[[ends]]",
        "failure_prefixes =": "failures =",
        "requires_message =": "words =",
        "[numbers]": "[figures]",
        "input_includes_cached =": "input_has_cached =",
    }.items():
        assert name in text
        text = text.replace(name, old_name)
    (renamed / "agent.toml").write_text(text)
    assert read_adapter(renamed).manifest == read_adapter(original).manifest
