"""The programs that a shell text runs, without wrappers and including the text of inner shells.

``cd x && timeout 60 xvfb-run -a bash -c 'poetry run pytest'`` runs ``pytest``. Only common wrappers and their
options are known; an unknown wrapper counts as the program itself.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from codetaste.evaluation.activity.shell_parser import ShellCommand, ShellWord, parse_shell

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

MAX_COMMANDS = 10_000
"""Commands read of one text; later ones are ignored."""
_MAX_DEPTH = 8
_SHELLS = frozenset({"bash", "sh", "zsh", "dash", "ksh", "ash", "su", "runuser"})
_FINDERS = frozenset({"find", "fd", "fdfind"})
_EXEC_OPTIONS = frozenset({"-exec", "-execdir", "-ok", "-okdir", "-x", "-X", "--exec", "--exec-batch"})
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
_SUFFIX = re.compile(r"\.(?:exe|cmd|bat)$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ShellProgram:
    """A program that a shell text runs.

    Attributes:
        name: its name without the folder.
        path: the command as written.
        arguments: its arguments.
        several_files: whether the arguments can be several files: globs, lists, from ``xargs`` or ``find``.
        stdin: the text that it gets on its standard input, "" without one.
    """

    name: str
    path: str
    arguments: tuple[str, ...]
    several_files: bool = False
    stdin: str = ""


@dataclass(frozen=True, slots=True)
class _Wrapper:
    """Where a wrapper's own arguments end: after its options, a required word ``after``, and ``skip`` words.

    ``valued`` are options that take a value, separated by spaces. With one of ``queries`` the wrapper prints
    information and runs nothing.
    """

    valued: str = ""
    skip: int = 0
    after: str = ""
    repeats: bool = False
    queries: str = ""


_WRAPPERS: Mapping[str, _Wrapper] = {
    "sudo": _Wrapper("-u -g -h -p -C -r -t -T -U -D -R --user --group --chdir"),
    "doas": _Wrapper("-u -C"),
    "env": _Wrapper("-u -C --unset --chdir"),
    "cross-env": _Wrapper(),
    "command": _Wrapper(queries="-v -V"),
    "timeout": _Wrapper("-s -k --signal --kill-after", skip=1),
    "gtimeout": _Wrapper("-s -k --signal --kill-after", skip=1),
    "time": _Wrapper("-f -o --format --output"),
    "nice": _Wrapper("-n --adjustment"),
    "ionice": _Wrapper("-c -n --class --classdata"),
    "taskset": _Wrapper(skip=1),
    "flock": _Wrapper("-w -E --timeout", skip=1),
    "stdbuf": _Wrapper("-i -o -e --input --output --error"),
    "xvfb-run": _Wrapper("-e -f -n -p -s -w --server-args --server-num --error-file"),
    "strace": _Wrapper("-e -o -p -s -u"),
    "rustup": _Wrapper(skip=1, after="run"),
    "poetry": _Wrapper("-C -P --directory --project", after="run"),
    "uv": _Wrapper(
        "-p --python --with --group --extra --directory --project --env-file --package", after="run"
    ),
    "pdm": _Wrapper("-p --project", after="run"),
    "rye": _Wrapper(after="run"),
    "pipenv": _Wrapper(after="run"),
    "pixi": _Wrapper("-e --environment --manifest-path", after="run"),
    "conda": _Wrapper("-n -p --name --prefix", after="run"),
    "mamba": _Wrapper("-n -p --name --prefix", after="run"),
    "micromamba": _Wrapper("-n -p --name --prefix", after="run"),
    "bundle": _Wrapper(after="exec"),
    "mise": _Wrapper(after="exec x"),
    "npx": _Wrapper("-p --package"),
    "bunx": _Wrapper(),
    "uvx": _Wrapper("-p --python --from --with"),
    "c8": _Wrapper("-r --reporter"),
    "nyc": _Wrapper("-r --reporter"),
    "parallel": _Wrapper("-j --jobs -a --colsep", repeats=True),
    "xargs": _Wrapper("-a -d -E -I -L -n -P -s --max-args --max-procs --delimiter --replace", repeats=True),
    **dict.fromkeys(("nohup", "setsid", "unbuffer", "builtin", "chronic", "exec", "coproc"), _Wrapper()),
}


def programs_in(text: str) -> tuple[tuple[ShellProgram, ...], bool]:
    """Return the programs that ``text`` runs, in order, and whether all of it could be parsed."""
    script = parse_shell(text)
    found: list[ShellProgram] = []
    todo = [(command, 0) for command in reversed(script.commands)]
    whole = not script.has_errors
    while todo and len(found) < MAX_COMMANDS:
        command, depth = todo.pop()
        command = _unwrapped(command)
        if not command.words:
            continue
        inner_text = _inner_text(command)
        if inner_text is None:
            path, arguments = command.words[0].text, command.words[1:]
            several = command.repeated or any(word.may_expand for word in arguments)
            found.append(ShellProgram(basename(path), path, command.texts[1:], several, command.stdin))
            inner = tuple(_commands_of_find(command))
        else:
            script = parse_shell(inner_text)
            whole = whole and not script.has_errors
            inner = tuple(
                replace(each, repeated=each.repeated or command.repeated) for each in script.commands
            )
        if depth < _MAX_DEPTH:
            todo += [(each, depth + 1) for each in reversed(inner)]
        elif inner:
            whole = False
    return tuple(found), whole and not todo


def _inner_text(command: ShellCommand) -> str | None:
    """Return the text that a shell runs: its ``-c`` argument or its standard input.

    None if the command is not a shell, or the shell runs a file.
    """
    name, arguments = basename(command.words[0].text), command.texts[1:]
    if name == "eval":
        return " ".join(arguments)
    if name not in _SHELLS:
        return None
    for at, word in enumerate(arguments):
        if re.fullmatch(r"-[a-zA-Z]*c", word) or word == "--command":
            return arguments[at + 1] if at + 1 < len(arguments) else None
        if not word.startswith("-"):
            break
    files = [word for word in arguments if not word.startswith("-")]
    return command.stdin if command.stdin and not files else None


def basename(path: str) -> str:
    """Return a program's name without its folder and a Windows suffix."""
    return _SUFFIX.sub("", path.rpartition("/")[2])


def _unwrapped(command: ShellCommand) -> ShellCommand:
    """Remove wrappers until none is left."""
    for _ in range(_MAX_DEPTH):
        while command.words and _ASSIGNMENT.match(command.words[0].text):
            command = command.skip_words(1)
        wrapper = _WRAPPERS.get(basename(command.words[0].text)) if command.words else None
        inner = wrapper and _without_wrapper(command, wrapper)
        if not inner:
            return command
        command = inner
    return command


def _without_wrapper(command: ShellCommand, wrapper: _Wrapper) -> ShellCommand | None:
    """Return the command that ``wrapper`` runs, None if it runs nothing."""
    at, valued = 1, wrapper.valued.split()
    if wrapper.after:
        at = _past_options(command.texts, at, valued)
        if at >= len(command.words) or command.texts[at] not in wrapper.after.split():
            return None
        at += 1
    own = at
    at = _past_options(command.texts, at, valued) + wrapper.skip
    if not set(wrapper.queries.split()).isdisjoint(command.texts[own:at]):
        return None
    while at < len(command.words) and _ASSIGNMENT.match(command.texts[at]):
        at += 1
    if at >= len(command.words):
        return None
    return replace(command.skip_words(at), repeated=command.repeated or wrapper.repeats)


def _past_options(texts: tuple[str, ...], at: int, valued: Collection[str]) -> int:
    while at < len(texts) and (texts[at].startswith("-") or _ASSIGNMENT.match(texts[at])):
        if texts[at] == "--":
            return at + 1
        at += 2 if texts[at] in valued else 1
    return at


def _commands_of_find(command: ShellCommand) -> Iterator[ShellCommand]:
    """Yield the commands of ``find -exec … ;`` and of ``fd -x …``: they run for every file that is found."""
    if basename(command.words[0].text) not in _FINDERS:
        return
    part: list[ShellWord] | None = None
    for word in command.words[1:]:
        if part is None:
            part = [] if word.text in _EXEC_OPTIONS else None
        elif word.text in {";", "+"}:
            yield ShellCommand(tuple(part), repeated=True)
            part = None
        else:
            part.append(word)
    if part:
        yield ShellCommand(tuple(part), repeated=True)
