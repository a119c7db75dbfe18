"""The coverage of a method is told apart from that of its overloads and of nested classes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codetaste.errors import SourceError
from codetaste.java.build.coverage import CoverageTarget, read_coverage
from codetaste.java.build.descriptor import descriptor_types, matches_source_types
from codetaste.java.build.xml_tree import parse_xml_tree

DOCTYPE = '<!DOCTYPE report PUBLIC "-//JACOCO//DTD Report 1.1//EN" "report.dtd">'


def method(name: str, descriptor: str, line: int, covered: int = 1) -> str:
    kinds = {"INSTRUCTION": 2, "LINE": 1}
    counters = "".join(
        f'<counter type="{kind}" missed="{missed}" covered="{covered}"/>' for kind, missed in kinds.items()
    )
    return f'<method name="{name}" desc="{descriptor}" line="{line}">{counters}</method>'.replace(
        "<init>", "&lt;init&gt;"
    )


def report(*classes: tuple[str, list[str]], lines: dict[int, int], source: str = "A.java") -> bytes:
    inside = "".join(
        f'<class name="{name}" sourcefilename="{source}">{"".join(methods)}</class>'
        for name, methods in classes
    )
    known = "".join(f'<line nr="{nr}" mi="0" ci="{ci}" mb="0" cb="0"/>' for nr, ci in lines.items())
    body = f'<package name="org/a">{inside}<sourcefile name="{source}">{known}</sourcefile></package>'
    return f'<?xml version="1.0"?>{DOCTYPE}<report name="r">{body}</report>'.encode()


def target(name: str, start: int, end: int, class_name: str = "org.a.A", **more: object) -> CoverageTarget:
    return CoverageTarget("core/src/main/java/org/a/A.java", class_name, name, start, end, **more)  # type: ignore[arg-type]


def test_method_has_its_counters_and_its_lines() -> None:
    content = report(("org/a/A", [method("run", "()V", 12)]), lines={11: 1, 12: 1, 13: 0, 14: 3, 20: 1})
    found = read_coverage(content).find(target("run", 10, 15))
    assert found is not None
    assert found.is_covered
    assert (found.covered_lines, found.missed_lines) == ((11, 12, 14), (13,))
    assert (found.counters["LINE"].missed, found.counters["LINE"].covered) == (1, 1)


def test_overloads_are_distinguished_by_lines_and_on_one_line_by_types() -> None:
    methods = [
        method("run", "(I)V", 5, 0),
        method("run", "(Ljava/lang/String;)V", 9),
        method("run", "(Ljava/util/List;)V", 9, 0),
        method("run", "(Ljava/lang/Object;[I)V", 9),
    ]
    found = read_coverage(report(("org/a/A", methods), lines={5: 0, 9: 1}))
    of_numbers = found.find(target("run", 4, 6))
    assert of_numbers is not None
    assert (of_numbers.descriptor, of_numbers.is_covered) == ("(I)V", False)
    assert found.find(target("run", 8, 10)) is None
    wanted = {
        "(Ljava/lang/String;)V": ("String",),
        "(Ljava/util/List;)V": ("List<? super T>",),
        "(Ljava/lang/Object;[I)V": ("T", "int..."),
    }
    for descriptor, types in wanted.items():
        for more in ({"descriptor": descriptor}, {"parameters": types}):
            each = found.find(target("run", 8, 10, **more))
            assert each is not None
            assert each.descriptor == descriptor


def test_nested_classes_and_constructors_of_one_name_are_distinguished() -> None:
    content = report(
        ("org/a/A", [method("<init>", "()V", 3), method("run", "()V", 30)]),
        ("org/a/A$B", [method("<init>", "(Lorg/a/A;)V", 3, 0), method("run", "()V", 30, 0)]),
        lines={3: 1, 30: 1},
    )
    found = read_coverage(content)
    outer, inner = found.find(target("run", 29, 31)), found.find(target("run", 29, 31, "org.a.A.B"))
    assert outer is not None
    assert inner is not None
    assert (outer.class_name, outer.is_covered) == ("org/a/A", True)
    assert (inner.class_name, inner.is_covered) == ("org/a/A$B", False)
    made = found.find(target("B", 3, 3, "org.a.A.B"))
    assert made is not None
    assert made.descriptor == "(Lorg/a/A;)V"
    assert found.find(target("run", 29, 31, "")) is None, "without the class there are two"


def test_method_without_code_and_file_of_another_package_are_not_found() -> None:
    found = read_coverage(report(("org/a/A", [method("run", "()V", 30)]), lines={30: 1}))
    assert found.find(target("run", 1, 5)) is None
    assert found.find(target("walk", 29, 31)) is None
    assert found.find(CoverageTarget("src/org/b/A.java", "org.b.A", "run", 29, 31)) is None
    assert found.find(CoverageTarget("anywhere/A.java", "org.a.A", "run", 29, 31)) is not None


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "not well-formed"),
        (b"<a>", "not well-formed"),
        (b'<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>', "declares entities"),
        (b"<a>" * 200 + b"</a>" * 200, "nested deeper"),
    ],
)
def test_bad_xml_is_one_clear_line(content: bytes, message: str) -> None:
    with pytest.raises(SourceError, match=message):
        parse_xml_tree(content, "a.xml")


@given(st.binary() | st.text().map(str.encode))
def test_any_content_is_read_or_refused(content: bytes) -> None:
    problem = ""
    try:
        read_coverage(content)
    except SourceError as error:
        problem = str(error)
    assert "\n" not in problem


@pytest.mark.parametrize(
    ("descriptor", "types"),
    [
        ("()V", ()),
        ("(I[JLjava/lang/String;[[Lorg/a/A$B;)Z", ("int", "long[]", "java.lang.String", "org.a.A.B[][]")),
    ],
)
def test_types_of_a_descriptor(descriptor: str, types: tuple[str, ...]) -> None:
    assert descriptor_types(descriptor) == types


@pytest.mark.parametrize(
    ("parameters", "fits"),
    [
        (("String", "int"), True),
        (("java.lang.String", "int"), True),
        (("final String", "@Nonnull int"), True),
        (("String", "long"), False),
        (("String",), False),
        (("T", "int"), True),
        (("Map<String, List<T>>", "int"), False),
        (("String[]", "int"), False),
        (("String", "int..."), False),
    ],
)
def test_types_of_the_source_fit_a_descriptor(parameters: tuple[str, ...], *, fits: bool) -> None:
    assert matches_source_types("(Ljava/lang/String;I)V", parameters) is fits
