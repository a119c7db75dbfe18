"""Detections as data: what is written is read back."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from codetaste.refactorings.languages import language_of, languages_of, sent_path
from codetaste.refactorings.model import (
    CodeRange,
    Detection,
    Purity,
    Refactoring,
    detection_from_json,
    detection_to_json,
)

texts = st.text(max_size=20)
numbers = st.integers(0, 10**6)
ranges = st.builds(CodeRange, texts, *[numbers] * 4, texts, texts, st.none() | texts)
purities = st.none() | st.builds(Purity, st.booleans(), texts, st.none() | texts, numbers)
sides = st.lists(ranges, max_size=3).map(tuple)
refactorings = st.lists(st.builds(Refactoring, texts, texts, sides, sides, purities), max_size=3).map(tuple)


@given(st.builds(Detection, st.none() | texts, refactorings, texts, st.none() | numbers, texts))
def test_a_detection_is_written_and_read_back(detection: Detection) -> None:
    assert detection_from_json(json.loads(json.dumps(detection_to_json(detection)))) == detection


def test_languages_by_release_and_file() -> None:
    assert languages_of("3.0.10") == ("Java",)
    assert [language_of(path, "3.1.4") for path in ("a/B.java", "b.mjs", "b.tsx", "c.cpp", "java")] == [
        "Java",
        "JavaScript",
        "",
        "",
        "",
    ]
    assert language_of("a.py", "3.0.10") == ""
    assert (sent_path("a.js"), sent_path("a.java")) == ("a.js.ts", "a.java")
