"""Published scripts in containers, and runtime images that are there already."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.environment.tested_benchmark import make_environment_workspace, written_environment
from support.flows.tiny_benchmark import PRICE
from support.system.dockerd import DockerEngine

TRIALS = '[[tracks]]\ntrack = "open"\n[evaluate]\ntests = true\nbaseline_runs = 1\n'
VENV = '#!/bin/bash\nmkdir -p /testbed/.env\nprintf "%s" made > /testbed/.env/"made by setup"\n'


@pytest.fixture
def sandbox(docker_engine: DockerEngine) -> str:
    return f'engine = "docker"\nsocket = "{docker_engine.socket}"\nmax = 4\n'


def test_published_scripts_may_leave_files_which_are_in_no_patch(
    tmp_path: Path, sandbox: str, lean_image: str
) -> None:
    made = make_environment_workspace(
        tmp_path,
        sandbox,
        lean_image,
        "coder",
        setup=False,
        published={"setup_shell.sh": VENV},
        text=TRIALS,
    )
    done = made.run()
    assert (
        "published scripts need not pass clean_tree on R∘X*: git status shows changes: ?? .env/" in done.err
    )
    assert "left out of patches, as the setup makes it and git does not ignore it: .env/" in done.err
    details = written_environment(made)[1]
    assert details["level"] == "offline"
    gates = {gate["name"]: gate for gate in details["gates"]}
    assert [name for name, gate in gates.items() if not gate["passed"]] == ["clean_tree"]
    assert ".env/" in gates["clean_tree"]["message"]
    trial = next((made.out / "outputs/open/direct").glob("*/*/*/a"))
    patch = (trial / "prediction.diff").read_text()
    assert "fetch_new" in patch
    assert ".env" not in patch
    assert json.loads((trial / "evaluation/scores.json").read_text())["passed"] is True


def test_image_that_is_there_is_searched_for_keys_known_since(
    tmp_path: Path, sandbox: str, lean_image: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = "7f-later-known-5a61c9"
    scripts = {"setup_shell.sh": f"#!/bin/bash\necho {key} > /testbed/installed\n"}
    model = f'[[models]]\nid = "k"\nprovider = "openai"\nmodel = "m"\nprice = {PRICE}\n'
    model += 'api_key_env = "LATER_KEY"\n'
    first = make_environment_workspace(tmp_path / "first", sandbox, lean_image, published=scripts)
    again = make_environment_workspace(tmp_path / "again", sandbox, lean_image, published=scripts, text=model)
    assert first.run().code == 0
    monkeypatch.setenv("LATER_KEY", key)
    done = again.run()
    assert "the image would leak: " in done.err
    assert "the value of LATER_KEY" in done.err
    assert key not in done.err + done.out
    assert written_environment(again)[1]["runtime_image"] is None
