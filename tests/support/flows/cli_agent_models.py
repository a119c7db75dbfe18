"""Scripted models for real CLI agents in trials: each plans or codes with the agent's own tools.

A script derives its progress from the conversation alone. Requests without tools are side requests, in any
number and order.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

# The scripts of support.harness know the agents' tools.
sys.path.append(str(Path(__file__).parents[2]))  # loaded by path, as a user's file is

from codetaste.llm.messages import Request, Usage
from codetaste.llm.providers.scripted import ScriptedReply
from support.harness.coding_models import (
    EXPENSIVE_USAGE,
    Step,
    follow_plan,
    reply_to_side_request,
    shell_step,
)
from support.harness.coding_models import USAGE as USUAL

GREAT = "class Store(object):"
FIRST, SECOND = "/testbed/pack/store.py", "/testbed/look.sh"
LOOK = """\
{
	env
	cat /proc/*/environ /proc/*/cmdline | tr '\\0' '\\n'
	git log --all && git reflog && git fsck --lost-found
	find /home /tmp /run /output /task_description /etc -type f -size -300k -print -exec cat {} +
	find / -xdev -name '*.jsonl' -o -name '*.diff' -o -name 'rules_*' -o -name '*description.md'
	ls -laR /run/codetaste
} 2>&1 | tr -cd '\\11\\12\\40-\\176' >seen.txt
"""
"""The second edit: it writes all that could reveal hidden information to an agent into the patch."""
STUCK = f"sleep {os.environ.get('STUCK_S', '4321.5')} & sleep 1234.5"
DONE = "Store is a new-style class, and look.sh is new."


def task_of(request: Request) -> str:
    """The user messages of a request."""
    return "\n".join(message.text for message in request.messages if message.role == "user")


def requested_plans(request: Request) -> str:
    """The mode of the requested plans; "" if the code is to be changed."""
    task = task_of(request)
    if "/output/refactoring_plans/" in task:
        return "multiplan"
    return "plan" if "/output/refactoring_plan.md" in task else ""


def plan_marker(request: Request) -> str:
    """The marker of the plan that is executed."""
    task = task_of(request)
    return next((f"marker-{number}" for number in range(10) if f"marker-{number}" in task), "direct")


def plan_text(number: int) -> str:
    return f"# Plan {number}\nUse marker-{number}.\n## Changes\nStore.\n## Why\nIt is old.\n"


def write_step(tools: set[str], path: str, text: str) -> Step:
    """Create a file, with the agent's own tool if it has one."""
    if "Write" in tools:
        return "Write", {"file_path": path, "content": text}
    if "write_file" in tools:
        return "write_file", {"file_path": path, "content": text}
    if "apply_patch" in tools:
        added = "".join(f"+{line}\n" for line in text.splitlines())
        return "apply_patch", {"input": f"*** Begin Patch\n*** Add File: {path}\n{added}*** End Patch\n"}
    return shell_step(tools, f"mkdir -p $(dirname {path}); cat >{path} <<'EOF'\n{text}EOF")


def edit_steps(tools: set[str], mark: str) -> list[Step]:
    """Read a file, edit it, and create another."""
    new = f"class Store:  # {mark}"
    added = write_step(tools, SECOND, LOOK)
    if "Edit" in tools:
        changed = {"file_path": FIRST, "old_string": GREAT, "new_string": new}
        return [("Read", {"file_path": FIRST}), ("Edit", changed), added]
    if "edit" in tools:
        changed = {"file_path": FIRST, "old_string": GREAT, "new_string": new}
        return [("read_file", {"absolute_path": FIRST}), ("edit", changed), added]
    look = shell_step(tools, "cat pack/store.py")
    if "apply_patch" in tools:
        patch = f"*** Begin Patch\n*** Update File: pack/store.py\n@@\n-{GREAT}\n+{new}\n*** End Patch\n"
        return [look, ("apply_patch", {"input": patch}), added]
    return [look, shell_step(tools, f"sed -i 's/class Store(object):/{new}/' pack/store.py"), added]


def steps_of(request: Request, tools: set[str], *then: Step) -> list[Step]:
    """The steps for the task of ``request``; ``then`` follows if the code is changed."""
    match requested_plans(request):
        case "plan":
            return [
                shell_step(tools, "cat pack/*.py"),
                write_step(tools, "/output/refactoring_plan.md", plan_text(7)),
            ]
        case "multiplan":
            path = "/output/refactoring_plans/refactoring_plan{}.md"
            return [write_step(tools, path.format(number), plan_text(number)) for number in range(5)]
        case _:
            return [*edit_steps(tools, plan_marker(request)), *then]


def do_task(request: Request, *commands: str, usage: Usage = USUAL) -> ScriptedReply:
    """Do the task of ``request``, and then ``commands``."""
    if not request.tools:
        return reply_to_side_request(request)

    def steps(tools: set[str]) -> list[Step]:
        return steps_of(request, tools, *(shell_step(tools, command) for command in commands))

    return follow_plan(steps, DONE, usage)(request)


def coder(request: Request) -> ScriptedReply:
    """Plans, or changes the code and searches for all that must be hidden."""
    return do_task(request, "sh look.sh", "git status --short")


def restless(request: Request) -> ScriptedReply:
    """Continues for ever after its edits, and is expensive."""
    return do_task(request, *["git log --oneline"] * 1000, usage=EXPENSIVE_USAGE)


def stuck(request: Request) -> ScriptedReply:
    """Runs a command that does not end after its edits, again if the agent abandons it."""
    return do_task(request, *[STUCK] * 1000)


def stuck_while(request: Request) -> ScriptedReply:
    """The same, as long as the file ``stuck`` exists."""
    return stuck(request) if Path("stuck").exists() else do_task(request)


def expensive_reply(_request: Request) -> ScriptedReply:
    """A delayed reply that costs a tenth of a small budget."""
    return ScriptedReply("word", usage=Usage(input=1000, output=900), latency_s=0.2)


def judge(_request: Request) -> ScriptedReply:
    """Selects the fourth plan, with a reason."""
    return ScriptedReply("secret-reasoning: it overlaps most.\n\nSELECTED: 3")
