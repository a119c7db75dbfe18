"""Scripted models that make case studies with any agent's shell, one honest, the others not."""

from __future__ import annotations

import json
import re
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

# The scripts of support.harness know the agents' tools.
sys.path.append(str(Path(__file__).parents[2]))  # loaded by path, as a user's file is

from codetaste.llm.messages import Request, ToolCall
from codetaste.llm.providers.scripted import ScriptedReply
from support.flows.cli_agent_models import write_step
from support.harness.coding_models import (
    EXPENSIVE_USAGE,
    USAGE,
    count_tool_calls,
    reply_to_side_request,
    shell_step,
)

STUDY = "/opt/study"
WRITE = "cat >/output/report.json <<'EOF'"
HEAD = "head -n 1 {study}/trials/{name}/prediction.diff"
STATEMENTS = "cat {study}/trials/{name}/said.txt"
ECHO = "echo 'all 12 tests pass'"
PATH, ADDED = "src/main/java/p/A.java", ">   int added;"
FIRST_LINE = "diff --git a/pack/store.py b/pack/store.py"
BOAST = "I ran the tests and all 12 tests pass"
WALLS = (
    f"touch {STUDY}/x 2>&1; touch /opt/base/x 2>&1; touch /opt/golden/x 2>&1; ls /opt/base/pack; "
    "(exec 3<>/dev/tcp/192.0.2.1/80) 2>&1; env | sort"
)
"""Tries to write to what is read-only, and to reach a network."""


def honest(request: Request) -> ScriptedReply:
    """Run one command for each trial, and claim what it printed."""
    names = trial_names(request)
    evidence = {
        name: [{"command": HEAD.format(study=STUDY, name=name), "excerpt": FIRST_LINE}] for name in names
    }
    commands = [each["command"] for name in names for each in evidence[name]]
    return follow(request, [*commands, write_command(report_of(request, evidence))])


def methods(request: Request) -> ScriptedReply:
    """Claim what the answers of SWE-Refactor's trials and their verdicts show."""
    names = trial_names(request)
    evidence = {
        name: [
            {"command": f"diff /opt/base/{PATH} {STUDY}/trials/{name}/files/{PATH}", "excerpt": ADDED},
            {"command": f"grep -c verified {STUDY}/trials/{name}/trial.json", "excerpt": "2"},
            {"command": f"cat {STUDY}/trials/{name}/commands.txt", "excerpt": "tool review"},
        ]
        for name in names
    }
    commands = [each["command"] for name in names for each in evidence[name]]
    return follow(request, [*commands, write_command(report_of(request, evidence))])


def spender(request: Request) -> ScriptedReply:
    """Do the same at a high price."""
    return replace(honest(request), usage=EXPENSIVE_USAGE)


def slowly(request: Request) -> ScriptedReply:
    """Do the same, with time to be killed in between."""
    time.sleep(0.3)
    return honest(request)


def liar(request: Request) -> ScriptedReply:
    """Claim true and false things: the order of the evidence is that of ``LIES``."""
    names = trial_names(request)
    evidence = {
        name: [
            {"command": command.format(study=STUDY, name=name), "excerpt": excerpt}
            for command, excerpt in LIES
        ]
        for name in names
    }
    commands = [each.format(study=STUDY, name=name) for name in names for each in (HEAD, STATEMENTS, ECHO)]
    return follow(request, [*commands, write_command(report_of(request, evidence))])


LIES = (
    (HEAD, FIRST_LINE),
    (HEAD, "12 passed"),
    ("pytest -q", "12 passed"),
    (ECHO, "all 12 tests pass"),
    (STATEMENTS, BOAST),
)


def confused(request: Request) -> ScriptedReply:
    """Write no JSON at first; do as asked when told so."""
    if "An earlier report" in task_of(request):
        return honest(request)
    return follow(request, [f"echo '# A report <script>' >{report_path(request)}"])


def linker(request: Request) -> ScriptedReply:
    """Leave a link in the place of the report."""
    return follow(request, [f"ln -s /etc/passwd {report_path(request)}"])


def hoarder(request: Request) -> ScriptedReply:
    """Leave a report of two megabytes."""
    return follow(request, [f"head -c 2000000 /dev/zero | tr '\\0' 1 >{report_path(request)}"])


def forger(request: Request) -> ScriptedReply:
    """Make up evidence in other ways: the order is that of ``FORGERIES``."""
    names = trial_names(request)
    evidence = {
        name: [{"command": each.format(study=STUDY, name=name), "excerpt": text} for each, text in FORGERIES]
        for name in names
    }
    commands = [f"echo '{PLANTED}' >/tmp/notes"]
    commands += [each["command"] for name in names for each in evidence[name]]
    return follow(request, [*commands, write_command(report_of(request, evidence))])


PLANTED = "nothing is left to be done"
FORGERIES = (
    ("cat /tmp/notes", PLANTED),
    ("cut -c8- {study}/trials/{name}/said.txt", BOAST),
    (f"true && echo '{BOAST}'", BOAST),
    ("head -n 3 {study}/trials/{name}/prediction.diff", "+++ b/pack/store.py\n--- a/pack/store.py"),
    (
        "sed -i s/object/forged/ {study}/trials/{name}/prediction.diff; cat {study}/trials/{name}/*.diff",
        "forged",
    ),
)


def mute(request: Request) -> ScriptedReply:
    """Write nothing."""
    return follow(request, ["true"])


def endless(request: Request) -> ScriptedReply:
    """Never end: each command takes ten minutes."""
    return follow(request, ["sleep 600"] * 1000)


def flooder(request: Request) -> ScriptedReply:
    """Print and write 100 MB, and a usable report beside it."""
    names = trial_names(request)
    flood = "head -c 100000000 /dev/zero | tr '\\0' x"
    evidence = {
        name: [{"command": HEAD.format(study=STUDY, name=name), "excerpt": FIRST_LINE}] for name in names
    }
    commands = [
        flood,
        f"{flood} >/output/report.json.big",
        *(each[0]["command"] for each in evidence.values()),
    ]
    return follow(request, [*commands, write_command(report_of(request, evidence))])


def folder_linker(request: Request) -> ScriptedReply:
    """Leave links that lead out of the folder of the report, and a pipe in its place."""
    return follow(
        request,
        [
            "ln -s /etc /output/etc; ln -s / /output/root; ln -s /output /output/loop",
            f"mkfifo {report_path(request)}",
        ],
    )


def mover(request: Request) -> ScriptedReply:
    """Put a link in the place of the folder of the report."""
    return follow(request, ["mv /output /tmp/output; rm -rf /output; ln -s /etc /output; ls -ld /output"])


def nester(request: Request) -> ScriptedReply:
    """Make a folder of the report's name, with a report in it, and 30,000 files beside it."""
    path = report_path(request)
    return follow(
        request, [f"mkdir {path}; echo 1 >{path}/report.json; cd /output; seq -f %06g 30000 | xargs touch"]
    )


def prisoner(request: Request) -> ScriptedReply:
    """Look for a way out of the sandbox, and report what it sees as evidence."""
    names = trial_names(request)
    evidence = {name: [{"command": WALLS, "excerpt": "store.py"}] for name in names}
    return follow(request, [WALLS, write_command(report_of(request, evidence))])


def task_of(request: Request) -> str:
    return "\n".join(message.text for message in request.messages if message.role == "user")


def trial_names(request: Request) -> list[str]:
    task = task_of(request)
    found = re.findall(r"^  - `([^`]+)`$", task, re.MULTILINE)
    return found or re.findall(r"/trials/([^`/]+)/`: what", task)


def report_path(request: Request) -> str:
    return re.findall(r"Write `([^`]+)`, one JSON object", task_of(request))[0]


def report_of(request: Request, evidence: dict[str, list[dict[str, str]]]) -> dict[str, Any]:
    if '"label": "one of' in task_of(request):
        (own,) = evidence.values()
        return {"label": "other_part", "reason": "It edits another file.", "evidence": own}
    return {
        "summary": "The developers rename a function.",
        "trials": {
            name: {
                "assessment": "It changes one file.\n\nNo test was run.",
                "claims": [{"claim": f"claim {n}", "evidence": [each]} for n, each in enumerate(own)],
            }
            for name, own in evidence.items()
        },
    }


def write_command(report: dict[str, Any]) -> str:
    return f"{WRITE}\n{json.dumps(report)}\nEOF"


def follow(request: Request, commands: list[str]) -> ScriptedReply:
    """Return the call of the next command, with the agent's own shell tool; a text at the end."""
    tools = {tool.name for tool in request.tools}
    if not tools:
        return reply_to_side_request(request)
    index = count_tool_calls(request)
    if index >= len(commands):
        return ScriptedReply("The report is written.", usage=USAGE)
    command = commands[index]
    if "bash" in tools:
        name, arguments = "bash", {"command": command}
    elif "write_file" in tools and command.startswith(WRITE):  # its shell tool refuses a heredoc
        name, arguments = write_step(tools, "/output/report.json", command.splitlines()[1])
    else:
        name, arguments = shell_step(tools, command)
    return ScriptedReply(ToolCall(f"call_{index}", name, arguments), usage=USAGE)
