"""The scripted model of mine-local.toml: it scores commits, describes the change, and discovers rules.

Everything it knows comes from the conversation: asked twice, it answers the same.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from codetaste.llm.messages import Message, TextBlock, ToolCall

if TYPE_CHECKING:
    from codetaste.llm.messages import Request

MESSAGE = """<classification>
  <large_scale_refactor_score>0.9</large_scale_refactor_score>
  <true_refactor_score>0.8</true_refactor_score>
  <message_cohesion_score>0.7</message_cohesion_score>
  <length_penalty>0.1</length_penalty>
  <uncertainty>0.1</uncertainty>
  <trivial_score>0.05</trivial_score>
  <reasoning>The message is about the structure of a whole package.</reasoning>
</classification>"""
DIFF = """<classification>
  <refactor_likelihood>0.8</refactor_likelihood>
  <mixed_change_penalty>0.2</mixed_change_penalty>
  <risky_change_score>0.2</risky_change_score>
  <automated_pattern_score>0.1</automated_pattern_score>
  <uncertainty>0.1</uncertainty>
  <reasoning>Modules are moved and renamed; their code stays.</reasoning>
  <complexity>0.6</complexity>
  <trivial_score>0.05</trivial_score>
  <category>structural</category>
</classification>"""
DESCRIPTION = """# Title
Move the modules of the package and give them private names

# Summary
The modules of the package become private, and code that newer versions of Python need no more goes.

# Why
- What is public is said once.
- Old Python versions are no longer supported.

# Changes
- Rename `pluggy/hooks.py` to `pluggy/_hooks.py`, `pluggy/callers.py` to `pluggy/_callers.py` and
  `pluggy/manager.py` to `pluggy/_manager.py`, and follow in all imports.
- Remove `_legacymulticall` and what is left of `__multicall__`.
- Classes no longer name `object` as their base.
"""
SENTENCE = "Tidy up the layout of the package"


COMMAND = "ls; find . -name '*.py' | xargs wc -l | sort -n | tail -20"
PATTERNS = {
    "additive": {
        "imports-private-hooks": "from pluggy._hooks import $NAME",
        "imports-private-callers": "from pluggy._callers import $NAME",
        "imports-private-manager": "from pluggy._manager import $NAME",
        "plain-super-call": "super().__init__(...)",
    },
    "reductive": {
        "imports-public-hooks": "from pluggy.hooks import $NAME",
        "imports-public-callers": "from pluggy.callers import $NAME",
        "class-derives-from-object": "class $C(object): ...",
        "legacy-multicall": "_legacymulticall",
        "old-signatures": "inspect.getargspec",
    },
}


def reply(request: Request) -> str | Message:
    """Answer a request of any flow of the example."""
    if "<refactor_likelihood>" in request.system:
        return DIFF
    if "<large_scale_refactor_score>" in request.system:
        return MESSAGE
    if "# Changes" in request.system:
        return DESCRIPTION
    if "one short imperative sentence" in request.system:
        return SENTENCE
    return _find_rules(request)


def _find_rules(request: Request) -> Message:
    """Look around, register the rules of the direction, and finish."""
    direction = "reductive" if "**reductive**" in request.system else "additive"
    rules = [
        {"id": name, "message": name, "severity": "INFO", "languages": ["python"], "pattern": pattern}
        for name, pattern in PATTERNS[direction].items()
    ]
    steps: list[tuple[str, str, dict[str, Any]]] = [
        ("I look at the code first.", "bash_explore", {"command": COMMAND}),
        ("One rule for each idea.", "register", {"rules": json.dumps({"rules": rules})}),
        ("I have what the description names.", "finish", {}),
    ]
    turn = sum(message.role == "assistant" for message in request.messages)
    words, name, arguments = steps[min(turn, len(steps) - 1)]
    return Message("assistant", (TextBlock(words), ToolCall(f"call-{turn}", name, arguments)))
