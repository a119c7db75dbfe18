"""Which classes the agent records, and of which class files the coverage is reported."""

from __future__ import annotations

import pytest

from codetaste.java.build.coverage import CoverageTarget
from codetaste.swe_refactor.verify.coverage_run import agent_option

FILE = "core/src/main/java/org/a/Shop.java"


@pytest.mark.parametrize(
    ("path", "class_name", "pattern"),
    [
        (FILE, "org.a.Shop", "org.a.Shop*"),
        (FILE, "org.a.Shop.Till.Drawer", "org.a.Shop*"),
        (FILE, "org.a.Helper", "org.a.Helper*"),
        (FILE, "org.a.Helper.Inner", "org.a.Helper*"),
        (FILE, "", "org.a.*"),
        ("src/org/a/Shop.java", "", "*Shop*"),
        ("Shop.java", "Shop", "Shop*"),
    ],
)
def test_agent_records_the_classes_that_a_method_may_be_in(path: str, class_name: str, pattern: str) -> None:
    option = agent_option("agent.jar", [CoverageTarget(path, class_name, "total", 1, 2)])
    assert option.startswith("-javaagent:/opt/codetaste/jacoco/agent.jar=")
    assert option.endswith(f",includes={pattern}")
    assert "$" not in option


def test_agent_records_each_pattern_once() -> None:
    targets = [
        CoverageTarget(FILE, name, "total", 1, 2) for name in ("org.a.Shop", "org.a.Shop.Till", "org.b.Z")
    ]
    assert agent_option("agent.jar", targets).endswith("includes=org.a.Shop*:org.b.Z*")
