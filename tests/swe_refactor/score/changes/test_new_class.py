"""A new class of a move has what the moved method needs; more of it is named."""

from __future__ import annotations

import pytest

from codetaste.refactorings.model import CodeRange
from codetaste.swe_refactor.dataset.instance import RefactoringInstance
from codetaste.swe_refactor.enrich.places import RefactoringPlaces
from codetaste.swe_refactor.score.changes.extra_changes import find_extra_changes
from support.swe_refactor.documents import document

OLD, NEW = "src/p/Cart.java", "src/p/Labels.java"
LABEL = "  static String label(String name) {\n    return MARK + name;\n  }\n"
CART = """\
package p;

class Cart {
  static final String MARK = "- ";

  String show() {
    return label("cart");
  }

"""
BEFORE = f"{CART}{LABEL}}}\n"
AFTER = f"{CART.replace('label(', 'Labels.label(')}}}\n"
DEVELOPERS = f"package p;\n\nclass Labels {{\n{LABEL}\n  int developers() {{\n    return 1;\n  }}\n}}\n"


def place(path: str, text: str) -> CodeRange:
    lines = text.splitlines()
    start = next(number for number, line in enumerate(lines, 1) if "String label(" in line)
    return CodeRange(path, start, start + 2, 1, 1, "METHOD_DECLARATION", "", "x label(name String) : String")


def faults(members: str, *, nested: bool, head: str = "class Labels", exists: bool = False) -> list[str]:
    """Return what is named of an answer with these members in the new class, beside the moved method."""
    made = f"{head} {{\n{members}{LABEL}}}\n"
    if nested:
        path, after = OLD, {OLD: f"{AFTER.rpartition('}')[0]}\n{made}}}\n"}
    else:
        path, after = NEW, {OLD: AFTER, NEW: f"package p;\n\n{made}"}
    instance = RefactoringInstance.from_document(
        document(
            type="Move Method",
            methodNameBefore="p.Cart#label",
            filePathBefore=OLD,
            filePathAfter=path,
            sourceCodeBeforeForWhole=BEFORE,
            sourceCodeAfterForWhole=DEVELOPERS,
            moveFileExist=exists,
        )
    )
    places = RefactoringPlaces(place(OLD, BEFORE), place(path, after[path]))
    data = {name: text.encode() for name, text in after.items()}
    return find_extra_changes(instance, {OLD: BEFORE.encode()}, data, [places])


NEEDED = {
    "nothing": "",
    "a field that the method names": '  static final String MARK = "- ";\n',
    "a member that the field names": '  String MARK = mark();\n  static String mark() { return ""; }\n',
    "a member of the developers' class": "  int developers() { return 1; /* as there */ }\n",
    "a constructor": "  private Labels() { }\n",
    "a constructor that sets a field": "  String MARK;\n  Labels(String it) { super(); this.MARK = it; }\n",
    "a type that the method needs": "  String MARK = Marks.A;\n  static class Marks { static String A; }\n",
}
NEEDLESS = {
    "a field": ("  int more;\n", "Labels.more is new"),
    "a method": ("  void more() { }\n", "Labels.more() is new"),
    "another body of the developers' method": (
        "  int developers() { return 2; }\n",
        "Labels.developers() is new",
    ),
    "a constructor that does more": ("  Labels() { System.gc(); }\n", "Labels.Labels() is new"),
    "a constructor that sets an own field": ("  int a;\n  Labels(int b) { a = b; }\n", "Labels.a is new"),
    "an initializer": ("  static { System.gc(); }\n", "Labels.static initializer is new"),
    "a type": ("  static class More { }\n", "Labels.More is new"),
}


@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize("name", NEEDED)
def test_new_class_has_what_the_moved_method_needs(name: str, *, nested: bool) -> None:
    assert faults(NEEDED[name], nested=nested) == []


@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize("name", NEEDLESS)
def test_what_else_a_new_class_has_is_named(name: str, *, nested: bool) -> None:
    members, line = NEEDLESS[name]
    assert line in faults(members, nested=nested)


CALLERS = {
    "the call alone": ('show() {\n    return Labels.label("cart");', True),
    "another text behind it": ('show() {\n    return Labels.label("cart") + 1;', False),
    "another text before it": ('show() {\n    log(Labels.label("cart"));', False),
    "a statement more": ('show() {\n    log();\n    return Labels.label("cart");', False),
}


@pytest.mark.parametrize("name", CALLERS)
def test_callers_of_a_moved_method_change_in_the_call_alone(name: str) -> None:
    text, is_right = CALLERS[name]
    after = AFTER.replace('show() {\n    return Labels.label("cart");', text)
    made = f"package p;\n\nclass Labels {{\n{LABEL}}}\n"
    places = RefactoringPlaces(place(OLD, BEFORE), place(NEW, made))
    instance = RefactoringInstance.from_document(
        document(
            type="Move Method", filePathBefore=OLD, filePathAfter=NEW, moveFileExist=False, description=""
        )
    )
    files = {OLD: after.encode(), NEW: made.encode()}
    found = find_extra_changes(instance, {OLD: BEFORE.encode()}, files, [places])
    assert found == ([] if is_right else [f"{OLD}: Cart.show() is changed"])


def test_another_type_in_the_new_file_is_named() -> None:
    assert faults("", nested=False, head="class More { }\n\nclass Labels") == ["More is new"]


def test_new_file_where_the_developers_made_none_is_named() -> None:
    assert faults("", nested=False, exists=True) == [f"{NEW} is new"]
