"""The agent of docs/guide/adding-an-agent.md, copied from the page, works on a real instance."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from codetaste.harness.manifest import AgentManifest

CHECKOUT = Path(__file__).resolve().parents[2]
PAGE = (CHECKOUT / "docs" / "guide" / "adding-an-agent.md").read_text("utf-8")

MODEL = r"""
def reply(request):
    text = request.messages[-1].text
    steps = ["git mv src/pluggy/hooks.py src/pluggy/_hooks.py", "cat no-such-file", "git status --short"]
    done = text.count("\n$ ")
    assert done < 2 or "R  src/pluggy/hooks.py" in text or "No such file" in text
    return steps[done] if done < len(steps) else "DONE"
"""
CONFIG = """
[run]
name = "mine"

[benchmark]
path = "quickstart"

[sandbox]
engine = "local"

[[models]]
id = "some-model"
provider = "scripted"
model = "model.py:reply"
price = { input = 1.0, output = 1.0 }

"""


def fences(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The page's agent, and a config that uses it."""
    manifest, agents = fences("toml")
    [script], [client] = fences("bash"), fences("js")
    (tmp_path / "shell-agent").mkdir()
    (tmp_path / "shell-agent" / "agent.toml").write_text(manifest)
    (tmp_path / "shell-agent" / "run.sh").write_text(script)
    (tmp_path / "shell-agent" / "ask.mjs").write_text(client)
    (tmp_path / "model.py").write_text(MODEL)
    (tmp_path / "run.toml").write_text(CONFIG + agents)
    return tmp_path


def codetaste(folder: Path, *arguments: str) -> tuple[int, Any]:
    done = subprocess.run(
        [sys.executable, "-m", "codetaste", *arguments, "--json"],
        cwd=folder,
        env={**os.environ, "XDG_CACHE_HOME": str(folder / "cache")},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, json.loads(done.stdout)


@pytest.mark.timeout(600)
def test_the_agent_of_the_page_works_on_a_real_instance(folder: Path, bubblewrap: Path) -> None:
    code, document = codetaste(folder, "run", "run.toml")
    assert code == 0, document
    [metadata] = (folder / "runs/mine/outputs").rglob("inference_metadata.json")
    found = json.loads(metadata.read_text())
    assert found["finish_reason"] == "success"
    assert found["additional"]["turns"] > 1, "its requests have no tools"
    patch = metadata.with_name("prediction.diff").read_text()
    assert "rename from src/pluggy/hooks.py" in patch
    assert "rename to src/pluggy/_hooks.py" in patch


def test_the_agent_of_the_page_is_installed_by_its_path(folder: Path, bubblewrap: Path) -> None:
    code, document = codetaste(folder, "agents", "install", "./shell-agent")
    (installed,) = document["installed"]
    assert (code, installed["name"], installed["version"]) == (0, "shell-agent", "1.0")
    assert (Path(installed["tree"]) / "adapter" / "ask.mjs").is_file()


def test_dry_run_names_a_release_that_is_not_tested(folder: Path) -> None:
    config = folder / "run.toml"
    config.write_text(config.read_text().replace('id = "mine"', 'id = "mine"\nversion = "1.1"'))
    code, document = codetaste(folder, "run", "run.toml", "--dry-run")
    (note,) = document["notes"]
    assert code == 0
    assert note.startswith("agents[mine].version: 1.1 is not among the tested releases (1.0); it runs")


def test_agent_manifest_fault_names_key(folder: Path) -> None:
    path = folder / "shell-agent" / "agent.toml"
    path.write_text(
        path.read_text().replace('outcome = "error"', 'outcome = "bad"').replace("about", "abuot")
    )
    code, document = codetaste(folder, "run", "run.toml", "--dry-run")
    assert code == 2
    messages = document["error"]["messages"]
    assert any("abuot: unknown key (did you mean 'about'?)" in each for each in messages)
    assert any("end_events[1].outcome: " in each for each in messages)


def test_page_names_existing_keys_and_variables() -> None:
    shown = set(re.findall(r"^\[+([a-z_]+)", fences("toml")[0], re.MULTILINE))
    shown |= set(re.findall(r"^([a-z_]+) =", fences("toml")[0].split("[", 1)[0], re.MULTILINE))
    assert shown - {"options"} <= set(AgentManifest.model_fields)
    from codetaste.harness.run import run_environment

    in_code = set(
        re.findall(
            r'"(CODETASTE_[A-Z_]+)', Path(sys.modules[run_environment.__module__].__file__ or "").read_text()
        )
    )
    assert in_code - {"CODETASTE_OPTION_", "CODETASTE_PROMPT"} <= set(
        re.findall(r"CODETASTE_[A-Z]+(?:_[A-Z]+)*", PAGE)
    )
