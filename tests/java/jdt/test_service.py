"""Eclipse JDT on real sources: what surrounds a method, and a named outcome for all that is odd."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from codetaste.errors import ToolMissing
from codetaste.java.artifacts.artifact_set import load_artifact_set
from codetaste.java.artifacts.store import install_artifacts
from codetaste.java.jdt.model import (
    CallerRelation,
    CodeOrigin,
    EnrichedTree,
    MethodContext,
    MethodTarget,
    ParsedSources,
    TargetOutcome,
)
from codetaste.java.jdt.service import ARTIFACT_SET, open_jdt
from support.java.odd_sources import FILES, MAIN, ODD, write_sources

TEXTS = {
    "a/A.java": """package a;
/** Doc. */
@Deprecated public abstract class A<T>
        extends B {
    static final int N = 1;
    void m(final int a) {
        for (final String each : list()) { if (a > 0) first(); else { second(); } }
        try (var x = open()) { third(a + 1 - 2); } catch (a.b.A.C | B e) { } finally { done(); }
        switch (a) { case 1: one(); break; default: }
        do { x++; } while (x < 3);
        for (int i = 0, j = 1; i < 3; i++) { }
        synchronized (this) { }
        label: while (true) { break label; }
        Runnable r = () -> lambda();
        run(this::reference, new B() { void f() { inner(); } });
    }
    abstract void none();
    static class In { In() { super(); class Local { } } }
}
""",
    "Bad.java": "class Bad { void m( }",
}


@pytest.fixture(scope="module")
def answers(java_cache: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[EnrichedTree, ParsedSources]:
    """One JVM's answers about all targets."""
    root = write_sources(tmp_path_factory.mktemp("odd"))

    async def ask() -> tuple[EnrichedTree, ParsedSources]:
        await install_artifacts(load_artifact_set(ARTIFACT_SET), java_cache)
        async with open_jdt(java_cache) as jdt:
            return await jdt.enrich(root, TARGETS), await jdt.parse(TEXTS)

    return anyio.run(ask)


NAMES = (
    (f"{MAIN}/p/Square.java", "twice"),
    (f"{MAIN}/p/Square.java", "hook"),
    (f"{MAIN}/p/Square.java", "area"),
    (f"{MAIN}/p/Square.java", "use"),
    (f"{MAIN}/p/Circle.java", "Circle"),
    (f"{MAIN}/p/Base.java", "hook"),
    (f"{MAIN}/p/Base.java", "inherited"),
    (f"{MAIN}/p/Shape.java", "area"),
    (f"{ODD}/q/Two.java", "twin"),
    (f"{ODD}/q/Two.java", "after"),
    (f"{ODD}/q/Two.java", "nothing"),
    (f"{ODD}/q/Old.java", "yield"),
    ("copy/src/main/java/p/Only.java", "x"),
    ("nowhere/Lost.java", "b"),
    ("Default.java", "x"),
    ("empty/Empty.java", "x"),
    ("bad/Garbage.java", "x"),
    ("bad/Latin.java", "n"),
    ("bom/Bom.java", "m"),
    ("gen/Gen.java", "s"),
    ("deep/Deep.java", "d"),
    ("enums/E.java", "E"),
    ("enums/E.java", "Inner"),
    ("Link.java", "x"),
)
TWIN, OVERLOAD, NESTED, ANY_NESTED = (
    MethodTarget(f"{ODD}/q/Two.java", 5, 5),
    MethodTarget(f"{MAIN}/p/Square.java", 7, 7, "twice"),
    MethodTarget(f"{ODD}/q/Two.java", name="m", owner="q.Two.Other.Inner"),
    MethodTarget(f"{ODD}/q/Two.java", name="m"),
)
TARGETS = [
    *(MethodTarget(path, name=name) for path, name in NAMES),
    *(TWIN, OVERLOAD, NESTED, ANY_NESTED),
]


@pytest.fixture
def tree(answers: tuple[EnrichedTree, ParsedSources]) -> EnrichedTree:
    return answers[0]


def context(tree: EnrichedTree, file: str, name: str) -> MethodContext:
    return next(
        each
        for each in tree.targets
        if each.target.path.endswith(f"/{file}.java") and each.target.name == name and not each.target.owner
    )


def callers(found: MethodContext) -> list[tuple[str, str, int]]:
    return [(each.relation.value, each.member, line) for each in found.callers for line in each.lines]


pytestmark = pytest.mark.heavy


def test_the_project_has_its_files_source_roots_modules_and_generated_files(tree: EnrichedTree) -> None:
    structure = tree.structure
    assert structure.java_files == tuple(sorted(FILES))
    assert structure.source_roots[MAIN] == 4
    assert structure.source_roots[ODD] == 2
    assert "nowhere" not in structure.source_roots
    assert [(each.name, each.path) for each in structure.modules] == [("a.b", f"{MAIN}/module-info.java")]
    assert structure.generated_files == ("gen/Gen.java", "gen/Marked.java")


def test_problems_of_files_are_named_and_the_rest_goes_on(tree: EnrichedTree) -> None:
    found = {(each.path, each.kind) for each in tree.problems}
    assert {("bad/Garbage.java", "encoding"), ("bad/Latin.java", "encoding")} <= found
    assert {(f"{ODD}/q/Two.java", "syntax"), (f"{ODD}/q/Old.java", "syntax")} <= found
    assert len(found) == 4


def test_a_method_has_its_text_class_and_descriptor(tree: EnrichedTree) -> None:
    found = context(tree, "Square", "hook")
    assert found.outcome is TargetOutcome.FOUND
    assert found.method is not None
    assert found.type is not None
    assert found.method.source.startswith("@Override protected void hook(String t) {")
    assert found.method.descriptor == "(Ljava/lang/String;)V"
    assert found.type.signature == "public final class Square extends Base<String> implements Shape"
    assert found.type.source == str(FILES[f"{MAIN}/p/Square.java"]).partition("\n")[2].rstrip()
    assert {each.path for each in found.package_sources} == {
        *(f"{MAIN}/p/{name}.java" for name in ("Base", "Circle", "Shape")),
        "mod/src/test/java/p/SquareTest.java",
    }


def test_callees_are_resolved_or_marked(tree: EnrichedTree) -> None:
    found = {each.name: each for each in context(tree, "Square", "hook").callees}
    assert found["hook"].origin is CodeOrigin.SOURCE
    assert found["hook"].method is not None
    assert found["hook"].method.path == f"{MAIN}/p/Base.java"
    assert found["missing"].origin is CodeOrigin.UNRESOLVED
    assert found["go"].owner is None
    used = context(tree, "Square", "use").callees
    assert [(each.name, each.parameters, each.lines) for each in used if each.name == "twice"] == [
        ("twice", ("int",), (9, 12, 13)),
        ("twice", ("double",), (10,)),
    ]
    assert ("area", "reference") in [(each.name, each.kind) for each in used]
    library = context(tree, "Square", "area").overrides
    assert library == ("p.Shape#area",)


def test_callers_are_found_in_all_sources_through_subclasses_and_supertypes(tree: EnrichedTree) -> None:
    assert callers(context(tree, "Base", "inherited")) == [
        ("direct", "p.Base#all", 4),
        ("direct", "p.SquareTest#test", 5 + 1),
    ]
    assert callers(context(tree, "Square", "hook")) == [
        ("overridden", "p.Base#all", 4),
        ("overridden", "p.Square#hook", 16),
    ]
    assert ("overridden", "p.SquareTest#test", 8) in callers(context(tree, "Square", "area"))
    assert context(tree, "Base", "hook").overridden_by == ("p.Square#hook",)
    relations = {each.relation for each in context(tree, "Square", "area").callers}
    assert relations == {CallerRelation.DIRECT, CallerRelation.OVERRIDDEN}


def test_the_hierarchy_has_parents_and_children_of_all_sources(tree: EnrichedTree) -> None:
    above = context(tree, "Square", "hook").parents
    assert [(each.name, each.relation, each.origin) for each in above] == [
        ("p.Base", "extends", CodeOrigin.SOURCE),
        ("p.Shape", "implements", CodeOrigin.SOURCE),
    ]
    below = context(tree, "Shape", "area").children
    assert [each.name for each in below] == ["p.Circle", "p.Square"]
    assert [each.name for each in context(tree, "Base", "hook").children] == ["p.Square"]


def test_overloads_twins_and_nested_classes_are_distinguished_or_ambiguous(tree: EnrichedTree) -> None:
    assert context(tree, "Square", "twice").outcome is TargetOutcome.AMBIGUOUS
    assert context(tree, "Two", "twin").outcome is TargetOutcome.AMBIGUOUS
    by_target = {each.target: each for each in tree.targets}
    assert "q.Two.Inner#m" in (by_target[ANY_NESTED].message or "")
    assert by_target[ANY_NESTED].outcome is TargetOutcome.AMBIGUOUS
    overload, twin, nested = (by_target[each].method for each in (OVERLOAD, TWIN, NESTED))
    assert overload is not None
    assert overload.descriptor == "(I)I"
    assert [line for _, _, line in callers(by_target[OVERLOAD])] == [9, 12, 13, 9]
    assert twin is not None
    assert twin.start_line == 5
    assert nested is not None
    assert nested.start_line == 4
    assert by_target[NESTED].enclosing_types == ("q.Two", "q.Two.Other")


def test_constructors_have_the_descriptors_of_class_files(tree: EnrichedTree) -> None:
    descriptors = {
        (file, name): found.method.descriptor
        for file, name in (("Circle", "Circle"), ("E", "E"), ("E", "Inner"))
        if (found := context(tree, file, name)).method
    }
    assert descriptors == {
        ("Circle", "Circle"): "(D)V",
        ("E", "E"): "(Ljava/lang/String;II)V",
        ("E", "Inner"): "(Lenums/E;Ljava/lang/String;)V",
    }
    assert callers(context(tree, "Circle", "Circle")) == [("direct", "p.Shape#of", 4)]


@pytest.mark.parametrize(
    ("file", "name", "outcome"),
    [
        ("Two", "after", TargetOutcome.FOUND),
        ("Two", "nothing", TargetOutcome.UNPARSABLE),
        ("Lost", "b", TargetOutcome.FOUND),
        ("Empty", "x", TargetOutcome.NO_METHOD),
        ("Garbage", "x", TargetOutcome.UNPARSABLE),
        ("Latin", "n", TargetOutcome.FOUND),
        ("Bom", "m", TargetOutcome.FOUND),
        ("Gen", "s", TargetOutcome.FOUND),
        ("Deep", "d", TargetOutcome.FOUND),
    ],
)
def test_odd_files_have_named_outcomes(
    tree: EnrichedTree, file: str, name: str, outcome: TargetOutcome
) -> None:
    assert context(tree, file, name).outcome is outcome


def test_a_link_is_no_file_and_a_class_may_be_in_no_package(tree: EnrichedTree) -> None:
    top = {each.target.path: each.outcome for each in tree.targets if "/" not in each.target.path}
    assert top == {"Link.java": TargetOutcome.NO_FILE, "Default.java": TargetOutcome.FOUND}


def test_text_with_a_mark_and_carriage_returns_keeps_its_lines(tree: EnrichedTree) -> None:
    found = context(tree, "Bom", "m").method
    assert found is not None
    assert (found.start_line, found.end_line) == (3, 6)
    assert found.source == "/** ä */\r\n  void m() {\r\n    n();\r\n  }"


def test_old_java_is_read_as_such(tree: EnrichedTree) -> None:
    found = context(tree, "Old", "yield")
    assert (found.outcome, found.level) == (TargetOutcome.FOUND, "1.8")
    assert callers(found) == [("direct", "q.Old#yield", 3)]


def test_variants_of_a_project_do_not_meet(tree: EnrichedTree) -> None:
    assert context(tree, "Square", "hook").left_out_files == (
        "copy/src/main/java/p/Base.java",
        "copy/src/main/java/p/Only.java",
    )
    copied = context(tree, "Only", "x")
    assert [(each.name, each.origin) for each in copied.callees] == [("copy", CodeOrigin.SOURCE)]
    assert copied.parents[0].path == "copy/src/main/java/p/Base.java"


def test_syntax_alone_gives_methods_with_statements_as_refactoring_miner_writes_them(
    answers: tuple[EnrichedTree, ParsedSources],
) -> None:
    parsed = answers[1]
    types = {each.name: each for each in parsed.types}
    assert set(types) == {"a.A", "a.A.In", "a.A.In.In.Local", "Bad"}
    assert [each.path for each in parsed.problems] == ["Bad.java"]
    assert types["a.A"].signature == "public abstract class A<T>\n        extends B "
    assert types["a.A.In"].package_name == "a.A"
    method, none = types["a.A"].methods
    assert (method.signature, method.start_line) == ("void m(final int a) {", 6)
    assert (none.signature, none.body) == ("abstract void none();", None)
    assert set(method.calls) == {
        *("list", "first", "second", "open", "third", "done", "one", "lambda", "run", "reference", "inner"),
    }
    assert (method.body or "").startswith(
        "\nfor(final String each: list()){if(a > 0)first();\n{second();\n}}"
        "try(var x=open())third(a + 1 - 2);\ncatch(A.C|B e)finallydone();\n"
        "switch(a)case 1:one();\nbreak;\ndefault:do(x < 3){x++;\n}"
    )


@pytest.mark.anyio
async def test_without_its_jars_the_message_says_what_to_run(tmp_path: Path) -> None:
    with pytest.raises(ToolMissing, match=r"run `codetaste java install jdt-[\d.]+`"):
        async with open_jdt(tmp_path):
            pass
