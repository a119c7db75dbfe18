"""The scripted model of the quickstart: a program that works the rule agent's loop as a language model would.

It looks around, submits good, duplicate, invalid and broken rules, reads what it is told about them, repairs
what can be repaired, and finishes. Everything it knows comes from the conversation: asked twice, it answers
the same.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from codetaste.llm.messages import Message, Request, TextBlock, ToolCall, ToolResult

if TYPE_CHECKING:
    from collections.abc import Iterator

Rules = list[dict[str, Any]]

COMMANDS = {
    "additive": [
        "ls; find src testing docs -name '*.py' | xargs wc -l | sort -n | tail -20",
        "rg --sort path -n '^(from|import) .*pluggy|^from \\.' --glob '*.py'",
        "rg --sort path -c '^\\s*class \\w+(\\(object\\))?:' --glob '*.py' | sort",
    ],
    "reductive": [
        "ls; git log --oneline | head -3; sed -n 1,40p src/pluggy/callers.py",
        "rg --sort path -n '__multicall__|implprefix|_legacymulticall|_wrapped_call' --glob '*.py'",
        "rg --sort path -n '\\(object\\):|sys.version_info|_py3' --glob '*.py' | head -60",
    ],
}


def rule(name: str, message: str, **body: Any) -> dict[str, Any]:  # noqa: ANN401 - rule data
    """A Python rule in the form that OpenGrep reads."""
    return {"id": name, "message": message, "severity": "INFO", "languages": ["python"], **body}


def import_of(module: str) -> dict[str, Any]:
    """Match an import from one of pluggy's modules, wherever it is written."""
    return {"pattern": f"from {module} import $NAME"}


GOOD: dict[str, Rules] = {
    "additive": [
        rule("imports-private-hooks", "Imports from the private hooks module", **import_of("pluggy._hooks")),
        rule("imports-private-callers", "Imports from the private callers", **import_of("pluggy._callers")),
        rule("imports-private-manager", "Imports from the private manager", **import_of("pluggy._manager")),
        rule("imports-result-module", "Imports from the new result module", **import_of("._result")),
        rule(
            "hook-named-by-specname",
            "A hook implementation names its specification",
            pattern="$MARKER(..., specname=$NAME, ...)",
        ),
        rule(
            "multicall-takes-hook-name",
            "The call loop gets the hook's name first",
            pattern="def _multicall(hook_name, hook_impls, caller_kwargs, firstresult): ...",
        ),
        rule(
            "hookexec-passes-firstresult",
            "The hook caller passes firstresult on",
            pattern="self._hookexec($NAME, $METHODS, $KWARGS, $FIRST)",
        ),
        rule("plain-super-call", "super() without arguments", pattern="super().__init__(...)"),
    ],
    "reductive": [
        rule("imports-public-hooks", "Imports from the public hooks module", **import_of("pluggy.hooks")),
        rule("imports-public-callers", "Imports from the public callers", **import_of("pluggy.callers")),
        rule("imports-public-manager", "Imports from the public manager", **import_of("pluggy.manager")),
        rule("class-derives-from-object", "An explicit object base", pattern="class $C(object): ..."),
        rule("multicall-argument", "The __multicall__ argument", pattern='"__multicall__"'),
        rule(
            "multicall-parameter",
            "A function that takes __multicall__",
            pattern="def $F(..., __multicall__, ...): ...",
        ),
        rule("legacy-multicall", "The legacy call loop", pattern="_legacymulticall"),
        rule("implprefix-attribute", "The implementation prefix", pattern="$X._implprefix"),
        rule("old-hook-argument", "hookexec gets the hook itself", pattern="self._hookexec(self, ...)"),
    ],
}

# What a model also tries: the same again under another name, what was there all along, what cannot be read.
POOR: dict[str, Rules] = {
    "additive": [
        rule("private-hooks-again", "The first idea again", **import_of("pluggy._hooks")),
        rule("marks-a-hook", "Was there all along", pattern="HookspecMarker($NAME)"),
        rule("imports-something-absent", "Is nowhere", **import_of("pluggy.somewhere")),
        rule("does-not-parse", "No Python at all", pattern="class $C(: ..."),
    ],
    "reductive": [
        rule("public-hooks-again", "The first idea again", **import_of("pluggy.hooks")),
        rule("registers-a-plugin", "Is still there", pattern="$PM.register($PLUGIN)"),
        rule("unknown-language", "No such language", pattern="$X") | {"languages": ["pythonic"]},
        rule("does-not-parse", "No Python at all", pattern="def $F(: ..."),
    ],
}

# Discriminative, but not quite valid: what the feedback names is exempted until nothing is left.
BOLD: dict[str, dict[str, Any]] = {
    "additive": rule(
        "class-without-base",
        "A class without an explicit base",
        patterns=[{"pattern": "class $C: ..."}, {"pattern-not": "class $C($B, ...): ..."}],
    ),
    "reductive": rule("names-object", "Speaks of object", **{"pattern-regex": r"\bobject\b"}),
}
EXEMPT = re.compile(r"^{name}: rejected.*\n\s+exempt for example (.+), lines \d+ to \d+", re.MULTILINE)
REPAIRS = 8


def reply(request: Request) -> Message:
    """Decide the next step from what was said so far."""
    direction = "reductive" if "**reductive**" in request.system else "additive"
    turn = sum(message.role == "assistant" for message in request.messages)
    steps = list(_steps(direction, request))
    words, name, arguments = steps[min(turn, len(steps) - 1)]
    call = ToolCall(id=f"call-{turn + 1}", name=name, arguments=arguments)
    return Message("assistant", (TextBlock(words), call))


def _steps(direction: str, request: Request) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """The whole session as far as it can be planned: it grows with what the feedback says."""
    for command in COMMANDS[direction]:
        yield "I look at the code first.", "bash_explore", {"command": command}
    good = GOOD[direction]
    yield "The clearest ideas first.", "register", {"rules": _yaml(good[:4])}
    yield "Some that I am less sure of.", "register", {"rules": _yaml(POOR[direction])}
    yield (
        "This text got lost on the way.",
        "register",
        {"rules": "rules:\n  - id: cut-off\n    message: 'no end\n"},
    )
    yield "The rest of the list.", "register", {"rules": _yaml(good[4:])}
    bold = BOLD[direction]
    exempt: list[str] = []
    yield "A broad one, which may need exemptions.", "register", {"rules": _yaml([bold])}
    for answer in _answers(request):
        found = re.search(EXEMPT.pattern.format(name=bold["id"]), answer, re.MULTILINE)
        if found and found[1] not in exempt and len(exempt) < REPAIRS:
            exempt.append(found[1])
            narrowed = {**bold, "paths": {"exclude": list(exempt)}}
            yield f"I exempt {found[1]}.", "register", {"rules": _yaml([narrowed])}
    yield "I have what the description names.", "finish", {}


def _answers(request: Request) -> Iterator[str]:
    for message in request.messages:
        for block in message.content:
            if isinstance(block, ToolResult):
                yield block.content


def _yaml(rules: Rules) -> str:
    """JSON is YAML."""
    return json.dumps({"rules": rules}, indent=1)
