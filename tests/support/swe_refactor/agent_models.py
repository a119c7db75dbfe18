"""Scripted models for agents that refactor the small Java project: each does one thing, well or badly."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path

# The scripts of support.harness know the agents' tools.
sys.path.append(str(Path(__file__).parents[2]))  # loaded by path, as a user's file is

from codetaste.llm.messages import Request, ToolResult, Usage
from codetaste.llm.providers.scripted import ScriptedReply
from support.flows.cli_agent_models import write_step
from support.harness.coding_models import EXPENSIVE_USAGE, USAGE, Step, follow_plan, shell_step
from support.swe_refactor.tested_project import AFTER, SHOP, TEST

LOOK = """\
git rev-list --all --count | sed 's/^/seen: commits: /'
javac -version 2>&1 | sed 's/^/seen: /'
grep -rl 'int sum(int' /testbed /task_description /home/agent/.m2 /opt/codetaste | sed 's/^/seen: golden: /'
"""
WRITE = "write"
"""In place of a command: carries out the refactoring of the developers, with the agent's own tool."""
TESTS = (
    "mvn -o test >/output/log 2>&1 && grep 'Tests run: ' /output/log | tail -1 | sed 's/.*Tests/seen: Tests/'"
)
NOTES = "echo done >NOTES.md; cp pom.xml pom.xml.bak; mkdir -p copy; echo x >copy/Shop.class"


def _model(*commands: str, usage: Usage = USAGE) -> Callable[[Request], ScriptedReply]:
    """Return a model that runs the commands, and ends with what lines with "seen: " it has seen."""

    def reply(request: Request) -> ScriptedReply:
        texts = [
            block.content
            for message in request.messages
            for block in message.content
            if isinstance(block, ToolResult)
        ]
        found = re.findall(r"seen: ([^\n\"\\]*)", "\n".join(texts))
        seen = [each for each in found if "/'" not in each]  # some agents repeat the command
        return follow_plan(
            lambda tools: [_step(tools, each) for each in commands], "; ".join(["It is done.", *seen]), usage
        )(request)

    return reply


def _step(tools: set[str], command: str) -> Step:
    if "bash" in tools:
        text = f"cat >{SHOP} <<'EOF'\n{AFTER}EOF" if command == WRITE else command
        return "bash", {"command": text, "timeout_s": 600}
    return write_step(tools, f"/testbed/{SHOP}", AFTER) if command == WRITE else shell_step(tools, command)


solve = _model(LOOK, WRITE, TESTS, NOTES)
restless = _model(WRITE, *["git log --oneline"] * 1000, usage=EXPENSIVE_USAGE)
"""Solves it, and continues until its budget is used up."""
idle = _model("true")
spend = _model(*["true"] * 1000, usage=EXPENSIVE_USAGE)
"""Uses its budget up, and changes nothing."""
edit_tests = _model(WRITE, f"sed -i s/assertEquals.3/assertEquals\\(4/ {TEST}")
edit_build = _model(WRITE, "sed -i s/4.13.2/4.13.1/ pom.xml")
delete = _model("rm -rf ./* .mvn .git")
flood = _model("head -c 100M /dev/zero >big.bin; head -c 100M /dev/zero >src/main/java/Big.java")
link = _model(f"rm {SHOP}; ln -s /etc/passwd {SHOP}")
leave_process = _model(WRITE, "setsid sleep 4321 >/dev/null 2>&1 &\nln -s /etc outside; echo left")
