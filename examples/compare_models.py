"""The scripted models of the comparison: programs that work our own coding loop as language models would.

*thorough* looks around, moves pluggy's modules behind underscores and takes legacy code out, more of it when
it is told more; *hasty* touches one line or two. *judge* picks the plan that names most of what the task
names. Everything they know comes from the conversation: asked twice, they answer the same.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from codetaste.llm.messages import Message, Request, TextBlock, ToolCall

if TYPE_CHECKING:
    from collections.abc import Sequence

Step = tuple[str, str, dict[str, Any]]

LOOK = r"""
git log --oneline | head -3; ls
grep -rnE '(from|import) \.?(pluggy\.)?(hooks|callers|manager)\b' src testing
"""
MOVE = r"""
for module in hooks callers manager; do git mv "src/pluggy/$module.py" "src/pluggy/_$module.py"; done
grep -rlE 'pluggy\.(hooks|callers|manager)\b|^from \.(hooks|callers|manager) ' src/pluggy testing docs |
    xargs sed -i -E \
        's/\bpluggy\.(hooks|callers|manager)\b/pluggy._\1/g; s/^from \.(hooks|callers|manager) /from ._\1 /'
"""
BASES = r"""
grep -rlE '^ *class \w+\(object\):' src/pluggy testing docs |
    xargs sed -i -E 's/^( *class \w+)\(object\):/\1:/'
"""
PARSE = r"""
python3 - <<'END'
import ast, pathlib
for path in pathlib.Path("src/pluggy").glob("*.py"):
    ast.parse(path.read_text())
print("all of it parses")
END
git status --short | sort
"""
WARNING = """\
        if implprefix is not None:
            warnings.warn(
                "Support for the `implprefix` arg is now deprecated and will "
                "be removed in an upcoming release. Please use HookimplMarker.",
                DeprecationWarning,
                stacklevel=2,
            )
        self._implprefix = implprefix
"""
BRANCH = """\
        # TODO: remove when we drop implprefix in 1.0
        elif res is None and self._implprefix and name.startswith(self._implprefix):
            _warn_for_function(
                DeprecationWarning(
                    "The `implprefix` system is deprecated please decorate "
                    "this function using an instance of HookimplMarker."
                ),
                method,
            )
            res = {}
"""
SIGNATURE = '''\
    def __init__(self, project_name, implprefix=None):
        """If ``implprefix`` is given implementation functions
        will be recognized if their name matches the ``implprefix``. """
'''


def _plan(title: str, what: str, changes: str, why: str) -> str:
    return f"# {title}\n{what}\n## Changes\n{changes}\n## Why\n{why}\n"


PLANS = [
    _plan(
        "Drop the explicit object bases",
        "Python 3 needs none.",
        "`class Name(object):` becomes `class Name:` in all of `src/pluggy`.",
        "There is less to read.",
    ),
    _plan(
        "Name the public interface",
        "A list says what is public.",
        "`src/pluggy/__init__.py` keeps its imports and says in `__all__` what is meant to be used.",
        "A tool can check it.",
    ),
    _plan(
        "Make the implementation modules private",
        "What the package itself exports is public, the modules behind it are not.",
        "- `hooks.py`, `callers.py` and `manager.py` become `_hooks.py`, `_callers.py` and `_manager.py`;\n"
        "  the package, the tests and the documentation import from `pluggy._hooks`, `pluggy._callers` and\n"
        "  `pluggy._manager`. No forwarding modules stay behind.\n"
        "- The deprecated argument `implprefix` of `PluginManager` goes, and `_implprefix` with it.\n"
        "- `class Name(object):` becomes `class Name:`.",
        "Users reach into modules that must be free to change.",
    ),
    _plan(
        "Warn in one place",
        "All warnings about deprecated features come from one function.",
        "`manager.py` and `hooks.py` call a new `_deprecated.py`.",
        "Their texts are alike.",
    ),
    _plan(
        "Split the manager",
        "Tracing and registration are two things.",
        "`manager.py` becomes `registry.py` and `tracing.py`.",
        "Each is easier to test.",
    ),
]
BEST = 2


def thorough(request: Request) -> Message:
    """Decide the next step of the better agent."""
    task = request.messages[0].text
    steps: list[Step] = [("I look at who imports what.", "bash", {"command": LOOK})]
    if "/refactoring_plans/" in task:
        steps += [_write(f"refactoring_plans/refactoring_plan{i}.md", plan) for i, plan in enumerate(PLANS)]
    elif "/output/refactoring_plan.md" in task:
        steps.append(_write("refactoring_plan.md", PLANS[BEST]))
    else:
        steps.append(("Private names first, and for all who import them.", "bash", {"command": MOVE}))
        steps.append(_edit("_manager.py", "class PluginManager(object):", "class PluginManager:"))
        if "implprefix" in task:
            steps.append(_edit("_manager.py", SIGNATURE, "    def __init__(self, project_name):\n"))
            steps.append(_edit("_manager.py", WARNING, ""))
            steps.append(_edit("_manager.py", BRANCH, ""))
        if "class Name(object):" in task:
            steps.append(("The explicit bases go.", "bash", {"command": BASES}))
        steps.append(("Does it still parse?", "bash", {"command": PARSE}))
    steps.append(("All is done.", "finish", {"summary": "The modules are private."}))
    return _say(request, steps)


def hasty(request: Request) -> Message:
    """Decide the next step of the other agent."""
    task = request.messages[0].text
    steps: list[Step] = []
    if "/refactoring_plans/" in task:
        order = [*PLANS[:BEST], *PLANS[BEST + 1 :], PLANS[0]]
        steps += [_write(f"refactoring_plans/refactoring_plan{i}.md", plan) for i, plan in enumerate(order)]
    elif "/output/refactoring_plan.md" in task:
        steps.append(_write("refactoring_plan.md", PLANS[0]))
    else:
        steps.append(_edit("hooks.py", "class HookspecMarker(object):", "class HookspecMarker:"))
        if "class Name(object):" in task:
            steps.append(_edit("hooks.py", "class HookimplMarker(object):", "class HookimplMarker:"))
    steps.append(("That should do.", "finish", {}))
    return _say(request, steps)


def judge(request: Request) -> str:
    """Pick the plan that has most of the names that the description has, and say so as models do."""
    task = request.messages[0].text
    description = re.findall(r"<task>(.*?)</task>", task, re.DOTALL)[0]
    plans = re.findall(r'<plan number="\d+">(.*?)</plan>', task, re.DOTALL)
    names = set(re.findall(r"`([^`]+)`", description))
    overlap = [sum(f"`{name}`" in plan for name in names) for plan in plans]
    best = max(range(len(plans)), key=lambda number: overlap[number])
    return f"Plan {best} has {overlap[best]} of the names, and no other has more.\n\n**SELECTED:** [{best}]"


def _write(name: str, text: str) -> Step:
    arguments = {"path": f"/output/{name}", "old": "", "new": text, "create": True}
    return f"I write {name}.", "edit", arguments


def _edit(module: str, old: str, new: str) -> Step:
    return f"I change {module}.", "edit", {"path": f"src/pluggy/{module}", "old": old, "new": new}


def _say(request: Request, steps: Sequence[Step]) -> Message:
    turn = sum(message.role == "assistant" for message in request.messages)
    words, name, arguments = steps[min(turn, len(steps) - 1)]
    return Message("assistant", (TextBlock(words), ToolCall(f"call-{turn + 1}", name, arguments)))
