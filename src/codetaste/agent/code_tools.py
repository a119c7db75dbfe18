"""Tools of our own coding agent: run commands in a sandbox, edit a file there exactly, finish.

``bash`` and ``edit`` change the sandbox, so their recorded calls are repeated when a loop is resumed in a new
sandbox (``agent/replay.py``).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from codetaste.agent.sandbox_files import encode_utf8, read_file, sandbox_path, write_file
from codetaste.agent.tool import ToolAnswer, tool
from codetaste.errors import ToolError
from codetaste.sandbox.base import CommandLimits

if TYPE_CHECKING:
    from collections.abc import Callable

    from codetaste.agent.facts import Facts
    from codetaste.sandbox.base import Sandbox

MAX_COMMAND_BYTES = 100_000
"""Below the 128 KiB limit of Linux for one argument."""
EXIT_CODE = "exit code"
"""Kind of the facts that record exit codes; a repeated command is compared by them."""
_SHOWN_LINES = 10
_LONE_NEWLINE = re.compile(rb"(?<!\r)\n")
# One stream, so that the model reads the output in the order in which it was written.
_SHELL = 'exec 2>&1; command -v bash >/dev/null && exec bash -c "$0"; exec sh -c "$0"'


@dataclass(frozen=True, slots=True)
class CodeContext:
    """What the tools work on.

    Attributes:
        sandbox: the sandbox of the agent.
        facts: journalled state of the tools.
        note: shows a line of progress text to the user.
        max_command_s: upper limit of a command's timeout, seconds.
        output_bytes: limit of one command's output; beginning and end are returned.
    """

    sandbox: Sandbox
    facts: Facts
    note: Callable[[str], None] = lambda _text: None
    max_command_s: float = 600.0
    output_bytes: int = 24 * 1024


@tool(replay_on_resume=True)
async def bash(context: CodeContext, command: str, timeout_s: float = 120.0) -> str:
    """Run a shell command in the sandbox and return what it prints, standard output and error in one.

    Every command is a new shell that starts in /testbed: variables and the working folder are forgotten
    afterwards, files are kept. There is no terminal and no input. Nothing that a command starts outlives it:
    what must run beside something else belongs into one command. Long output is cut in the middle.

    Args:
        context: What the tools work on.
        command: Any command for bash, pipes and several lines included.
        timeout_s: Seconds after which it is ended; 600 at most.
    """
    raw = encode_utf8(command, "the command")
    if b"\0" in raw or len(raw) > MAX_COMMAND_BYTES:
        raise ToolError(f"a command has at most {MAX_COMMAND_BYTES:,} bytes, and none of them is NUL")
    wall_s = min(max(timeout_s, 1.0), context.max_command_s)
    context.note(f"$ {command}")
    limits = CommandLimits(wall_s=wall_s, output_bytes=context.output_bytes)
    done = await context.sandbox.run(["/bin/sh", "-c", _SHELL, command], limits=limits)
    context.facts.add(EXIT_CODE, done.exit_code)
    output = (done.stdout + done.stderr).decode(errors="replace")
    if done.timed_out:
        ending = f"[ended after {wall_s:g} s]"
    elif done.exit_code:
        ending = f"[exit code {done.exit_code}]"
    else:
        return output or "[no output, exit code 0]"
    return f"{output}{'' if not output or output.endswith(chr(10)) else chr(10)}{ending}"


@tool(replay_on_resume=True)
async def edit(
    context: CodeContext, path: str, old: str, new: str, replace_all: bool = False, create: bool = False
) -> str:
    """Replace a piece of text in a file, or make a new file.

    The old text must be in the file exactly as given, white space and indentation included, and only once:
    give enough of the lines around it. Line endings stay as the file has them.

    Args:
        context: What the tools work on.
        path: The file, below /testbed (where relative paths begin) or /output.
        old: The text that is there now; empty to make a new file.
        new: The text that is to be there instead; empty to delete the old one.
        replace_all: Replace every place where the old text is.
        create: Make a new file that holds the new text, and the folders it needs.
    """
    full_path = sandbox_path(path)
    before, after = encode_utf8(old, "the old text"), encode_utf8(new, "the new text")
    content = await read_file(context.sandbox, full_path)
    if create or not old:
        _check_new(path, old, content, create=create)
        await write_file(context.sandbox, full_path, after)
        context.note(f"made {path}")
        return f"Made {path}."
    if content is None:
        raise ToolError(f"{path}: there is no such file")
    changed, lines = replace_text(content, before, after, every=replace_all)
    await write_file(context.sandbox, full_path, changed)
    context.note(f"edited {path}")
    return f"Edited {path} at {_lines(lines)}."


@tool
async def finish(context: CodeContext, summary: str = "") -> ToolAnswer:
    """End the work. What is in /testbed and /output now is the result.

    Args:
        context: What the tools work on.
        summary: What was done, in a few sentences.
    """
    context.note(f"finished: {summary}" if summary else "finished")
    return ToolAnswer("The work is done.", finish=True)


CODE_TOOLS = (bash, edit, finish)


def replace_text(content: bytes, old: bytes, new: bytes, *, every: bool) -> tuple[bytes, list[int]]:
    r"""Return ``content`` with ``old`` replaced by ``new``, and the lines, from 1, where ``old`` began.

    If all lines of ``content`` end with \r\n, line ends of ``old`` and ``new`` are converted to \r\n.

    Raises:
        ToolError: ``old`` does not occur, or occurs several times and ``every`` is False.
    """
    if b"\r\n" in content and not _LONE_NEWLINE.search(content):
        old, new = (_LONE_NEWLINE.sub(b"\r\n", text) for text in (old, new))
    if old == new:
        raise ToolError("the old and the new text are the same")
    lines: list[int] = []
    at, line, counted = content.find(old), 1, 0
    while at >= 0:
        line, counted = line + content.count(b"\n", counted, at), at
        lines.append(line)
        at = content.find(old, at + len(old))
    if not lines:
        hint = (
            "; it occurs with different white space" if _without_space(old) in _without_space(content) else ""
        )
        raise ToolError(f"the old text is not in the file{hint}: look at the file again")
    if len(lines) > 1 and not every:
        raise ToolError(
            f"the old text is in the file {len(lines)} times ({_lines(lines)}): give more of the text around "
            "the intended place, or set replace_all"
        )
    return content.replace(old, new), lines


def _check_new(path: str, old: str, content: bytes | None, *, create: bool) -> None:
    if old:
        raise ToolError("a new file has no old text: leave it empty, or leave create out")
    if content is not None:
        raise ToolError(f"{path}: the file exists already; give the old text that is to be replaced")
    if not create:
        raise ToolError(f"{path}: there is no such file; set create to make it")


def _without_space(text: bytes) -> bytes:
    return b"".join(text.split())


def _lines(lines: list[int]) -> str:
    shown = ", ".join(map(str, lines[:_SHOWN_LINES]))
    more = len(lines) - _SHOWN_LINES
    return f"line{'s' if len(lines) > 1 else ''} {shown}{f' and {more} more' if more > 0 else ''}"
