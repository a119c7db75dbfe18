"""Of the violations in an answer only those count that are new."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import pytest

from codetaste.java.checkstyle.service import CheckstyleService, StyleReport, StyleViolation
from codetaste.swe_refactor.trials.pair.style import find_new_violations

pytestmark = pytest.mark.anyio


class Rules:
    """Each line with "bad" violates a rule, and each class is too long."""

    async def check(self, contents: Mapping[str, str]) -> StyleReport:
        found = []
        for path, text in contents.items():
            lines = text.splitlines()
            found.append(StyleViolation(path, 1, "Length", f"It has {len(lines)} lines (most: 1)."))
            found += [
                StyleViolation(path, at, "Bad", "It is bad.")
                for at, line in enumerate(lines, 1)
                if "bad" in line
            ]
        return StyleReport(tuple(found), ())


@pytest.mark.parametrize(
    ("before", "after", "new"),
    [
        ({"A": "class\nbad();"}, {"A": "class\n\n\n  bad();"}, []),
        ({"A": "class\nbad();", "B": "class"}, {"A": "class", "B": "class\n  bad();"}, []),
        ({"A": "class\nbad();"}, {"A": "class\nbad();\nbad();"}, [("A", 3)]),
        ({"A": "class\nbad();"}, {"A": "class\nbad(1);"}, [("A", 2)]),
        ({"A": "class"}, {"A": "class", "N": "class N\nbad();"}, [("N", 1), ("N", 2)]),
        ({}, {}, []),
    ],
)
async def test_new_violations(before: dict[str, str], after: dict[str, str], new: list[Any]) -> None:
    found = await find_new_violations(before, after, cast("CheckstyleService", Rules()))
    assert [(each.path, each.line) for each in found] == new
