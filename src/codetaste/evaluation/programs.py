"""Which programs a text of shell runs in the end: wrappers taken off, inner shells read.

``cd x && timeout 60 xvfb-run -a bash -c 'poetry run pytest'`` runs ``pytest``. What a wrapper's own options
mean is known of the wrappers that people use; of another one, the wrapper itself is the program.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from codetaste.evaluation.shell import Command, Word, parse_shell

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

MOST_COMMANDS = 10_000
"""Of one text; what comes after is not read."""
_DEEPEST = 8
_SHELLS = frozenset({"bash", "sh", "zsh", "dash", "ksh", "ash", "su", "runuser"})
_FINDERS = frozenset({"find", "fd", "fdfind"})
_FOR_EACH = frozenset({"-exec", "-execdir", "-ok", "-okdir", "-x", "-X", "--exec", "--exec-batch"})
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
_SUFFIX = re.compile(r"\.(?:exe|cmd|bat)$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Program:
    """A program that is run.

    Attributes:
        name: without its folder.
        path: as it was called.
        arguments: its words.
        several: whether its arguments can be several files: globs, lists, what ``xargs`` or ``find`` give.
        given: the document that it is handed, "" without one.
    """

    name: str
    path: str
    arguments: tuple[str, ...]
    several: bool = False
    given: str = ""


@dataclass(frozen=True, slots=True)
class _Wrapper:
    """How a wrapper's own words end: options that take a value, ``skip`` words, a word that must come.

    With one of ``asks`` it runs nothing, but tells.
    """

    valued: frozenset[str] = frozenset()
    skip: int = 0
    after: frozenset[str] = frozenset()
    repeats: bool = False
    asks: frozenset[str] = frozenset()


def _wraps(
    valued: str = "", *, skip: int = 0, after: str = "", repeats: bool = False, asks: str = ""
) -> _Wrapper:
    return _Wrapper(
        frozenset(valued.split()), skip, frozenset(after.split()), repeats, frozenset(asks.split())
    )


_WRAPPERS: Mapping[str, _Wrapper] = {
    "sudo": _wraps("-u -g -h -p -C -r -t -T -U -D -R --user --group --chdir"),
    "doas": _wraps("-u -C"),
    "env": _wraps("-u -C --unset --chdir"),
    "cross-env": _wraps(),
    "command": _wraps(asks="-v -V"),
    "timeout": _wraps("-s -k --signal --kill-after", skip=1),
    "gtimeout": _wraps("-s -k --signal --kill-after", skip=1),
    "time": _wraps("-f -o --format --output"),
    "nice": _wraps("-n --adjustment"),
    "ionice": _wraps("-c -n --class --classdata"),
    "taskset": _wraps(skip=1),
    "flock": _wraps("-w -E --timeout", skip=1),
    "stdbuf": _wraps("-i -o -e --input --output --error"),
    "xvfb-run": _wraps("-e -f -n -p -s -w --server-args --server-num --error-file"),
    "strace": _wraps("-e -o -p -s -u"),
    "rustup": _wraps(skip=1, after="run"),
    "poetry": _wraps("-C -P --directory --project", after="run"),
    "uv": _wraps(
        "-p --python --with --group --extra --directory --project --env-file --package", after="run"
    ),
    "pdm": _wraps("-p --project", after="run"),
    "rye": _wraps(after="run"),
    "pipenv": _wraps(after="run"),
    "pixi": _wraps("-e --environment --manifest-path", after="run"),
    "conda": _wraps("-n -p --name --prefix", after="run"),
    "mamba": _wraps("-n -p --name --prefix", after="run"),
    "micromamba": _wraps("-n -p --name --prefix", after="run"),
    "bundle": _wraps(after="exec"),
    "mise": _wraps(after="exec x"),
    "npx": _wraps("-p --package"),
    "bunx": _wraps(),
    "uvx": _wraps("-p --python --from --with"),
    "c8": _wraps("-r --reporter"),
    "nyc": _wraps("-r --reporter"),
    "parallel": _wraps("-j --jobs -a --colsep", repeats=True),
    "xargs": _wraps("-a -d -E -I -L -n -P -s --max-args --max-procs --delimiter --replace", repeats=True),
    **dict.fromkeys(("nohup", "setsid", "unbuffer", "builtin", "chronic", "exec", "coproc"), _wraps()),
}


def programs(text: str) -> tuple[tuple[Program, ...], bool]:
    """Return the programs that ``text`` runs, in order, and whether all of it could be read."""
    script = parse_shell(text)
    found: list[Program] = []
    todo = [(command, 0) for command in reversed(script.commands)]
    whole = not script.broken
    while todo and len(found) < MOST_COMMANDS:
        command, depth = todo.pop()
        command = _unwrapped(command)
        if not command.words:
            continue
        text_inside = _inner_text(command)
        if text_inside is None:
            found.append(_program(command))
            inside = tuple(_executed(command))
        else:
            script = parse_shell(text_inside)
            whole = whole and not script.broken
            inside = tuple(
                replace(each, repeated=each.repeated or command.repeated) for each in script.commands
            )
        if depth < _DEEPEST:
            todo += [(each, depth + 1) for each in reversed(inside)]
        elif inside:
            whole = False
    return tuple(found), whole and not todo


def _program(command: Command) -> Program:
    path, several = command.words[0].text, any(word.several for word in command.words[1:])
    return Program(basename(path), path, command.texts[1:], several or command.repeated, command.given)


def _inner_text(command: Command) -> str | None:
    """Return the text that a command has a shell run, None where it is no shell, or one that runs a file."""
    name, arguments = basename(command.words[0].text), command.texts[1:]
    if name == "eval":
        return " ".join(arguments)
    return _shell_text(arguments, command.given) if name in _SHELLS else None


def basename(path: str) -> str:
    """Return a program's name without its folder and a Windows suffix."""
    return _SUFFIX.sub("", path.rpartition("/")[2])


def _unwrapped(command: Command) -> Command:
    """Take off wrappers until none is left."""
    for _ in range(_DEEPEST):
        while command.words and _ASSIGNMENT.match(command.words[0].text):
            command = command.after(1)
        wrapper = _WRAPPERS.get(basename(command.words[0].text)) if command.words else None
        inner = wrapper and _without(command, wrapper)
        if not inner:
            return command
        command = inner
    return command


def _without(command: Command, wrapper: _Wrapper) -> Command | None:
    """Return what ``wrapper`` runs, None where it runs nothing."""
    at = 1
    if wrapper.after:
        at = _past_options(command.texts, at, wrapper.valued)
        if at >= len(command.words) or command.texts[at] not in wrapper.after:
            return None
        at += 1
    own = at
    at = _past_options(command.texts, at, wrapper.valued) + wrapper.skip
    if not wrapper.asks.isdisjoint(command.texts[own:at]):
        return None
    while at < len(command.words) and _ASSIGNMENT.match(command.texts[at]):
        at += 1
    if at >= len(command.words):
        return None
    return replace(command.after(at), repeated=command.repeated or wrapper.repeats)


def _past_options(texts: tuple[str, ...], at: int, valued: Collection[str]) -> int:
    while at < len(texts) and (texts[at].startswith("-") or _ASSIGNMENT.match(texts[at])):
        if texts[at] == "--":
            return at + 1
        at += 2 if texts[at] in valued else 1
    return at


def _shell_text(arguments: tuple[str, ...], given: str) -> str | None:
    """Return what a shell is to run: its ``-c`` text or the document that it is handed; None for a file."""
    for at, word in enumerate(arguments):
        if re.fullmatch(r"-[a-zA-Z]*c", word) or word == "--command":
            return arguments[at + 1] if at + 1 < len(arguments) else None
        if not word.startswith("-"):
            break
    files = [word for word in arguments if not word.startswith("-")]
    return given if given and not files else None


def _executed(command: Command) -> Iterator[Command]:
    """Yield the commands of ``find -exec … ;`` and of ``fd -x …``: they run for every file that is found."""
    if basename(command.words[0].text) not in _FINDERS:
        return
    part: list[Word] | None = None
    for word in command.words[1:]:
        if part is None:
            part = [] if word.text in _FOR_EACH else None
        elif word.text in {";", "+"}:
            yield Command(tuple(part), repeated=True)
            part = None
        else:
            part.append(word)
    if part:
        yield Command(tuple(part), repeated=True)
