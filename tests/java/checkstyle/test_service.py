"""Checkstyle with the rules for code smells, on today's Java, in a JVM that is asked again."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from codetaste.errors import JavaError, ToolMissing
from codetaste.java.artifacts.artifact_set import load_artifact_set
from codetaste.java.artifacts.store import install_artifacts
from codetaste.java.checkstyle.service import CHECKSTYLE, CheckstyleService, open_checkstyle

pytestmark = pytest.mark.anyio
MODERN = """\
package p;

import java.util.List;

public sealed interface Shape permits Circle, Square {
    default String name(Object other) {
        return switch (other) {
            case Circle(int radius) when radius > 1 -> "big";
            default -> \"""
                other\""";
        };
    }
}

record Circle(int radius) implements Shape { }

final class Square implements Shape {
    int Side(int side, boolean odd) {
        int unused = 1;;
        side = side + 1;
        if (odd == true) { }
        return side;
    }
}
"""


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
async def service(java_cache: Path) -> AsyncIterator[CheckstyleService]:
    await install_artifacts(load_artifact_set(CHECKSTYLE), java_cache)
    async with open_checkstyle(java_cache) as opened:
        yield opened


@pytest.mark.heavy
async def test_smells_are_found_by_line(service: CheckstyleService) -> None:
    report = await service.check({"src/p/Shape.java": MODERN, "Clean.java": "class Clean { }\n"})
    assert report.unreadable == ()
    assert [(each.line, each.rule) for each in report.violations] == [
        (3, "UnusedImports"),
        (18, "MethodName"),
        (19, "EmptyStatement"),
        (19, "UnusedLocalVariable"),
        (20, "ParameterAssignment"),
        (21, "EmptyBlock"),
        (21, "SimplifyBooleanExpression"),
    ]
    assert {each.path for each in report.violations} == {"src/p/Shape.java"}
    assert report.violations[0].message == "Unused import - java.util.List."


@pytest.mark.heavy
async def test_a_text_that_is_no_java_is_named_and_the_others_are_read(service: CheckstyleService) -> None:
    report = await service.check({"A.java": "class A { void f( }", "B.java": "import a.B;\nclass B { }\n"})
    assert report.unreadable == ("A.java",)
    assert [each.path for each in report.violations] == ["B.java"]
    assert (await service.check({})).violations == ()


@pytest.mark.heavy
async def test_odd_names_of_files(service: CheckstyleService) -> None:
    text = "import a.B;\nclass B { }\n"
    paths = ["a/B.java", "b/B.java", "ä b/ü.java", "../B.java"]
    report = await service.check(dict.fromkeys(paths, text))
    assert sorted(each.path for each in report.violations) == sorted(paths)


@pytest.mark.heavy
async def test_rules_that_checkstyle_does_not_take(service: CheckstyleService) -> None:
    broken = replace(service, rules=service.rules.replace('"MethodName"', '"MethodNames"'))
    with pytest.raises(JavaError, match="MethodNames"):
        await broken.check({"A.java": "class A { }"})
    assert (await service.check({"A.java": "class A { }"})).violations == ()


async def test_without_its_jars_it_says_how_to_get_them(tmp_path: Path) -> None:
    with pytest.raises(ToolMissing, match=f"codetaste java install {CHECKSTYLE}"):
        async with open_checkstyle(tmp_path):
            pass
