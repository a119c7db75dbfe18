"""docs/guide/writing-a-tool.md shows the example tool unchanged, and an agent can use it."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parents[2]
PAGE = (CHECKOUT / "docs" / "guide" / "writing-a-tool.md").read_text("utf-8")

MODEL = """
from codetaste.llm.messages import Message, ToolCall

def reply(request):
    turn = len(request.messages) // 2
    name, arguments = [
        ("importers", {"module": "pluggy.hooks"}),
        ("importers", {"module": "not a module"}),
        ("importers", {"module": "pluggy.callers", "limit": 1}),
        ("finish", {}),
    ][turn]
    return Message("assistant", (ToolCall(f"call-{turn}", name, arguments),))
"""
CONFIG = """
[run]
name = "mine"

[benchmark]
path = "quickstart"

[[models]]
id = "scripted"
provider = "scripted"
model = "model.py:reply"

"""


def fence(language: str) -> str:
    [found] = re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    return str(found)


def test_page_shows_the_example_unchanged() -> None:
    assert fence("python") == (CHECKOUT / "examples" / "importers_tool.py").read_text("utf-8")


@pytest.mark.timeout(600)
def test_agent_uses_the_tool_with_the_pages_config(tmp_path: Path) -> None:
    shutil.copy(CHECKOUT / "examples" / "importers_tool.py", tmp_path)
    (tmp_path / "model.py").write_text(MODEL)
    (tmp_path / "mine.toml").write_text(CONFIG + fence("toml"))
    done = subprocess.run(
        [sys.executable, "-m", "codetaste.run", "mine.toml", "--json", "--only", "*/reductive"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    [job] = json.loads(done.stdout)["jobs"]
    assert job["value"]["tool_calls"] == 4
    [transcript] = (tmp_path / "runs/mine/transcripts").rglob("*.jsonl")
    answers = [
        block
        for line in transcript.read_text("utf-8").splitlines()
        for block in json.loads(line).get("content", [])
        if block["type"] == "result"
    ]
    assert answers[0]["content"].startswith(
        "4 files import pluggy.hooks (file:lines; 0 modules asked for before)"
    )
    assert answers[1]["error"]
    assert "is not a module's name" in answers[1]["content"]
    assert answers[2]["content"].startswith(
        "3 files import pluggy.callers (file:lines; 1 modules asked for before)"
    )
    assert answers[2]["content"].count("\n") == 1
