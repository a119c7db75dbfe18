"""Changes of a method beside the code that is extracted from it, or inlined into it, are found."""

from __future__ import annotations

import pytest

from codetaste.refactorings.model import CodeRange
from codetaste.swe_refactor.dataset.instance import RefactoringInstance
from codetaste.swe_refactor.enrich.places import RefactoringPlaces
from codetaste.swe_refactor.score.changes.rest_of_method import changed_rests
from support.swe_refactor.documents import document

PATH = "src/A.java"
LOOP = """\
    for (String name : names) {
      if (name.length() > limit) {
        out.append(name, 0, limit);
      } else {
        out.append(name);
      }
      out.append(',');
    }
"""
CALL = "    list(names, limit, out);\n"
REPORT = f"""\
  String report(List<String> names, int limit) {{
    StringBuilder out = new StringBuilder();
    out.append("names: ");
{LOOP}    out.append(" in all ").append(names.size());
    log(out.length());
    return out.toString();
  }}
"""
LIST = f"\n  private void list(List<String> names, int limit, StringBuilder out) {{\n{LOOP}  }}\n"
LONG = f"class A {{\n{REPORT}}}\n"
SHORT = f"class A {{\n{REPORT.replace(LOOP, CALL)}{LIST}}}\n"


def place(text: str, head: str, name: str) -> CodeRange:
    lines = text.splitlines()
    start = next(number for number, line in enumerate(lines, 1) if head in line)
    end = next(number for number, line in enumerate(lines, 1) if number > start and line == "  }")
    return CodeRange(PATH, start, end, 1, 1, "METHOD_DECLARATION", "", f"x {name}() : String")


def faults(kind: str, after: str, developers: str | None = None, *, before: str | None = None) -> list[str]:
    before = before or (LONG if kind == "Extract Method" else SHORT)
    other = after if kind == "Extract Method" else before
    moved = place(other, "void list(", "list")
    places = RefactoringPlaces(
        place(before, " report(", "report"),
        place(after, " report(", "report"),
        extracted=moved if kind == "Extract Method" else None,
        inlined=moved if kind == "Inline Method" else None,
    )
    right = developers or (REPORT.replace(LOOP, CALL) + LIST if kind == "Extract Method" else REPORT)
    instance = RefactoringInstance.from_document(document(type=kind, sourceCodeAfterRefactoring=right))
    return changed_rests(instance, {PATH: before.encode()}, {PATH: after.encode()}, [places])


EXTRACT, INLINE = "Extract Method", "Inline Method"
RIGHT = {EXTRACT: SHORT, INLINE: LONG}
CHANGES = {
    "text": ('" in all "', '" of all "'),
    "dropped": ("    log(out.length());\n", ""),
    "added": ("    log(out.length());\n", "    log(out.length());\n    log(7);\n"),
    "condition": ("    log(out.length());\n", "    if (limit > 3) {\n      log(out.length());\n    }\n"),
    "return": ("return out.toString();", "return out.toString().trim();"),
    "modifier": ("  String report(", "  public String report("),
    "exception": ("int limit) {\n    StringBuilder", "int limit) throws Error {\n    StringBuilder"),
    "order": ('    out.append("names: ");\nCODE', 'CODE    out.append("names: ");\n'),
    "dropped from the loop": ("      out.append(',');\n", ""),
}


@pytest.mark.parametrize("kind", RIGHT)
@pytest.mark.parametrize("name", CHANGES)
def test_change_beside_the_refactoring_is_found(kind: str, name: str) -> None:
    assert faults(kind, RIGHT[kind]) == []
    code = CALL if kind == EXTRACT else LOOP
    old, new = (each.replace("CODE", code) for each in CHANGES[name])
    after = RIGHT[kind].replace(old, new)
    assert after != RIGHT[kind]
    found = faults(kind, after)
    assert len(found) == 1, found
    assert found[0].startswith(f"{PATH}: ")


@pytest.mark.parametrize("name", ["text", "condition", "return", "modifier", "exception", "added"])
def test_what_the_developers_changed_may_change(name: str) -> None:
    old, new = CHANGES[name]
    after = SHORT.replace(old, new)
    developers = after.removeprefix("class A {\n").removesuffix("}\n")
    assert faults(EXTRACT, after, developers) == []


def test_developers_change_is_made_as_a_whole_or_not_at_all() -> None:
    more = "    check(names);\n    check(limit);\n    list("
    after = SHORT.replace("    list(", more, 1)
    developers = after.removeprefix("class A {\n").removesuffix("}\n")
    assert faults(EXTRACT, after, developers) == []
    assert faults(EXTRACT, SHORT, developers) == []
    (line,) = faults(EXTRACT, after.replace("    check(limit);\n", ""), developers)
    assert "check ( limit )" in line


def test_statement_that_calls_an_overload_is_a_statement() -> None:
    loop = LOOP.replace("out.append(',');", "list(names.size());")
    text = LONG.replace(LOOP, loop)
    after = SHORT.replace(LOOP, loop)
    developers = after.removeprefix("class A {\n").removesuffix("}\n")
    assert faults(EXTRACT, after, developers, before=text) == []
    less = after.replace("      list(names.size());\n", "")
    assert len(faults(EXTRACT, less, developers, before=text)) == 1


CALLS = {
    "added to the value": ("    int all = list(names, limit, out) + 1;\n", False),
    "another condition": ("    if (list(names, limit, out) != LIMIT) {\n    }\n", False),
    "a plain call": ("    int all = list(names, limit, out);\n", True),
    "a plain condition": ("    if (!list(names, limit, out)) {\n      return null;\n    }\n", True),
}


@pytest.mark.parametrize("name", CALLS)
def test_text_beside_the_call_is_that_before_or_the_developers(name: str) -> None:
    call, is_right = CALLS[name]
    after = SHORT.replace(CALL, call)
    found = faults(EXTRACT, after)
    assert bool(found) is not is_right, found
    developers = after.removeprefix("class A {\n").removesuffix("}\n")
    assert faults(EXTRACT, after, developers) == []


def test_text_beside_an_inlined_call_stays() -> None:
    before = SHORT.replace(CALL, "    limit = list(names) + 1;\n")
    after = LONG.replace(LOOP, "    limit = names.size() + 1;\n")
    developers = after.removeprefix("class A {\n").removesuffix("}\n")
    assert faults(INLINE, after, developers, before=before) == []
    assert len(faults(INLINE, after.replace("size() + 1", "size() - 1"), developers, before=before)) == 1


def test_other_names_in_the_extracted_code_are_no_change_of_the_rest() -> None:
    renamed = LIST.replace("out", "into").replace("limit", "most").replace(" list(", " listAll(")
    after = f"class A {{\n{REPORT.replace(LOOP, CALL.replace('list(', 'listAll('))}{renamed}}}\n"
    places = RefactoringPlaces(
        place(LONG, " report(", "report"),
        place(after, " report(", "report"),
        extracted=place(after, "void listAll(", "listAll"),
    )
    instance = RefactoringInstance.from_document(
        document(sourceCodeAfterRefactoring=REPORT.replace(LOOP, CALL) + LIST)
    )
    assert changed_rests(instance, {PATH: LONG.encode()}, {PATH: after.encode()}, [places]) == []


def test_parameter_of_an_inlined_method_may_become_a_variable() -> None:
    after = LONG.replace("    for (", "    int most = limit;\n    for (").replace("> limit", "> most")
    assert faults(INLINE, after) == []
