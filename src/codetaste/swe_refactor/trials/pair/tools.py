"""Tools of the developer: they read the files before the commit, and never anything else (Appendix G)."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from anyio import to_thread

from codetaste.agent.facts import Facts
from codetaste.agent.tool import tool
from codetaste.core.text import did_you_mean, plural, printable
from codetaste.errors import JavaError, ToolError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from codetaste.java.jdt.source_index import IndexedCall, IndexedMethod, SourceIndex
    from codetaste.swe_refactor.answers.edit.git_tree import GitTree

MAX_LINES = 400
"""Lines of a file in one answer."""
_MAX_PATHS = 400
_MAX_CODE_CHARS = 16_000
"""After so many characters of methods only the names of further ones are shown."""
_LINE_ENDS = re.compile(r"\r\n|\r|\n")


@dataclass(frozen=True, slots=True)
class DeveloperContext:
    """What the tools work on.

    Attributes:
        tree: the files before the commit.
        open_index: returns the index of its Java code.
        facts: of the loop; the tools have none.
    """

    tree: GitTree
    open_index: Callable[[], Awaitable[SourceIndex]]
    facts: Facts = field(default_factory=Facts)


@tool
async def project_structure(context: DeveloperContext, folder: str = "") -> str:
    """List the Java files of the project, or of one folder of it.

    Args:
        context: What the tools work on.
        folder: A folder of the project, such as src/main/java; empty for all of it.
    """
    prefix = folder.strip().strip("/")
    prefix = "" if prefix in {"", "."} else f"{prefix}/"
    files = await to_thread.run_sync(lambda: context.tree.java_files)
    found = [path for path in files if path.startswith(prefix)]
    if not found:
        raise ToolError(f"There are no Java files below {printable(folder)}.")
    if len(found) <= _MAX_PATHS:
        return "\n".join(found)
    counts: dict[str, int] = {}
    for path in found:
        inner = path.removeprefix(prefix).rpartition("/")[0]
        counts[inner] = counts.get(inner, 0) + 1
    lines = [f"{prefix}{inner or '.'}: {plural(count, 'Java file')}" for inner, count in counts.items()]
    left_out = f"\n({plural(len(lines) - _MAX_PATHS, 'further folder')} left out)"
    return "\n".join(lines[:_MAX_PATHS]) + (left_out if len(lines) > _MAX_PATHS else "")


@tool
async def read_file(context: DeveloperContext, path: str, start_line: int = 1, end_line: int = 0) -> str:
    """Read lines of a file of the project; at most 400 at a time.

    Args:
        context: What the tools work on.
        path: The file, as the project structure has it.
        start_line: The first line, from 1.
        end_line: The last line; 0 for as many as are possible.
    """
    lines = await _lines_of(context, path.strip())
    first = max(1, start_line)
    if first > len(lines):
        raise ToolError(f"{printable(path)} has {plural(len(lines), 'line')}.")
    last = min(len(lines), end_line if end_line >= first else len(lines), first + MAX_LINES - 1)
    return "\n".join([f"{path}, lines {first} to {last} of {len(lines)}:", *lines[first - 1 : last]])


@tool
async def class_body(context: DeveloperContext, name: str) -> str:
    """Return the whole code of a class, interface, enum or record of the project.

    Args:
        context: What the tools work on.
        name: Its name; the last part is enough where it is clear, such as Shop or Shop.Till.
    """
    index = await _open_index(context)
    found = index.find_types(name)
    if not found:
        raise ToolError(_no_class(index, name))
    exact = [each for each in found if each.name == name.strip()] or found
    if len(exact) > 1:
        places = "; ".join(f"{each.name} in {each.path}" for each in exact[:20])
        raise ToolError(f"Several classes have this name, give all of it: {places}.")
    return await _code(context, exact[0].path, exact[0].start_line, exact[0].end_line)


@tool
async def callers(context: DeveloperContext, class_name: str, method: str) -> str:
    """Return the methods of the project that call a method, with their code.

    Args:
        context: What the tools work on.
        class_name: The class of the method that is called.
        method: The name of this method, without parameters.
    """
    index = await _open_index(context)
    parts = []
    for number in _find_methods(index, class_name, method):
        calls = list(index.calls_of(number))
        head = f"{index.methods[number].label} has {plural(len(calls), 'call')}."
        parts.append(head + await _callers(context, index, calls))
    return "\n\n".join(parts)


@tool
async def callees(context: DeveloperContext, class_name: str, method: str) -> str:
    """Return the methods that a method calls, with the code of those that the project has.

    Args:
        context: What the tools work on.
        class_name: The class of the method.
        method: Its name, without parameters.
    """
    index = await _open_index(context)
    parts = []
    for number in _find_methods(index, class_name, method):
        calls = list(index.calls_in(number))
        own = dict.fromkeys(call.callee for call in calls if call.callee >= 0)
        others = dict.fromkeys(
            f"{call.owner or '(unknown)'}#{call.name}" for call in calls if call.callee < 0
        )
        head = f"{index.methods[number].label} calls {plural(len(own), 'method')} of the project"
        head += f", and of libraries {', '.join(others)}." if others else "."
        parts.append(head + await _methods(context, [index.methods[each] for each in own]))
    return "\n\n".join(parts)


DEVELOPER_TOOLS = (project_structure, read_file, class_body, callers, callees)


async def _callers(context: DeveloperContext, index: SourceIndex, calls: Iterable[IndexedCall]) -> str:
    calls = list(calls)
    others = dict.fromkeys(
        f"\n{call.member} in {call.path}, line {call.line}" for call in calls if call.caller < 0
    )
    methods = [
        index.methods[each] for each in dict.fromkeys(call.caller for call in calls if call.caller >= 0)
    ]
    return "".join(others) + await _methods(context, methods)


async def _methods(context: DeveloperContext, methods: Iterable[IndexedMethod]) -> str:
    """Return the methods with their code; after too much of it only their names."""
    text, chars = "", 0
    for each in methods:
        text += f"\n\n{each.label} in {each.path}, lines {each.start_line} to {each.end_line}"
        if chars < _MAX_CODE_CHARS:
            code = await _code(context, each.path, each.start_line, each.end_line)
            chars += len(code)
            text += f":\n{code}"
    return text


def _find_methods(index: SourceIndex, class_name: str, method: str) -> list[int]:
    name = method.partition("(")[0].strip().rpartition("#")[2]
    if found := index.find_methods(class_name, name):
        return found
    types = {each.name for each in index.find_types(class_name)}
    if not types:
        raise ToolError(_no_class(index, class_name))
    names = sorted({each.name for each in index.methods if each.owner in types})
    raise ToolError(f"{printable(class_name)} has no method {printable(name)}{did_you_mean(name, names)}.")


def _no_class(index: SourceIndex, name: str) -> str:
    simple = name.strip().rpartition(".")[2]
    names = sorted({each.name.rpartition(".")[2] for each in index.types})
    return f"The project has no class {printable(name)}{did_you_mean(simple, names)}."


async def _open_index(context: DeveloperContext) -> SourceIndex:
    try:
        return await context.open_index()
    except JavaError as error:
        raise ToolError(f"The code of this project cannot be analysed ({error}); read its files.") from error


async def _code(context: DeveloperContext, path: str, first: int, last: int) -> str:
    return "\n".join((await _lines_of(context, path))[first - 1 : last])


async def _lines_of(context: DeveloperContext, path: str) -> list[str]:
    data = await to_thread.run_sync(context.tree.read, path)
    if data is None:
        raise ToolError(f"The project has no file {printable(path)}; see project_structure.")
    lines = _LINE_ENDS.split(data.decode("utf-8", "replace"))
    return lines[:-1] if len(lines) > 1 and not lines[-1] else lines
