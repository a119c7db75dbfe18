"""Scripted models of setup agents and of coding agents in an environment."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

from codetaste.llm.messages import Message, Request
from codetaste.llm.providers.scripted import ScriptedReply

# A run imports this file by its path.
sys.path.insert(0, str(Path(__file__).parents[2]))

from support.environment.tested_benchmark import SCRIPTS
from support.flows.trial_models import FINISH, Step, next_step, shell, task_of
from support.harness import coding_models as tool_steps


def write(name: str, text: str) -> Step:
    path = f"/scripts/{name}"
    return shell(f"printf %s {shlex.quote(text)} > {path} && chmod 755 {path}")


GOOD = [
    shell("git log --oneline; git show --stat HEAD | tail -n 1; id -un; ls /scripts"),
    *(write(name, text) for name, text in SCRIPTS.items()),
    write("SUMMARY.md", "# Summary\nunittest\n"),
    shell("sudo -n true; cd /testbed && git clean -xdffq && . /scripts/setup_shell.sh && /scripts/run_tests"),
    FINISH,
]
BAD = [
    *(write(name, text) for name, text in SCRIPTS.items()),
    write("run_tests", '#!/bin/bash\necho \'{"passed": 3, "failed": 0, "skipped": 0, "total": 3}\'\n'),
    FINISH,
]


def builder(request: Request) -> Message:
    """Writes scripts that work."""
    return next_step(request, GOOD)


def learner(request: Request) -> Message:
    """Writes scripts with too few tests, and good ones once the gates have said so."""
    learned = "3 tests; at least 10 are needed" in task_of(request)
    return next_step(request, GOOD if learned else BAD)


def hopeless(request: Request) -> Message:
    """Never writes scripts that work."""
    return next_step(request, BAD)


def idle(request: Request) -> Message:
    """Writes nothing."""
    return next_step(request, [shell("true"), FINISH])


def program_builder(request: Request) -> ScriptedReply:
    """Writes scripts that work, with the shell tool of a CLI agent."""

    def steps(tools: set[str]) -> list[tool_steps.Step]:
        commands = [str(arguments["command"]) for name, arguments in GOOD[:-1]]
        # Its commands reach the registries by the proxy that the variable names.
        commands.append('[ -n "$HTTPS_PROXY" ] || rm /scripts/run_tests')
        return [tool_steps.shell_step(tools, command) for command in commands]

    return tool_steps.follow_plan(steps, "The scripts work.")(request)


def coder(request: Request) -> Message:
    """Does the refactoring, after it has run the tests."""
    rename = (
        "sed -i 's/fetch_old(\\(.*\\))$/fetch_new(\\1, strict=True)/; s/fetch_old/fetch_new/g' pack/*.py && "
        "sed -i 's/def fetch_new(key, strict=True):/def fetch_new(key, strict):/; s/def fetch_new(key):/def "
        "fetch_new(key, strict):/' pack/store.py"
    )
    steps = [
        shell("/scripts/run_tests; echo $PYTHONHASHSEED; cat installed; git status --short"),
        shell(rename),
        FINISH,
    ]
    return next_step(request, steps)


def endless(request: Request) -> Message:
    """Reads files for ever."""
    return next_step(request, [shell("cat pack/*.py")])


def breaker(request: Request) -> Message:
    """Breaks a function."""
    return next_step(request, [shell("sed -i 's/fetch_old(.a.)/None/' pack/one.py"), FINISH])


def hungry(request: Request) -> Message:
    """Makes a function take more memory than test runs have."""
    return next_step(
        request, [shell("sed -i 's/return fetch_old(.a.)/return bytearray(10**9)/' pack/one.py"), FINISH]
    )
