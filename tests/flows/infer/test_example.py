"""The example comparison: in bubblewrap, and with equal patches in containers."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from support.flows.tiny_benchmark import QUICKSTART, CommandResult, Workspace
from support.flows.trial_runs import ALL
from support.system import dockerd

COMPARE = QUICKSTART.with_name("compare.toml")
PATH = "pytest-dev/pluggy/15b2acde"


def run_comparison(folder: Path, cache: Path, *settings: str) -> tuple[Workspace, CommandResult]:
    workspace = Workspace(folder, cache, COMPARE, name="compare")
    return workspace, workspace.run(*(word for setting in settings for word in ("--set", setting)))


def check_comparison(workspace: Workspace, result: CommandResult, kind: str) -> dict[str, bytes]:
    assert result.code == 0, result.err
    assert "18 of 18 jobs ended well" in result.out
    assert "open/multiplan by thorough, scripted" in result.out
    assert "no provider was called, and no money was spent on" in result.out
    patches = {}
    for track in ALL:
        sizes = []
        for agent in ("thorough", "hasty"):
            folder = workspace.out / "outputs" / track / PATH / agent
            metadata: dict[str, Any] = json.loads((folder / "inference_metadata.json").read_text())
            assert (metadata["finish_reason"], metadata["additional"]["sandbox"]) == ("success", kind)
            patch = patches[f"{track} {agent}"] = (folder / "prediction.diff").read_bytes()
            sizes.append(len(patch))
        assert sizes[0] > 10 * sizes[1] > 0
    assert b"rename to src/pluggy/_hooks.py" in patches["open/direct thorough"]
    check_ranking(result.out)
    return patches


def check_ranking(shown: str) -> None:
    """Check that the better agent ranks first in every mode, between base commit and golden patch."""
    section = shown.partition("IFR (%)")[2].partition("PREC (%)")[0]
    rows = {
        line.split()[0]: re.findall(r"([\d.]+) \[([\d.]+), ([\d.]+)\]", line)
        for line in section.splitlines()
        if line
    }
    assert list(rows)[:2] == ["thorough", "hasty"]
    assert len(rows["thorough"]) == len(rows["hasty"]) == len(ALL)
    for better, worse in zip(rows["thorough"], rows["hasty"], strict=True):
        mean, low, high = map(float, better)
        assert low < mean < high < 100
        assert float(worse[1]) <= float(worse[0]) < mean
    assert re.search(r"Golden Patch( +100\.0 +1){4}", section)
    assert re.search(r"Base Commit( +0\.0 +1){4}", section)


@pytest.fixture(scope="module")
def in_bubblewrap(
    tmp_path_factory: pytest.TempPathFactory, quickstart: tuple[Workspace, CommandResult], bubblewrap: Path
) -> dict[str, bytes]:
    cache = quickstart[0].cache
    workspace, result = run_comparison(tmp_path_factory.mktemp("compare"), cache, "sandbox.engine=bubblewrap")
    return check_comparison(workspace, result, "bubblewrap")


@pytest.mark.heavy
def test_two_scripted_agents_are_compared_on_both_tracks_in_all_modes(
    in_bubblewrap: dict[str, bytes],
) -> None:
    assert len(in_bubblewrap) == 8


def test_containers_give_same_patches(
    tmp_path: Path,
    quickstart: tuple[Workspace, CommandResult],
    in_bubblewrap: dict[str, bytes],
    docker_engine: dockerd.DockerEngine,
    lean_image: str,
) -> None:
    settings = (
        "sandbox.engine=docker",
        f'sandbox.socket="{docker_engine.socket}"',
        f'sandbox.image="{lean_image}"',
    )
    workspace, result = run_comparison(tmp_path, quickstart[0].cache, *settings)
    assert check_comparison(workspace, result, "docker") == in_bubblewrap
