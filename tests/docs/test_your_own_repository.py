"""The tutorial's commands work as they stand: in an empty folder, from a wheel, without a key."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parents[2]
PAGE = (CHECKOUT / "docs/guide/your-own-repository.md").read_text("utf-8")
ENVIRONMENT = ("PATH", "HOME", "LANG", "SSL_CERT_FILE", "PIP_INDEX_URL", "PIP_CERT", "PIP_CONFIG_FILE")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


@pytest.mark.heavy
@pytest.mark.timeout(900)
def test_commands_lead_from_a_clone_to_a_comparison(tmp_path: Path, bubblewrap: Path) -> None:
    folder = tmp_path / "empty"
    folder.mkdir()
    ours = {name: os.environ[name] for name in ENVIRONMENT if name in os.environ}
    done = subprocess.run(
        ["bash", "-c", "set -e\n" + "\n".join(blocks("bash"))],
        cwd=folder,
        env={**ours, "XDG_CACHE_HOME": str(tmp_path / "cache"), "CHECKOUT": str(CHECKOUT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    assert "own: 8 of 8 jobs ended well" in done.stdout
    (shown,) = blocks("text")
    assert shown in done.stdout, "the page shows what the comparison says"
    for name in ("rules discovered by finder", "Discovery: rules by model and pass"):
        assert name in done.stdout
    patches = sorted((folder / "runs/own/outputs").rglob("prediction.diff"))
    assert {path.parent.name for path in patches} == {"careful", "hasty", "golden_agent", "null_agent"}
    (careful,) = [path for path in patches if path.parent.name == "careful"]
    assert careful.read_text().count("+++ b/") == 60
    config = json.loads((folder / "runs/own/config.json").read_text())
    assert [model["provider"] for model in config["models"]] == ["scripted"] * 3
