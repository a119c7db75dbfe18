"""Scripted models that edit code with each agent's own tools, in place of a language model.

A model's next step depends only on the number of tool calls in the conversation. Requests without tools are
side requests (titles, paths in a command's output, compaction), in any number and order.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import anyio

from codetaste.llm.messages import Request, ToolCall, Usage
from codetaste.llm.providers.scripted import ScriptedReply

EDITED_FILE, ADDED_FILE = "/testbed/hello.py", "/testbed/added.txt"
OLD, NEW = "print('old')", "print('new')"
ADDED = "a file that was not there\n"
DONE = "The greeting is new, and a file was added."
USAGE = Usage(input=1000, output=100)
"""Of each reply in the main conversation; small, because a prompt that fills the window is compacted."""
EXPENSIVE_USAGE = Usage(input=1000, output=3000)
"""Of each reply of a model that costs a third of a small budget."""
SIDE_USAGE = Usage(input=10, output=1)
UPDATE_PATCH = f"*** Begin Patch\n*** Update File: hello.py\n@@\n-{OLD}\n+{NEW}\n*** End Patch\n"
ADD_PATCH = f"*** Begin Patch\n*** Add File: added.txt\n+{ADDED}*** End Patch\n"

Step = tuple[str, dict[str, Any]]


def shell_step(tools: set[str], command: str) -> Step:
    """A command line for the agent's shell tool."""
    for name, arguments in {
        "Bash": {"command": command},
        "run_shell_command": {"command": command, "is_background": False},
        "exec_command": {"cmd": command},
        "shell_command": {"command": command, "timeout_ms": 1_000_000},
        "shell": {"command": ["sh", "-c", command], "timeout_ms": 1_000_000},
    }.items():
        if name in tools:
            return name, arguments
    raise LookupError(f"no shell tool among {sorted(tools)}")


def edit_steps(tools: set[str]) -> list[Step]:
    """An edit of a file and a new file, with the agent's own tools if it has such tools."""
    if "Edit" in tools:
        read: Step = ("Read", {"file_path": EDITED_FILE})
        edit: Step = ("Edit", {"file_path": EDITED_FILE, "old_string": OLD, "new_string": NEW})
        return [read, edit, ("Write", {"file_path": ADDED_FILE, "content": ADDED})]
    if "write_file" in tools:
        read = ("read_file", {"file_path": EDITED_FILE, "absolute_path": EDITED_FILE})
        edit = ("edit", {"file_path": EDITED_FILE, "old_string": OLD, "new_string": NEW})
        return [read, edit, ("write_file", {"file_path": ADDED_FILE, "content": ADDED})]
    look = shell_step(tools, "cat hello.py")
    if "apply_patch" in tools:
        return [look, ("apply_patch", {"input": UPDATE_PATCH}), ("apply_patch", {"input": ADD_PATCH})]
    replace = f'sed -i "s/.*/{OLD}/; s/old/new/" hello.py'
    return [look, shell_step(tools, replace), shell_step(tools, f"printf '{ADDED.strip()}\\n' > added.txt")]


def count_tool_calls(request: Request) -> int:
    """Return the number of tool calls in the conversation."""
    return sum(len(message.tool_calls) for message in request.messages)


def reply_to_side_request(request: Request) -> ScriptedReply:
    """Return the reply to a request without tools."""
    return ScriptedReply("none", usage=SIDE_USAGE)


def follow_plan(
    plan: Callable[[set[str]], list[Step]], end: str = DONE, usage: Usage = USAGE
) -> Callable[[Request], ScriptedReply]:
    """Return a model that makes the tool calls of ``plan`` one by one, and then replies ``end``."""

    def reply(request: Request) -> ScriptedReply:
        if not request.tools:
            return reply_to_side_request(request)
        steps, index = plan({tool.name for tool in request.tools}), count_tool_calls(request)
        if index >= len(steps):
            return ScriptedReply(end, usage=usage)
        name, arguments = steps[index]
        return ScriptedReply(ToolCall(f"call_{index}", name, arguments), usage=usage)

    return reply


coder = follow_plan(lambda tools: [*edit_steps(tools), shell_step(tools, "git status --short")])
"""Reads, edits, adds a file, runs a command, and ends: five replies."""

endless_coder = follow_plan(
    lambda tools: [*edit_steps(tools), *([shell_step(tools, "git log --oneline")] * 1000)],
    usage=EXPENSIVE_USAGE,
)
"""Makes expensive requests without end after its edits."""

stuck_coder = follow_plan(
    lambda tools: [*edit_steps(tools), *([shell_step(tools, "tail -f /dev/null")] * 1000)]
)
"""Starts commands that do not end after its edits; an agent that stops waiting for one gets another."""


def make_stuck_coder(reached: anyio.Event) -> Callable[[Request], ScriptedReply]:
    """Return ``stuck_coder`` that also sets ``reached`` at the first command that does not end."""

    def reply(request: Request) -> ScriptedReply:
        answer = stuck_coder(request)
        if "tail -f" in str(answer.content):
            reached.set()
        return answer

    return reply


def list_tools(request: Request) -> str:
    """Return the tools that an agent offers, for authors of such models."""
    return json.dumps([tool.name for tool in request.tools])
