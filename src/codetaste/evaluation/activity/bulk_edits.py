"""Classify programs that edit in bulk: in-place stream editors, codemod tools and inline scripts.

``sed -i`` and the like (CodeTaste §4.2, §4.4) are one class; codemod tools and inline scripts that rewrite
files are another, because they may decide what to replace by syntax or by hand-written logic.
"""

from __future__ import annotations

import re
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from codetaste.evaluation.activity.shell_programs import ShellProgram


class BulkEditKind(Enum):
    """How a program edits in bulk."""

    ONE_FILE = "in place, in one file as far as its arguments show"
    SEVERAL_FILES = "in place, in several files"
    SCRIPT = "by a codemod tool or a script"


_IN_PLACE = {
    "sed": re.compile(r"-[nrEszu]*i.*|--in-place(?:=.*)?"),
    "perl": re.compile(r"-[aclnpswWtTxX0-7]*i.*"),
    "ruby": re.compile(r"-[alnpsw0-7]*i.*"),
    "awk": re.compile(r"-i|--include=inplace|-iinplace"),
}
_ALIASES = {"gsed": "sed", "ssed": "sed", "gawk": "awk"}
_VALUE_OPTIONS = {
    "sed": frozenset(("-e", "-f", "-l", "--expression", "--file")),
    "perl": frozenset(("-e", "-E", "-I")),
    "ruby": frozenset(("-e", "-I", "-r")),
    "awk": frozenset(("-f", "-v", "-F")),
}
_ALWAYS_IN_PLACE = frozenset(("rpl", "fastmod", "ambr", "sd"))
"""Programs that replace in their file arguments without an extra option."""
_DRY_RUN_OPTIONS = frozenset(("-d", "--dry", "--dry-run", "--check", "--diff"))
_PREVIEW_OPTIONS = frozenset(("-p", "--preview", "-n"))
_CODEMODS: Mapping[str, tuple[frozenset[str], ...]] = {
    "ast-grep": (frozenset(("-U", "--update-all", "-i", "--interactive")),),
    "sg": (frozenset(("-U", "--update-all", "-i", "--interactive")),),
    "comby": (frozenset(("-i", "-in-place", "-review")),),
    "gofmt": (frozenset(("-r",)), frozenset(("-w",))),
    "2to3": (frozenset(("-w", "--write")),),
    "spatch": (frozenset(("--in-place", "-in-place")),),
    "semgrep": (frozenset(("--autofix", "-a")),),
    "opengrep": (frozenset(("--autofix", "-a")),),
    "gopls": (frozenset(("rename",)), frozenset(("-w", "-write"))),
    "rector": (frozenset(("process",)),),
    "jscodeshift": (),
    "codemod": (),
    "gorename": (),
    "pyupgrade": (),
}
"""Programs that rewrite code; the arguments must contain at least one word of each set."""
_MAX_LINES, _MAX_LINE_CHARS, _MAX_WRITERS = 5000, 1000, 20
"""How much of a script is analysed: lines, characters per line, functions that write files."""
_INTERPRETERS = re.compile(r"(?:python|pypy|node|ruby|php|perl|tsx|deno|bun)[\d.]*")
_WRITES = re.compile(
    r"write_text\(|write_bytes\(|(?<!stdout)(?<!stderr)\.write\(|writeFile(?:Sync)?\(|File\.write|file_put_contents\("
)
_LOOP = re.compile(r"\b(?:for|while|foreach)\b|\.(?:forEach|each|map)\b")
_DEFINES = re.compile(r"(?:\bdef|\bfunction|\bsub)\s+(\w+)|\b(?:const|let)\s+(\w+)\s*=.*=>")


def bulk_edit_kind(program: ShellProgram) -> BulkEditKind | None:
    """Return how a program edits in bulk, None if it does not."""
    name = _ALIASES.get(program.name, program.name)
    if name in _IN_PLACE and _in_place(name, program.arguments):
        return (
            BulkEditKind.SEVERAL_FILES
            if program.several_files or _files(name, program.arguments) > 1
            else BulkEditKind.ONE_FILE
        )
    if name in _ALWAYS_IN_PLACE and (_DRY_RUN_OPTIONS | _PREVIEW_OPTIONS).isdisjoint(program.arguments):
        return BulkEditKind.SEVERAL_FILES
    if name in _CODEMODS:
        rewrites = all(not words.isdisjoint(program.arguments) for words in _CODEMODS[name])
        return BulkEditKind.SCRIPT if rewrites and _DRY_RUN_OPTIONS.isdisjoint(program.arguments) else None
    if _INTERPRETERS.fullmatch(program.name):
        codemod = program.arguments[:2] == ("-m", "libcst.tool") and "codemod" in program.arguments
        return BulkEditKind.SCRIPT if codemod or rewrites_files(_inline_code(program)) else None
    return None


def rewrites_files(code: str) -> bool:
    """Whether a script writes files in a loop, judged by indentation: Python, JavaScript, Ruby, Perl, PHP.

    A function that writes files counts if it is called in a loop.
    """
    lines = [line[:_MAX_LINE_CHARS] for line in code.splitlines()[:_MAX_LINES] if line.strip()]
    writers: set[str] = set()
    for line, blocks in _with_blocks(lines):
        if _WRITES.search(line):
            if _LOOP.search(line) or any(_LOOP.search(each) for each in blocks):
                return True
            definitions = (match for each in blocks for match in _DEFINES.finditer(each))
            writers |= {match[1] or match[2] for match in definitions}
    if not writers:
        return False
    call = re.compile(rf"(?<!def )(?<!function )\b(?:{'|'.join(sorted(writers)[:_MAX_WRITERS])})\b")
    return any(
        call.search(line) and any(_LOOP.search(each) for each in (line, *blocks))
        for line, blocks in _with_blocks(lines)
    )


def _with_blocks(lines: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
    """Yield each line with the opening lines of the blocks that contain it."""
    open_blocks: list[tuple[int, str]] = []
    for line in lines:
        depth = len(line) - len(line.lstrip())
        while open_blocks and open_blocks[-1][0] >= depth:
            open_blocks.pop()
        yield line, [each for _, each in open_blocks]
        open_blocks.append((depth, line))


def _in_place(name: str, arguments: Sequence[str]) -> bool:
    skip = False
    for at, word in enumerate(arguments):
        if skip or word == "--":
            if word == "--":
                return False
            skip = False
        elif word in _VALUE_OPTIONS[name]:
            skip = True
        elif _IN_PLACE[name].fullmatch(word):
            return name != "awk" or word != "-i" or arguments[at + 1 : at + 2] == ("inplace",)
    return False


def _files(name: str, arguments: Sequence[str]) -> int:
    """Return the number of words that are neither options nor the text of a script."""
    words, skip, script = 0, False, False
    for word in arguments:
        if skip:
            skip = False
        elif word.startswith("-"):
            ends_in_script = name != "sed" and re.fullmatch(r"-[\w.]*[eE]", word)
            skip = word in _VALUE_OPTIONS[name] or bool(ends_in_script) or (name, word) == ("awk", "-i")
            script = script or word in {"-e", "-f", "--expression", "--file"} or bool(ends_in_script)
            script = script or word.startswith(("--expression=", "--file="))
        elif word:
            words += 1
    return words - (0 if script else 1)


def _inline_code(program: ShellProgram) -> str:
    """Return the code that an interpreter gets in its arguments or on its standard input."""
    for flag in ("-c", "-e", "-r", "--eval", "eval"):
        if flag in program.arguments[:-1]:
            return program.arguments[program.arguments.index(flag) + 1]
    files = [word for word in program.arguments if not word.startswith("-")]
    return program.stdin if not files else ""
