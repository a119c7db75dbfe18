"""``codetaste benchmark fetch | list | show``, and the example config for the published benchmark."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from support.cli import invoke

CHECKOUT = Path(__file__).parents[2]
COMMITS = [f"{number:040x}" for number in range(1, 202)]


@pytest.fixture(scope="module")
def hundred_instances(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A hundred made-up instances, complete except for their environments; koa is the first."""
    root = tmp_path_factory.mktemp("release") / "codetaste100"
    lines = ["owner,repo,commit_hash,golden_commit_hash,combined_score,category,language"]
    names = [("koajs", "koa"), *(("made", f"up{number}") for number in range(99))]
    for (owner, repo), base, golden in zip(names, COMMITS[::2], COMMITS[1::2], strict=False):
        language = "go" if repo == "up1" else "javascript"
        lines.append(f"{owner},{repo},{base},{golden},,{'api' if repo == 'koa' else 'naming'},{language}")
        path = f"{owner}/{repo}/{base[:8]}"
        for name in ("description.md", "open_description.md"):
            write(root / "assets/descriptions" / path / name, f"tidy {repo}\x1b[31m up\n")
        for name in ("rules_positive.yml", "rules_negative.yml"):
            write(root / "assets/rules" / path / name, RULES)
    write(root / "instances.csv", "\n".join([*lines, ""]))
    return root


RULES = "rules:\n- {id: r, message: m, severity: INFO, languages: [js], pattern: x}\n"


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


Command = Callable[..., str]


@pytest.fixture
def codetaste(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    monkeypatch.chdir(tmp_path)
    return partial(invoke.codetaste, capsys)


@pytest.fixture
def as_json(codetaste: Command) -> Callable[..., Any]:
    return lambda *args: json.loads(codetaste(*args, "--json"))


def test_fetch_local_benchmark_is_installed_and_keys_documented(
    hundred_instances: Path, tmp_path: Path, as_json: Callable[..., Any], codetaste: Command
) -> None:
    document = as_json("benchmark", "fetch", "--from", hundred_instances)
    assert (document["folder"], document["created"], document["instances"]) == (
        str(tmp_path / "codetaste100"),
        True,
        100,
    )
    assert (document["missing"], len(document["missing_for_tests"]), document["verified"]) == ([], 100, False)
    page = set(re.findall(r"`([a-z_0-9]+)`", (CHECKOUT / "docs/programs.md").read_text("utf-8")))
    assert set(document) <= page
    again = codetaste("benchmark", "fetch", "codetaste100")
    assert "exists already; 100 instances, every task with its descriptions and rules" in again
    assert "no published digest is known to compare it with" in again


def test_fetch_unknown_benchmark_downloads_nothing(tmp_path: Path, codetaste: Command) -> None:
    stderr = codetaste("benchmark", "fetch", "codetaste10", code=2)
    assert stderr.startswith(
        "codetaste: 'codetaste10' is not a published benchmark; did you mean codetaste100?"
    )


def test_instances_are_listed_by_language_and_category(
    hundred_instances: Path, as_json: Callable[..., Any], codetaste: Command
) -> None:
    bench = ("benchmark", "list", "--benchmark", hundred_instances)
    assert len(as_json(*bench)["instances"]) == 100
    assert [row["instance"] for row in as_json(*bench, "--language", "Go")["instances"]] == [
        "made__up1-00000000"
    ]
    assert [row["repository"] for row in as_json(*bench, "--category", "AP*")["instances"]] == ["koajs/koa"]
    (row,) = as_json(*bench, "--instance", "koajs__*")["instances"]
    assert (row["base"], row["descriptions"], row["rules"], row["environment"]) == (
        COMMITS[0],
        True,
        True,
        False,
    )
    text = codetaste(*bench, "--language", "go")
    assert text == "made__up1-00000000  go          naming  without environment\n1 of 100 instances\n"
    assert "languages: go, javascript" in codetaste(*bench, "--language", "rust", code=2)
    assert "matches all of these filters" in codetaste(
        *bench, "--language", "go", "--category", "api", code=2
    )


def test_show_instance_prints_all_facts_escaped(
    hundred_instances: Path, as_json: Callable[..., Any], codetaste: Command
) -> None:
    bench = ("--benchmark", hundred_instances)
    document = as_json("benchmark", "show", "koajs__*", *bench)
    assert (document["rules"], document["golden_patch"]) == ({"additive": 1, "reductive": 1}, None)
    assert document["descriptions"]["open"] == "tidy koa\x1b[31m up"
    assert (document["licence"], document["clone"]) == ("unknown", None)
    text = codetaste("benchmark", "show", "koajs__*", *bench)
    assert "rules         1 additive, 1 reductive" in text
    assert "\x1b" not in text
    assert "matches 99 instances" in codetaste("benchmark", "show", "made__*", *bench, code=2)


def test_published_example_config_is_one_model_on_one_instance(
    hundred_instances: Path, tmp_path: Path, as_json: Callable[..., Any]
) -> None:
    (tmp_path / "examples").mkdir()
    example = tmp_path / "examples" / "codetaste100.toml"
    shutil.copy(CHECKOUT / "examples/codetaste100.toml", example)
    (tmp_path / "codetaste100").symlink_to(hundred_instances)
    (trial,) = as_json("run", example, "--dry-run")["trials"]
    assert trial["key"] == "infer/claude-code-sonnet/instructed/direct/koajs__koa-00000000"


def test_uncommented_example_runs_all_instances_in_all_modes(
    hundred_instances: Path, tmp_path: Path, as_json: Callable[..., Any]
) -> None:
    (tmp_path / "examples").mkdir()
    (tmp_path / "codetaste100").symlink_to(hundred_instances)
    text = (CHECKOUT / "examples/codetaste100.toml").read_text("utf-8")
    text = re.sub(r"^instances = .*\n", "", text, flags=re.MULTILINE)
    text = re.sub(r"^# (\[\[tracks|track =|mode =|judge =)", r"\1", text, flags=re.MULTILINE)
    text = text.replace("budget_usd = 11.0  ", "budget_usd = 9e3  ", 1)
    write(tmp_path / "examples/all.toml", text)
    document = as_json("run", tmp_path / "examples/all.toml", "--dry-run")
    assert len(document["trials"]) == 400
    modes = {trial["key"].split("/")[2] + "/" + trial["key"].split("/")[3] for trial in document["trials"]}
    assert modes == {"instructed/direct", "open/direct", "open/plan", "open/multiplan"}
