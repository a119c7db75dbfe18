"""``codetaste init`` and ``codetaste config``: configs written, checked, and described by a schema."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import tomli

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"


def codetaste(*args: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "codetaste", *args]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def validator(tmp_path_factory: pytest.TempPathFactory) -> Any:
    done = codetaste("config", "schema", cwd=tmp_path_factory.mktemp("schema"))
    schema = json.loads(done.stdout)
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.toml")), ids=lambda path: path.name)
def test_schema_accepts_every_example(path: Path, validator: Any) -> None:
    assert [error.message for error in validator.iter_errors(tomli.loads(path.read_text("utf-8")))] == []


def test_schema_refuses_unknown_keys_and_describes_the_known_ones(validator: Any) -> None:
    config = {"run": {"name": "x", "budget": 1}, "benchmark": {"path": "quickstart"}}
    [error] = validator.iter_errors(config)
    assert "'budget' was unexpected" in error.message
    run = validator.schema["$defs"]["RunConfig"]["properties"]
    assert run["time_limit"]["description"] == "Wall time of the whole run."


def test_written_config_is_valid_and_is_not_replaced(tmp_path: Path) -> None:
    assert codetaste("init", cwd=tmp_path).stdout == "codetaste.toml\n"
    done = codetaste("config", "check", "codetaste.toml", "--set", "benchmark.path=quickstart", cwd=tmp_path)
    assert done.stdout == "codetaste.toml: no mistakes; 1 instance, 1 model, 3 tools\n", done.stderr
    again = codetaste("init", cwd=tmp_path)
    assert again.returncode == 2
    assert again.stderr == "codetaste: codetaste.toml: exists already; remove it, or name another folder\n"


def test_commented_lines_of_the_config_are_valid_too(tmp_path: Path) -> None:
    text = (EXAMPLES / "template.toml").read_text("utf-8")
    lines = text.splitlines()
    body = lines[lines.index("[run]") :]
    uncommented = [line.removeprefix("# ") for line in body]
    tools = [line for line in uncommented if not line.startswith(("tools", "instances"))]
    (tmp_path / "all.toml").write_text("\n".join(tools), "utf-8")
    done = codetaste("config", "check", "all.toml", "--set", "benchmark.path=quickstart", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "1 agent" in done.stdout


def test_example_is_copied_with_the_files_that_it_names(tmp_path: Path) -> None:
    done = codetaste("init", "mine", "--example", "compare", "--json", cwd=tmp_path)
    assert json.loads(done.stdout)["written"] == ["mine/compare.toml", "mine/compare_models.py"]
    assert codetaste("run", "mine/compare.toml", "--dry-run", cwd=tmp_path).returncode == 0
    assert tomli.loads((tmp_path / "mine/compare.toml").read_text("utf-8"))["run"]["out"] == "runs"
    unknown = codetaste("init", "--example", "compar", cwd=tmp_path)
    assert unknown.returncode == 2
    tomls = [path.stem for path in EXAMPLES.glob("*.toml") if path.name != "template.toml"]
    names = sorted(name for name in tomls if "_" not in name)  # others belong to an example
    assert f"--example: there is no 'compar', only {', '.join(names)}" in unknown.stderr
    assert codetaste("init", "mine/compare.toml", cwd=tmp_path).stderr.endswith("is not a folder\n")
    assert all(name in codetaste("init", "--help", cwd=tmp_path).stdout for name in names)


def test_example_has_its_further_config_beside_it(tmp_path: Path) -> None:
    assert codetaste("init", "--example", "swe-refactor", cwd=tmp_path).stdout.split() == [
        "swe-refactor.toml",
        "swe_refactor_examples.jsonl",
        "swe_refactor_models.py",
        "swe_refactor_project.py",
        "swe_refactor_project.toml",
    ]
    project = tomli.loads((tmp_path / "swe_refactor_project.toml").read_text("utf-8"))
    assert project["swe_refactor"]["build"]["repositories"] == ["runs/example/commons-cli"]
    missing = codetaste("config", "check", "swe-refactor.toml", cwd=tmp_path)
    assert missing.returncode == 2
    assert "swe_refactor.repositories: runs/example/commons-cli: no such folder\n" in missing.stderr


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        (
            {"benchmark.path": "none"},
            "benchmark.path: none: no such benchmark folder; codetaste benchmark new",
        ),
        ({"benchmark.instances": '["x"]'}, "benchmark.instances: no instance of"),
        ({"benchmark.repos": "none"}, "benchmark.repos: {folder}/none is not a folder"),
        ({"run.prompts": "none"}, "run.prompts: {folder}/none is not a folder"),
        ({"discover.tools": '["x"]'}, "discover.tools: 'x' is not an import path"),
    ],
)
def test_check_names_file_and_key_of_what_does_not_exist(
    tmp_path: Path, settings: dict[str, str], problem: str
) -> None:
    codetaste("init", "--example", "quickstart", cwd=tmp_path)
    words = [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]
    for command in (("config", "check"), ("run",)):
        done = codetaste(*command, "quickstart.toml", *words, cwd=tmp_path)
        assert done.returncode == 2
        assert f"codetaste: quickstart.toml: {problem.format(folder=tmp_path)}" in done.stderr


def test_check_wants_something_to_do_and_its_descriptions(tmp_path: Path) -> None:
    config = tmp_path / "c.toml"
    config.write_text('[run]\nname = "x"\n[benchmark]\npath = "quickstart"\n', "utf-8")
    assert "c.toml: nothing to do" in codetaste("config", "check", "c.toml", cwd=tmp_path).stderr
    shutil.copytree(EXAMPLES / "quickstart", tmp_path / "own")
    codetaste("init", "--example", "compare", cwd=tmp_path)
    for text in (tmp_path / "own").rglob("open_description.md"):
        text.unlink()
    done = codetaste("config", "check", "compare.toml", "--set", "benchmark.path=own", cwd=tmp_path)
    assert done.returncode == 2
    assert "open_description.md: the open description of pytest-dev__pluggy-15b2acde cannot" in done.stderr


@pytest.mark.parametrize("key", ["", "not-a-key"])
def test_check_notes_a_key_that_is_not_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, key: str) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", key)
    codetaste("init", cwd=tmp_path)
    done = codetaste("config", "check", "codetaste.toml", "--set", "benchmark.path=quickstart", cwd=tmp_path)
    note = "codetaste.toml: models[sonnet] needs ANTHROPIC_API_KEY, which is not set\n"
    assert (done.returncode, done.stderr) == (0, "" if key else note)


def test_check_lists_every_mistake(tmp_path: Path) -> None:
    (tmp_path / "bad.toml").write_text('[run]\nnam = "x"\n[benchmark]\npath = "quickstart"\n', "utf-8")
    done = codetaste("config", "check", "bad.toml", cwd=tmp_path)
    assert done.returncode == 2
    assert "run.nam" in done.stderr
    assert "run.name: missing" in done.stderr


def test_config_of_a_construction_is_checked_with_its_clones(tmp_path: Path) -> None:
    assert codetaste("init", "--example", "swe-refactor-build", cwd=tmp_path).returncode == 0
    missing = codetaste("config", "check", "swe-refactor-build.toml", cwd=tmp_path)
    assert missing.returncode == 2
    assert missing.stderr.endswith("swe_refactor.build.repositories: junit4: no such folder\n")
    (tmp_path / "junit4").mkdir()
    done = codetaste("config", "check", "swe-refactor-build.toml", cwd=tmp_path)
    assert done.stdout == "swe-refactor-build.toml: no mistakes; 1 clone\n", done.stderr


def test_config_that_mines_is_checked_without_a_benchmark(tmp_path: Path) -> None:
    assert codetaste("init", "--example", "mine-local", cwd=tmp_path).returncode == 0
    done = codetaste("config", "check", "mine-local.toml", cwd=tmp_path)
    assert done.stdout == "mine-local.toml: no mistakes; 1 model\n", done.stderr
