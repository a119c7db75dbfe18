"""Scripted models for discovery: each derives its reply from the conversation alone."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from codetaste.errors import ModelUnavailable, RateLimited
from codetaste.llm.messages import Message, Request, TextBlock, ToolCall
from codetaste.llm.providers.scripted import ScriptedReply

Step = tuple[str, dict[str, Any]]


def rule(name: str, pattern: str, **more: Any) -> dict[str, Any]:
    return {
        "id": name,
        "message": name,
        "severity": "INFO",
        "languages": ["python"],
        "pattern": pattern,
        **more,
    }


NEW = [
    rule("calls-new", "fetch_new(...)"),
    rule("imports-new", "from pack.store import fetch_new"),
    rule("defines-new", "def fetch_new(...): ..."),
]
OLD = [
    rule("calls-old", "fetch_old(...)"),
    rule("imports-old", "from pack.store import fetch_old"),
    rule("defines-old", "def fetch_old(...): ..."),
    rule("object-base", "class $C(object): ..."),
]
EVERYWHERE = rule("sorts", "sorted(...)")


def yaml(*rules: dict[str, Any]) -> str:
    return json.dumps({"rules": rules})


def direction(request: Request) -> str:
    return "reductive" if "**reductive**" in request.system else "additive"


def turn(request: Request) -> int:
    return sum(message.role == "assistant" for message in request.messages)


def steps_of(request: Request) -> list[Step]:
    good = NEW if direction(request) == "additive" else OLD
    return [
        ("bash_explore", {"command": "cat pack/*.py; ls"}),
        ("register", {"rules": yaml(*good[:2], EVERYWHERE)}),
        ("bash_explore", {"command": "grep -rn fetch . | sort"}),
        ("register", {"rules": yaml(*good[2:], {**good[0], "id": "again"})}),
        ("bash_explore", {"command": "head -c 2000 README.md"}),
        ("finish", {}),
    ]


def next_step(request: Request, steps: list[Step]) -> Message:
    number = min(turn(request), len(steps) - 1)
    name, arguments = steps[number]
    return Message(
        "assistant", (TextBlock(f"step {number + 1}"), ToolCall(f"call-{number + 1}", name, arguments))
    )


def reply(request: Request) -> Message:
    return next_step(request, steps_of(request))


def slowly(request: Request) -> ScriptedReply:
    """The same, with latency between the ledger line and the reply, so that a kill can fall between."""
    return ScriptedReply(reply(request).content, latency_s=0.08)


def endless(request: Request) -> ScriptedReply:
    """Registers rules, then runs shell commands for ever."""
    steps = steps_of(request)[:2]
    look: Step = ("bash_explore", {"command": f"echo look {turn(request)}; cat pack/*.py"})
    return ScriptedReply(next_step(request, [*steps, look]).content, latency_s=0.02)


def quick(request: Request) -> Message:
    """One rule, then finish."""
    good = NEW if direction(request) == "additive" else OLD
    return next_step(request, [("register", {"rules": yaml(good[0])}), ("finish", {})])


def both(request: Request) -> Message:
    """Registers all rules in either direction."""
    return next_step(request, [("register", {"rules": yaml(*NEW, *OLD)}), ("finish", {})])


def down(_request: Request) -> Message:
    raise ModelUnavailable("the scripted provider is down", unbilled=True)


def limited(_request: Request) -> Message:
    raise RateLimited("the scripted provider asks to wait", retry_after_s=0.01)


def broken(_request: Request) -> Message:
    raise ValueError("a mistake in the script\nwith a second line \x1b[31mred")


def _shell(command: str, timeout_s: float = 300) -> Step:
    return ("bash_explore", {"command": command, "timeout_s": timeout_s})


def sleeper(request: Request) -> Message:
    """Runs a long shell command, and another in the background."""
    return next_step(request, [_shell("(sleep 4321.5 &) ; sleep 1234.5"), ("finish", {})])


def hostile(request: Request) -> ScriptedReply:
    """Runs a command with terminal escapes, with latency so that the display draws it."""
    nasty = "echo '\x1b[31mRED\x1b]0;owned\x07 [bold]not markup[/bold] [/] [red'\necho second\r\x9b2J"
    step = next_step(request, [("bash_explore", {"command": nasty}), *quick_steps(request)])
    return ScriptedReply(step.content, latency_s=2.0 if turn(request) == 1 else 0.0)


def quick_steps(request: Request) -> list[Step]:
    good = NEW if direction(request) == "additive" else OLD
    return [("register", {"rules": yaml(good[0])}), ("finish", {})]


BOMB = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{chr(98 + n)}: &{chr(98 + n)} [{','.join(['*' + chr(97 + n)] * 9)}]\n" for n in range(8)
)
BAD_TEXTS = [
    "rules:\n  - id: cut-off\n    message: 'no end\n",
    "rules: !!python/object/apply:os.system ['touch /tmp/owned']\n",
    BOMB + "rules: *i\n",
    "[" * 5000,
    "rules:\n- {id: a, id: a}\n",
    "\x00\ufffe",
    "",
    yaml(rule("cobol", "X") | {"languages": ["cobol"]}),
    yaml(rule("two", "$X") | {"languages": ["python", "klingon"]}),
    yaml({"id": "no-pattern", "message": "m", "severity": "INFO", "languages": ["python"]}),
    "rules: 7\n",
    yaml(rule("../../escape", "fetch_new(...)")),
]


def bad_yaml(request: Request) -> Message:
    """Registers every kind of bad text, then one good rule."""
    texts: list[Step] = [("register", {"rules": text}) for text in BAD_TEXTS]
    good = quick_steps(request)[0][1]
    return next_step(request, [*texts, ("register", good), ("finish", {})])


HANG = rule("hangs", "\n...\n".join(f"$F{number}($X{number})" for number in range(6)))
SLOW_FILE = "def run():\n" + "".join(f"    call{number}({number})\n" for number in range(2000))
"""A file on which the scan with HANG never ends."""


def hanging(request: Request) -> Message:
    """Registers a rule whose scan of SLOW_FILE never ends, and a good rule."""
    good = NEW[0] if direction(request) == "additive" else OLD[0]
    return next_step(request, [("register", {"rules": yaml(HANG, good)}), ("finish", {})])


def attacker(request: Request) -> Message:
    """Runs the commands of the file that TINY_ATTACKS names, one per turn."""
    commands = json.loads(Path(os.environ["TINY_ATTACKS"]).read_text())
    return next_step(request, [*(_shell(command, 20) for command in commands), ("finish", {})])


def lingering(request: Request) -> ScriptedReply:
    """Runs shell commands for ever, with latency for a test to change limits meanwhile."""
    return ScriptedReply(endless(request).content, latency_s=0.3)


def long(request: Request) -> ScriptedReply:
    """One rule, then finish; each reply takes seconds."""
    return ScriptedReply(quick(request).content, latency_s=3.0)


def slow_to_begin(request: Request) -> ScriptedReply:
    """One rule, then finish; the first reply takes longer than any codetaste command."""
    return ScriptedReply(quick(request).content, latency_s=20.0 if len(request.messages) == 1 else 0.0)


def repeating(request: Request) -> Message:
    """Registers one rule, and then the same again and again, with other words; looks around in between."""
    number = turn(request)
    good = NEW[0] if direction(request) == "additive" else OLD[0]
    rules = [yaml(good), *(yaml({**good, "message": f"try {n}", "id": f"name-{n}"}) for n in range(1, 30))]
    steps: list[Step] = [("register", {"rules": rules[0]})]
    for text in rules[1:]:
        steps += [("bash_explore", {"command": f"echo {len(steps)}"}), ("register", {"rules": text})]
    return next_step(request, steps[: number + 1])
