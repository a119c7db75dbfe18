"""The tests that a text declares, by language: their names, lines, and whether they have anything to do.

It is no parser. Tests that a program makes when it runs (tables, generated cases) have no name here; a table
counts as the one test around it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from codetaste.evaluation.evasion.lexical import without_regions
from codetaste.evaluation.test_runs.cheating.changes import extension_of, is_test_path
from codetaste.evaluation.test_runs.cheating.patterns.line_pattern import (
    GO,
    JVM,
    NATIVE,
    PHP,
    PYTHON,
    RUBY,
    RUST,
    SCRIPT,
    SHARP,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_TESTS = 20_000
"""Tests of one file that are read."""
_BODY_CHARS = 600
"""A longer body is not empty."""
_SIGNATURE_CHARS = 400
"""How far after its mark (an annotation) the name of a test is searched."""
_TITLE = r"(?:\"(?P<double>[^\"\\\n]{1,300})\"|'(?P<single>[^'\\\n]{1,300})'|`(?P<back>[^`\\\n]{1,300})`)"
_METHOD_NAME = re.compile(r"(?P<name>`[^`\n]+`|\w+)\s*\(")
_FUNCTION_NAME = re.compile(r"\bfn\s+(?P<name>\w+)")
_ARGUMENTS = re.compile(r"\s*\([^()]*(?:\([^()]*\)[^()]*)*\)")
_ANNOTATION = re.compile(r"@[\w.]+(?:\s*\([^()]*(?:\([^()]*\)[^()]*)*\))?|\[[^\[\]\n]*\]")


class _Form(NamedTuple):
    """A way to declare a test: by a line with its name, or by a mark before its name."""

    languages: frozenset[str]
    expression: re.Pattern[str]
    name_after: re.Pattern[str] | None = None


def _form(languages: frozenset[str], expression: str, name_after: re.Pattern[str] | None = None) -> _Form:
    return _Form(languages, re.compile(expression, re.MULTILINE), name_after)


_FORMS = (
    _form(PYTHON, r"^[ \t]*(?:async[ \t]+)?def[ \t]+(?P<name>test\w*)[ \t]*\("),
    _form(
        SCRIPT,
        rf"(?<![.\w$])(?:x?it|x?test|specify|Deno\.test|fit)(?:\.\w+)*(?:\([^()\n]*\))?\s*\(\s*{_TITLE}",
    ),
    _form(GO, r"^func (?:\([^)\n]*\) )?(?P<name>(?:Test|Example|Fuzz)\w*)\("),
    _form(
        JVM,
        r"@(?:\w+\.)*(?:Test|ParameterizedTest|RepeatedTest|TestFactory|TestTemplate|Property)\b",
        _METHOD_NAME,
    ),
    _form(JVM, r"(?<![.\w])(?:test|it|should)\(\s*\"(?P<name>[^\"\n]{1,300})\"\)\s*\{"),
    _form(RUST, r"#\[\s*(?:\w+::)*(?:test|rstest|quickcheck|wasm_bindgen_test)\b[^\]\n]*\]", _FUNCTION_NAME),
    _form(SHARP, r"\[(?:Fact|Theory|Test|TestMethod|DataTestMethod)\b[^\[\]\n]*\]", _METHOD_NAME),
    _form(RUBY, rf"^[ \t]*(?:x?it|specify|test|scenario|example)\s*\(?\s*{_TITLE}"),
    _form(RUBY, r"^[ \t]*def (?P<name>test_\w+)"),
    _form(PHP, r"\bfunction (?P<name>test\w+)\s*\("),
    _form(PHP, rf"^[ \t]*(?:it|test)\(\s*{_TITLE}"),
    _form(NATIVE, r"^[ \t]*(?:TYPED_)?TEST(?:_F|_P|_CASE|_CASE_METHOD)?\s*\((?P<name>[^()\n]{1,300})\)"),
)
_NOTHING = re.compile(
    r"\s*(?:pass|\.\.\.|return(?: (?:None|nil|true|undefined))?|assert (?:True|1)"
    r"|(?:self\.)?assert(?:True|_)?\((?:True|true)\)|assert!\(true\)|Assert\.(?:IsTrue|True)\(true\)"
    r"|(?:assert|expect)\((?:true|1)\)(?:\.(?:toBe|to\.equal|toEqual)\(true\)|\.toBeTruthy\(\))?"
    r"|t\.Log\([^()]*\)|_ = t)?;?\s*"
)
_SIGNATURE_END = re.compile(r"\)[ \t]*(?:->[^:\n]*)?:[ \t]*([^\n]*)$")
_DOCSTRING = re.compile(
    r"[rRuU]?(?:\"\"\"(?:[^\"]|\"(?!\"\"))*+\"\"\"|\"[^\"\n]*+\"(?=\n|$)"
    r"|'''(?:[^']|'(?!''))*+'''|'[^'\n]*+'(?=\n|$))"
)
_BRACES = re.compile(r"[^;{}]{0,200}\{([^{}]{0,600})\}")


@dataclass(frozen=True, slots=True)
class DeclaredTest:
    """A test in a text: its name, its line from 1, and whether its body does nothing."""

    name: str
    line: int
    is_empty: bool = False


def find_declared_tests(content: bytes, path: str) -> list[DeclaredTest]:
    """Return the tests that ``content``, the file ``path``, declares; at most 20,000 of a form.

    Only files of the tests have any, except in Rust.
    """
    ending = extension_of(path)
    forms = [form for form in _FORMS if ending in form.languages]
    if not forms or not (path.endswith("_test.go") if ending in GO else ending in RUST or is_test_path(path)):
        return []
    text = without_regions(content, path, strings=False).decode("utf-8", "replace")
    return [test for form in forms for test in _declared(text, form)]


def _declared(text: str, form: _Form) -> Iterator[DeclaredTest]:
    line, at = 1, 0
    for count, match in enumerate(form.expression.finditer(text)):
        if count >= MAX_TESTS:
            return
        line, at = line + text.count("\n", at, match.start()), match.start()
        if form.name_after is None:
            name = next(filter(None, match.groupdict().values()), "")
            start = match.end() - match[0].endswith("{")
            rest = text[start : start + 2 * _BODY_CHARS]
        else:
            signature = text[match.end() : match.end() + _SIGNATURE_CHARS]
            arguments = _ARGUMENTS.match(signature)
            signature = _ANNOTATION.sub(" ", signature[arguments.end() if arguments else 0 :])
            found = form.name_after.search(signature)
            if found is None:
                continue
            name, rest = found["name"], signature[found.end() :]
        if form.languages is PYTHON:
            body = _indented_body(text[match.start() : match.start() + _BODY_CHARS])
        else:
            braces = _BRACES.match(rest)
            body = braces and braces[1]
        yield DeclaredTest(name.strip(), line, is_empty=body is not None and bool(_NOTHING.fullmatch(body)))


def _indented_body(text: str) -> str | None:
    """Return the body of the Python function at the start of ``text``, without its docstring.

    None if it has no end in ``text``.
    """
    indent = len(text) - len(text.lstrip())
    lines = text.split("\n")
    ends = ((at, end) for at, line in enumerate(lines) if (end := _SIGNATURE_END.search(line)))
    start, end = next(ends, (0, None))
    if end is None:
        return None
    body = [end[1]]
    for line in lines[start + 1 :]:
        if line.strip() and len(line) - len(line.lstrip()) <= indent:
            break
        body.append(line)
    else:
        if len(text) == _BODY_CHARS:
            return None
    found = "\n".join(body).strip()
    docstring = _DOCSTRING.match(found)
    return found[docstring.end() :] if docstring else found
