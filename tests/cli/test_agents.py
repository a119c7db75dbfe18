"""``codetaste agents``: its list as text and as JSON, and its errors."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any


def codetaste(cache: Path, *arguments: str) -> tuple[int, str, str]:
    done = subprocess.run(
        [sys.executable, "-m", "codetaste", "agents", *arguments],
        cwd=cache,
        env={**os.environ, "XDG_CACHE_HOME": str(cache)},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


def test_the_agents_are_listed_with_their_releases_and_options(tmp_path: Path) -> None:
    code, stdout, _ = codetaste(tmp_path)
    assert code == 0
    assert (
        "claude-code: Anthropic's Claude Code, headless (anthropic)\n  2.0.76: default, not installed\n"
        in stdout
    )
    assert '  option reasoning_effort = "medium" (minimal, low, medium, high, xhigh)\n' in stdout


def test_json_lists_the_same_agents(tmp_path: Path) -> None:
    code, stdout, _ = codetaste(tmp_path, "--json")
    document: list[dict[str, Any]] = json.loads(stdout)["agents"]
    assert code == 0
    assert {each["name"]: (each["protocol"], each["default"]) for each in document} == {
        "claude-code": ("anthropic", "2.0.76"),
        "codex": ("openai", "0.77.0"),
        "qwen-code": ("openai-chat", "0.7.1"),
    }
    assert {len(each["versions"]) for each in document} == {2, 3}
    assert not any(version["installed"] for each in document for version in each["versions"])


def test_agents_invalid_names_and_releases_are_all_reported(tmp_path: Path) -> None:
    code, stdout, stderr = codetaste(
        tmp_path, "install", "codecks", "codex@../x", "claude-code@;rm", "--json"
    )
    messages = json.loads(stdout)["error"]["messages"]
    assert code == json.loads(stdout)["exit_code"] == 2
    assert len(messages) == len(stderr.splitlines()) == 3
    assert "did you mean 'codex'?" in messages[0]
    assert "has no such release" in messages[2]
