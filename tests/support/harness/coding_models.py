"""Scripted models that code with each program's own tools, in the place of a language model.

A model knows by the conversation alone how far it is: how many tools it has called. Requests without tools
are side calls (titles, paths in a command's output, compaction), whatever their number and order.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import anyio

from codetaste.llm.messages import Request, ToolCall, Usage
from codetaste.llm.providers.scripted import ScriptedReply

FIRST, SECOND = "/testbed/hello.py", "/testbed/added.txt"
OLD, NEW = "print('old')", "print('new')"
ADDED = "a file that was not there\n"
DONE = "The greeting is new, and a file was added."
USAGE = Usage(input=1000, output=100)
"""Of each answer of the main conversation: small, for a prompt that seems to fill the window is compacted."""
EXPENSIVE_USAGE = Usage(input=1000, output=3000)
"""Of each answer of a model that costs a third of a small budget."""
SIDE = Usage(input=10, output=1)
PATCH = f"*** Begin Patch\n*** Update File: hello.py\n@@\n-{OLD}\n+{NEW}\n*** End Patch\n"
PATCH_ADDING = f"*** Begin Patch\n*** Add File: added.txt\n+{ADDED}*** End Patch\n"

Step = tuple[str, dict[str, Any]]


def shell_step(tools: set[str], command: str) -> Step:
    """A command line in whatever shell tool the program has."""
    for name, arguments in {
        "Bash": {"command": command},
        "run_shell_command": {"command": command, "is_background": False},
        "exec_command": {"cmd": command},
        "shell_command": {"command": command, "timeout_ms": 1_000_000},
        "shell": {"command": ["sh", "-c", command], "timeout_ms": 1_000_000},
    }.items():
        if name in tools:
            return name, arguments
    raise LookupError(f"no shell among {sorted(tools)}")


def editing(tools: set[str]) -> list[Step]:
    """Two edits, in the program's own tools where it has them: one of a file, and a new one."""
    if "Edit" in tools:
        read: Step = ("Read", {"file_path": FIRST})
        edit: Step = ("Edit", {"file_path": FIRST, "old_string": OLD, "new_string": NEW})
        return [read, edit, ("Write", {"file_path": SECOND, "content": ADDED})]
    if "write_file" in tools:
        read = ("read_file", {"file_path": FIRST, "absolute_path": FIRST})
        edit = ("edit", {"file_path": FIRST, "old_string": OLD, "new_string": NEW})
        return [read, edit, ("write_file", {"file_path": SECOND, "content": ADDED})]
    look = shell_step(tools, "cat hello.py")
    if "apply_patch" in tools:
        return [look, ("apply_patch", {"input": PATCH}), ("apply_patch", {"input": PATCH_ADDING})]
    replace = f'sed -i "s/.*/{OLD}/; s/old/new/" hello.py'
    return [look, shell_step(tools, replace), shell_step(tools, f"printf '{ADDED.strip()}\\n' > added.txt")]


def called(request: Request) -> int:
    """How many tools the conversation has called."""
    return sum(len(message.tool_calls) for message in request.messages)


def reply_to_side_request(request: Request) -> ScriptedReply:
    """What any request without tools is answered."""
    return ScriptedReply("none", usage=SIDE)


def follow_plan(
    plan: Callable[[set[str]], list[Step]], end: str = DONE, usage: Usage = USAGE
) -> Callable[[Request], ScriptedReply]:
    """A model that calls the tools of ``plan`` one after the other, and then says ``end``."""

    def reply(request: Request) -> ScriptedReply:
        if not request.tools:
            return reply_to_side_request(request)
        steps, at = plan({tool.name for tool in request.tools}), called(request)
        if at >= len(steps):
            return ScriptedReply(end, usage=usage)
        name, arguments = steps[at]
        return ScriptedReply(ToolCall(f"call_{at}", name, arguments), usage=usage)

    return reply


coder = follow_plan(lambda tools: [*editing(tools), shell_step(tools, "git status --short")])
"""Reads, edits, adds, looks, and is done: five answers."""

restless = follow_plan(
    lambda tools: [*editing(tools), *([shell_step(tools, "git log --oneline")] * 1000)], usage=EXPENSIVE_USAGE
)
"""Continues for ever after its edits, and is expensive."""

stuck = follow_plan(lambda tools: [*editing(tools), *([shell_step(tools, "tail -f /dev/null")] * 1000)])
"""Does not come back from its last command; where a program leaves it alone after a while, from the next."""


def stuck_from(reached: anyio.Event) -> Callable[[Request], ScriptedReply]:
    """As ``stuck``, and says when it has asked for the command that does not come back."""

    def reply(request: Request) -> ScriptedReply:
        said = stuck(request)
        if "tail -f" in str(said.content):
            reached.set()
        return said

    return reply


def tools_of(request: Request) -> str:
    """For people who write such a script: the tools that a program offers."""
    return json.dumps([tool.name for tool in request.tools])
