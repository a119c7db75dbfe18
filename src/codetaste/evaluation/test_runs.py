"""Which programs run tests: the runners of the field, by name and by what they are told.

A run that only lists, compiles or explains is none (``--collect-only``, ``--no-run``, ``--help``), nor is a
script of the agent's own making. A repository's own script counts when it is called ``run_tests``,
``runtests`` and the like. Whether the tests passed is not asked.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from codetaste.evaluation import runners
from codetaste.evaluation.programs import basename

if TYPE_CHECKING:
    from collections.abc import Sequence

    from codetaste.evaluation.programs import Program

_SUFFIX = re.compile(r"\.(?:py|js|cjs|mjs|rb|php|pl|sh|bash)$")


def runs_tests(program: Program) -> bool:
    """Whether a program runs tests."""
    name, arguments = program.name, program.arguments
    explains = runners.EXPLAINS | runners.EXPLAINS_HERE.get(name, frozenset())
    if not explains.isdisjoint(arguments):
        return False
    if runners.INTERPRETER.fullmatch(name):
        return _interpreted(arguments)
    if name == "coverage":
        return arguments[:1] == ("run",) and _interpreted(arguments[1:])
    return _called(program.path, arguments)


def _called(path: str, arguments: Sequence[str]) -> bool:
    """Whether the program or script at ``path`` runs tests when it is told ``arguments``."""
    name = basename(path)
    stem = _SUFFIX.sub("", name)
    own = runners.SCRIPT_PATH.fullmatch(path) and not path.startswith(runners.SYSTEM_FOLDERS)
    if own or name in runners.RUNNERS or stem in runners.RUNNERS or runners.OWN_SCRIPT.fullmatch(stem):
        return True
    if name in runners.MAVEN:
        return _maven(arguments)
    if name in runners.GRADLE:
        return _gradle(arguments)
    if name in runners.PACKAGE_MANAGERS:
        return _package_script(arguments)
    return _told(stem, [word for word in arguments if not word.startswith(("-", "+"))])


def _told(name: str, words: Sequence[str]) -> bool:
    """Whether a program runs tests when it is told ``words``, options left out."""
    if name in runners.TASK_RUNNERS:
        return any(_is_task(word) for word in words if "=" not in word)
    if name in runners.SCRIPT_RUNNERS and words and words[0] in runners.SCRIPT_WORDS:
        return any(_is_task(word) for word in words[1:])
    return bool(words) and words[0] in runners.SUBCOMMANDS.get(name, ())


def _is_task(word: str) -> bool:
    named = runners.TASK.fullmatch(word) and not runners.OTHER_TASK.fullmatch(word)
    return word == "check" or bool(named)


def _interpreted(arguments: Sequence[str]) -> bool:
    """Whether an interpreter's module or script runs tests; code that stands in the command runs none."""
    for at, word in enumerate(arguments):
        rest = arguments[at + 1 :]
        if word == "--test":
            return True
        if word == "-m":
            return bool(rest) and _module(rest[0], rest[1:])
        if word in {"-c", "-e", "-"}:
            return False
        if not word.startswith("-"):
            return _called(word, rest)
    return False


def _module(module: str, arguments: Sequence[str]) -> bool:
    if module == "coverage":
        return arguments[:1] == ("run",) and _interpreted(arguments[1:])
    if module == "django":
        return arguments[:1] == ("test",)
    return module in runners.MODULES or module.endswith((".runtests", ".run_tests"))


def _maven(arguments: Sequence[str]) -> bool:
    skipped = any(re.fullmatch(r"-D(?:skipTests|maven\.test\.skip)(?:=true)?", word) for word in arguments)
    return not skipped and not runners.MAVEN_PHASES.isdisjoint(arguments)


def _gradle(arguments: Sequence[str]) -> bool:
    """Whether a task of tests is asked for: ``build`` and ``check`` too, unless theirs are left out."""
    left_out = {
        arguments[at + 1] for at, word in enumerate(arguments[:-1]) if word in {"-x", "--exclude-task"}
    }
    asked = {
        word.rpartition(":")[2]
        for word in arguments
        if word not in left_out and runners.GRADLE_TASK.fullmatch(word)
    }
    if any(word.endswith("test") for word in left_out):
        asked -= {"build", "check"}
    return bool(asked)


def _package_script(arguments: Sequence[str]) -> bool:
    """Whether ``npm``, ``yarn``, ``pnpm`` or ``bun`` run a script of tests, or a runner by its name."""
    words: list[str] = []
    skip = False
    for word in arguments:
        if skip or word.startswith("-"):
            skip = not skip and word in runners.PACKAGE_OPTIONS
        else:
            words.append(word)
    if words[:1] == ["workspace"] or words[:2] == ["workspaces", "foreach"]:
        words = words[2:]
    if words[:1] in (["t"], ["tst"]):
        return True
    if words and words[0] in {"run", "run-script", "exec", "dlx", "x"}:
        words = words[1:]
    return bool(words) and (_is_task(words[0]) or _called(words[0], words[1:]))
