"""Recognise code that can never run: it follows a ``return``, or a condition that is never true.

Blocks are recognised by their indentation, as formatters write it, in the same way for all languages. Code
that is indented otherwise may be reported as reachable.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

_FALSE = rb"(?:False|false|0|None|null|nil|NULL|undefined|0\.0|not\s+True|not\s+1|!\s*true|!\s*1)"
_GOES_ON = rb"\s*(?:\|\||or\b|[=!<>.?+*/%^-])"
"""What makes a condition of more than a constant."""
_NEVER = re.compile(
    rb"(?:\}\s*)?(?:(?:else\s+)?if|elif|while|for)(?:\s*\(\s*%b\s*\)(?!%b)|\s*%b\s*(?::|\{|$)"
    rb"|\s*(?:\(\s*)?%b\s*(?:&&|and\b)(?!.*(?:\|\||\bor\b|\?))(?=.*[:{)]$))"
    % (_FALSE, _GOES_ON, _FALSE, _FALSE)
)
_LITERAL_CONDITION = re.compile(
    rb"(?:\}\s*)?(?:(?:else\s+)?if|elif)\s*(?:\(\s*\)\s*(?:\{|:|$)|:$)"
    rb"|(?:if|elif|while)\s*(?:\[\s*\]|\{\s*\}|\(\s*\))\s*:$"
)
"""A literal alone, of which spaces are left (one that is not empty makes no sense there), or an empty one."""
_COMPARISON = re.compile(
    rb"(?:\}\s*)?(?:(?:else\s+)?if|elif|while)\s*(?:\(\s*)?([0-9]+)\s*===?\s*([0-9]+)\s*(?:\)\s*)?(?:[{:]|$)"
)
_ALWAYS = re.compile(rb"if\s*(?:\(\s*)?(?:True|true|1)\s*(?:\)|:|\{)")
_ENDS_BLOCK = re.compile(
    rb"(?:return|raise|throw|panic|continue|break|goto|os\.Exit|sys\.exit|process\.exit)\b(?!\s*[:=])"
)
_ELSE = re.compile(rb"(?:\}\s*)?else\b")
_BRANCH = re.compile(rb"(?:\}\s*)?(?:case|default|elif|except|finally|catch)\b|[A-Za-z_]\w*\s*:(?!=)")
"""A line that other code can jump to: a branch, or a label."""
_CONTINUES = re.compile(rb"[])}.?:&|+*,]")
"""A line that goes on with the statement above it."""
_HOISTED = re.compile(
    rb"(?:export\s+(?:default\s+)?)?(?:async\s+)?(?:function|class)\b"
    rb"|(?:pub(?:\([^)]*\))?\s+)?(?:(?:const|async|unsafe|extern)\s+)*+(?:fn|struct|enum|impl|trait|mod|use)\b"
)
"""A declaration that JavaScript or Rust makes before the block runs."""
_BRACKETS = re.compile(rb"\([^()]*\)|\[[^][]*\]|\{[^{}]*\}")
_MAX_NESTED = 4
_MAX_DIGITS = 20
_MODIFIER = re.compile(rb"\S\s+(?:if|unless)\b(?!.*\belse\b)")
"""The condition of a whole statement, as in Ruby and Perl."""
_OPENING, _CLOSING = (b"(", b"[", b"{"), (b")", b"]", b"}")
_BEFORE_ON_LINE = re.compile(
    rb"(?:^|[{;:])\s*(?:return|raise|throw|break|continue)\b[^;{}]*;\s*$"
    rb"|(?:^|[=(,;{&|]|\breturn\b)\s*" + _FALSE + rb"\s*(?:&&|\band\b)"
    rb"(?:(?!\|\||\bor\b)[^;?(),])*+(?:\((?:(?!\|\||\bor\b)[^;?)])*+)?$"
)
_NEVER_COMPILED = frozenset({(b"", b"#if0"), (b"", b"#iffalse"), (b"#else", b"#if1"), (b"#else", b"#iftrue")})
"""The branch of a condition of the C preprocessor, and the condition."""
_TAB_COLUMNS = 8
_MAX_BEFORE_BYTES = 1000
_MAX_LINES_ABOVE = 5000


def is_unreachable(lines: Sequence[bytes], line: int, column: int = 1) -> bool:
    """Whether the code at ``line`` and ``column`` (from 1) can never run.

    ``lines`` are those of the file, with spaces in the place of literals and comments.
    """
    if not 0 < line <= len(lines):
        return False
    here, above = lines[line - 1], lines[max(line - 1 - _MAX_LINES_ABOVE, 0) : line - 1]
    before = here[: max(column - 1, 0)][-_MAX_BEFORE_BYTES:]
    on_line = _BEFORE_ON_LINE.search(before) or _is_never_true(before.strip())
    return bool(on_line) or _is_in_dead_block(here, above) or _is_in_if_0(above)


def _is_in_dead_block(here: bytes, above: Sequence[bytes]) -> bool:
    """Go up line by line: past lines beside ``own``, which begins the statement, and out of each block."""
    depth, own, blocked = _indent(here), here.strip(), False
    open_brackets = 0
    for line in reversed(above):
        text, indent = line.strip(), _indent(line)
        open_brackets += sum(map(text.count, _OPENING)) - sum(map(text.count, _CLOSING))
        if not text or indent > depth:
            continue
        if indent < depth:
            if _is_never_true(text):
                return True
            depth, own, blocked, open_brackets = indent, text, False, 0
        elif _ELSE.match(own):
            if _ALWAYS.match(text):
                return True
            own = text if text.startswith(b"if") else own
        elif _CONTINUES.match(own) or (_ENDS_BLOCK.match(text) and open_brackets > 0):
            own, open_brackets = text, 0
        elif _BRANCH.match(own) or _BRANCH.match(text):
            blocked = True
        elif not blocked and _ends_block(text) and not _HOISTED.match(own):
            return True
    return False


def _is_never_true(text: bytes) -> bool:
    """Whether ``text`` is a condition that is never true."""
    compared = _COMPARISON.match(text)
    unequal = compared and int(compared[1][:_MAX_DIGITS]) != int(compared[2][:_MAX_DIGITS])
    return bool(_NEVER.match(text) or _LITERAL_CONDITION.match(text) or unequal)


def _ends_block(statement: bytes) -> bool:
    """Whether what follows ``statement`` never runs; a condition at its end makes it run."""
    if not _ENDS_BLOCK.match(statement):
        return False
    statement = statement[:_MAX_BEFORE_BYTES]
    for _ in range(_MAX_NESTED):
        statement = _BRACKETS.sub(b"x", statement)
    return not _MODIFIER.search(statement)


def _is_in_if_0(above: Sequence[bytes]) -> bool:
    """Whether the C preprocessor leaves the line below ``above`` out."""
    open_blocks, branch = 0, b""
    for line in reversed(above):
        text = b"".join(line.split())
        if text.startswith(b"#endif"):
            open_blocks += 1
        elif text.startswith(b"#if"):
            if open_blocks == 0:
                if (branch, text) in _NEVER_COMPILED:
                    return True
                branch = b""
            open_blocks = max(open_blocks - 1, 0)
        elif open_blocks == 0 and text.startswith((b"#else", b"#elif")):
            branch = branch or text[:5]
    return False


def _indent(line: bytes) -> int:
    expanded = line.expandtabs(_TAB_COLUMNS)
    return len(expanded) - len(expanded.lstrip())
