"""Which programs replace text in bulk: stream editors in place, and programs made to rewrite code.

``sed -i`` and the like (CodeTaste §4.2, §4.4) are one class; codemod tools, and scripts that are written on
the spot to rewrite files, are another: what they replace may be decided by syntax or by hand.
"""

from __future__ import annotations

import re
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from codetaste.evaluation.programs import Program


class Bulk(Enum):
    """How a program replaces in bulk."""

    ONE = "in place, in one file as far as its words tell"
    SEVERAL = "in place, in several files"
    SCRIPTED = "by a codemod tool or a script"


_IN_PLACE = {
    "sed": re.compile(r"-[nrEszu]*i.*|--in-place(?:=.*)?"),
    "perl": re.compile(r"-[aclnpswWtTxX0-7]*i.*"),
    "ruby": re.compile(r"-[alnpsw0-7]*i.*"),
    "awk": re.compile(r"-i|--include=inplace|-iinplace"),
}
_ALIASES = {"gsed": "sed", "ssed": "sed", "gawk": "awk"}
_VALUED = {
    "sed": frozenset(("-e", "-f", "-l", "--expression", "--file")),
    "perl": frozenset(("-e", "-E", "-I")),
    "ruby": frozenset(("-e", "-I", "-r")),
    "awk": frozenset(("-f", "-v", "-F")),
}
_ALWAYS = frozenset(("rpl", "fastmod", "ambr", "sd"))
"""Replace in the files that they are given without being told so."""
_SHOWS = frozenset(("-d", "--dry", "--dry-run", "--check", "--diff"))
_PREVIEWS = frozenset(("-p", "--preview", "-n"))
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
"""Programs that rewrite code; of each set, a word must stand there."""
_LINES, _LINE, _MAKERS = 5000, 1000, 20
"""What is looked at of a script: lines, characters of a line, functions that write."""
_INTERPRETERS = re.compile(r"(?:python|pypy|node|ruby|php|perl|tsx|deno|bun)[\d.]*")
_WRITES = re.compile(
    r"write_text\(|write_bytes\(|(?<!stdout)(?<!stderr)\.write\(|writeFile(?:Sync)?\(|File\.write|file_put_contents\("
)
_LOOP = re.compile(r"\b(?:for|while|foreach)\b|\.(?:forEach|each|map)\b")
_MAKES = re.compile(r"(?:\bdef|\bfunction|\bsub)\s+(\w+)|\b(?:const|let)\s+(\w+)\s*=.*=>")


def bulk_edit(program: Program) -> Bulk | None:
    """Say how a program replaces in bulk, None if it does not."""
    name = _ALIASES.get(program.name, program.name)
    if name in _IN_PLACE and _in_place(name, program.arguments):
        return Bulk.SEVERAL if program.several or _files(name, program.arguments) > 1 else Bulk.ONE
    if name in _ALWAYS and (_SHOWS | _PREVIEWS).isdisjoint(program.arguments):
        return Bulk.SEVERAL
    if name in _CODEMODS:
        told = all(not words.isdisjoint(program.arguments) for words in _CODEMODS[name])
        return Bulk.SCRIPTED if told and _SHOWS.isdisjoint(program.arguments) else None
    if _INTERPRETERS.fullmatch(program.name):
        codemod = program.arguments[:2] == ("-m", "libcst.tool") and "codemod" in program.arguments
        return Bulk.SCRIPTED if codemod or rewrites_files(_code(program)) else None
    return None


def rewrites_files(code: str) -> bool:
    """Whether a script writes files in a loop, told by its indentation: Python, JavaScript, Ruby, Perl, PHP.

    A function that writes counts when a loop calls it.
    """
    lines = [line[:_LINE] for line in code.splitlines()[:_LINES] if line.strip()]
    makers: set[str] = set()
    for line, around in _nested(lines):
        if _WRITES.search(line):
            if _LOOP.search(line) or any(_LOOP.search(each) for each in around):
                return True
            made = (match for each in around for match in _MAKES.finditer(each))
            makers |= {match[1] or match[2] for match in made}
    if not makers:
        return False
    called = re.compile(rf"(?<!def )(?<!function )\b(?:{'|'.join(sorted(makers)[:_MAKERS])})\b")
    return any(
        called.search(line) and any(_LOOP.search(each) for each in (line, *around))
        for line, around in _nested(lines)
    )


def _nested(lines: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
    """Yield each line with the lines whose blocks hold it."""
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
        elif word in _VALUED[name]:
            skip = True
        elif _IN_PLACE[name].fullmatch(word):
            return name != "awk" or word != "-i" or arguments[at + 1 : at + 2] == ("inplace",)
    return False


def _files(name: str, arguments: Sequence[str]) -> int:
    """Return how many words are neither options nor the text of a script."""
    words, skip, script = 0, False, False
    for word in arguments:
        if skip:
            skip = False
        elif word.startswith("-"):
            ends_in_script = name != "sed" and re.fullmatch(r"-[\w.]*[eE]", word)
            skip = word in _VALUED[name] or bool(ends_in_script) or (name, word) == ("awk", "-i")
            script = script or word in {"-e", "-f", "--expression", "--file"} or bool(ends_in_script)
            script = script or word.startswith(("--expression=", "--file="))
        elif word:
            words += 1
    return words - (0 if script else 1)


def _code(program: Program) -> str:
    """Return the code that an interpreter is given in its words, or as a document."""
    for flag in ("-c", "-e", "-r", "--eval", "eval"):
        if flag in program.arguments[:-1]:
            return program.arguments[program.arguments.index(flag) + 1]
    files = [word for word in program.arguments if not word.startswith("-")]
    return program.given if not files else ""
