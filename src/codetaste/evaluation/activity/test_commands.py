"""Decide whether a program runs tests, from its name and arguments.

Invocations that only list, compile or explain tests do not count (``--collect-only``, ``--no-run``,
``--help``), nor do scripts that the agent wrote itself. A repository's own script counts if its name is
``run_tests``, ``runtests`` or similar. Whether the tests pass does not matter.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from codetaste.evaluation.activity import test_runners as runners
from codetaste.evaluation.activity.shell_programs import basename

if TYPE_CHECKING:
    from collections.abc import Sequence

    from codetaste.evaluation.activity.shell_programs import ShellProgram

_SUFFIX = re.compile(r"\.(?:py|js|cjs|mjs|rb|php|pl|sh|bash)$")


def runs_tests(program: ShellProgram) -> bool:
    """Whether a program runs tests."""
    name, arguments = program.name, program.arguments
    no_run_options = runners.NO_RUN_OPTIONS | runners.NO_RUN_OPTIONS_BY_PROGRAM.get(name, frozenset())
    if not no_run_options.isdisjoint(arguments):
        return False
    if runners.INTERPRETER.fullmatch(name):
        return _interpreter_runs_tests(arguments)
    if name == "coverage":
        return arguments[:1] == ("run",) and _interpreter_runs_tests(arguments[1:])
    return _file_runs_tests(program.path, arguments)


def _file_runs_tests(path: str, arguments: Sequence[str]) -> bool:
    """Whether the program or script at ``path`` runs tests with ``arguments``."""
    name = basename(path)
    stem = _SUFFIX.sub("", name)
    test_script = runners.SCRIPT_PATH.fullmatch(path) and not path.startswith(runners.SYSTEM_FOLDERS)
    if (
        test_script
        or not runners.RUNNERS.isdisjoint((name, stem))
        or runners.REPOSITORY_SCRIPT.fullmatch(stem)
    ):
        return True
    if name in runners.MAVEN:
        return _maven_runs_tests(arguments)
    if name in runners.GRADLE:
        return _gradle_runs_tests(arguments)
    if name in runners.PACKAGE_MANAGERS:
        return _package_script_runs_tests(arguments)
    return _subcommand_runs_tests(stem, [word for word in arguments if not word.startswith(("-", "+"))])


def _subcommand_runs_tests(name: str, words: Sequence[str]) -> bool:
    """Whether a program runs tests with the non-option arguments ``words``."""
    if name in runners.TASK_RUNNERS:
        return any(_is_test_task(word) for word in words if "=" not in word)
    if name in runners.SCRIPT_RUNNERS and words and words[0] in runners.SCRIPT_SUBCOMMANDS:
        return any(_is_test_task(word) for word in words[1:])
    return bool(words) and words[0] in runners.SUBCOMMANDS.get(name, ())


def _is_test_task(word: str) -> bool:
    matches = runners.TASK.fullmatch(word) and not runners.OTHER_TASK.fullmatch(word)
    return word == "check" or bool(matches)


def _interpreter_runs_tests(arguments: Sequence[str]) -> bool:
    """Whether an interpreter's module or script runs tests; inline code does not count."""
    for at, word in enumerate(arguments):
        rest = arguments[at + 1 :]
        if word == "--test":
            return True
        if word == "-m":
            return bool(rest) and _module_runs_tests(rest[0], rest[1:])
        if word in {"-c", "-e", "-"}:
            return False
        if not word.startswith("-"):
            return _file_runs_tests(word, rest)
    return False


def _module_runs_tests(module: str, arguments: Sequence[str]) -> bool:
    if module == "coverage":
        return arguments[:1] == ("run",) and _interpreter_runs_tests(arguments[1:])
    if module == "django":
        return arguments[:1] == ("test",)
    return module in runners.TEST_MODULES or module.endswith((".runtests", ".run_tests"))


def _maven_runs_tests(arguments: Sequence[str]) -> bool:
    skipped = any(re.fullmatch(r"-D(?:skipTests|maven\.test\.skip)(?:=true)?", word) for word in arguments)
    return not skipped and not runners.MAVEN_PHASES.isdisjoint(arguments)


def _gradle_runs_tests(arguments: Sequence[str]) -> bool:
    """Whether a test task is requested: ``build`` and ``check`` count unless their tests are excluded."""
    excluded = {
        arguments[at + 1] for at, word in enumerate(arguments[:-1]) if word in {"-x", "--exclude-task"}
    }
    tasks = {
        word.rpartition(":")[2]
        for word in arguments
        if word not in excluded and runners.GRADLE_TASK.fullmatch(word)
    }
    if any(word.endswith("test") for word in excluded):
        tasks -= {"build", "check"}
    return bool(tasks)


def _package_script_runs_tests(arguments: Sequence[str]) -> bool:
    """Whether ``npm``, ``yarn``, ``pnpm`` or ``bun`` run a test script, or a test runner by its name."""
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
    return bool(words) and (_is_test_task(words[0]) or _file_runs_tests(words[0], words[1:]))
