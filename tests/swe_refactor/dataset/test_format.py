"""Published files are read and written byte for byte, and a fault in one is a clear line."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codetaste.errors import ConfigError
from codetaste.swe_refactor.dataset.format import (
    format_instances,
    parse_instances,
    read_instances,
    write_instances,
)
from codetaste.swe_refactor.dataset.instance import RefactoringInstance
from support.swe_refactor.documents import document

TEXT = st.text(max_size=30)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)
KNOWN = frozenset(document()) | {"projectName", "compileCommand", "codetaste"}
OPTIONAL = ("invokedMethod", "coverageInfo", "compileJDK", "testResult", "moveFileExist")
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "compileJDK": st.sampled_from([1.8, 8, 11, 17.0, "21", None]),
    "sourceCodeBeforeForWhole": TEXT,
    "isPureRefactoring": st.booleans(),
    "invokedMethodSet": st.lists(TEXT, max_size=3),
    "coverageInfo": st.dictionaries(
        TEXT, st.fixed_dictionaries({"missed": st.integers(), "covered": st.integers()}), max_size=3
    ),
}


@st.composite
def documents(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Draw a file: other values, keys left out, unknown keys, and keys in any order."""
    found = []
    for index in range(draw(st.integers(0, 3))):
        left_out = dict.fromkeys(draw(st.sets(st.sampled_from(OPTIONAL))), ...)
        values = draw(st.fixed_dictionaries({}, optional=VALUES))
        unknown = draw(st.dictionaries(TEXT.filter(lambda key: key not in KNOWN), JSON, max_size=2))
        made = document(**{**unknown, **values, **left_out, "uniqueId": f"id-{index}"})
        made["purityCheckResultList"][0].update(draw(st.dictionaries(st.just("more"), JSON)))
        found.append({key: made[key] for key in draw(st.permutations(list(made)))})
    return found


@settings(max_examples=40)
@given(documents())
def test_what_is_written_is_what_was_read(file: list[dict[str, Any]]) -> None:
    text = json.dumps(file, indent=4)
    assert format_instances(parse_instances(text, "file")) == text


@settings(max_examples=40)
@given(documents())
def test_every_published_value_is_an_attribute(file: list[dict[str, Any]]) -> None:
    for made, instance in zip(file, parse_instances(json.dumps(file), "file"), strict=True):
        read = json.loads(instance.model_dump_json(by_alias=True, exclude_unset=True))
        assert all(read[key] == made[key] for key in KNOWN & set(made) - {"purityCheckResultList"})


def test_a_file_is_read_and_written(tmp_path: Path) -> None:
    path, copy = tmp_path / "instances.json", tmp_path / "copy.json"
    path.write_text(json.dumps([document(note="é"), document(uniqueId="other")], indent=4))
    write_instances(copy, read_instances(path))
    assert copy.read_bytes() == path.read_bytes()


@pytest.mark.parametrize(
    ("file", "message"),
    [
        ([document(commitId=...)], "file: instance 0: commitId: missing"),
        (
            [document(), document(uniqueId=7)],
            "instance 1: uniqueId: Input should be a valid string (it is 7",
        ),
        (
            [document(diffLocations=[{"filePath": "A.java"}])],
            "instance 0: diffLocations.0.startLine: missing",
        ),
        (
            [document(isPureRefactoring="yes")],
            "isPureRefactoring: Input should be a valid boolean (it is ",
        ),
        ([document(coverageInfo={"LINE": 3})], "instance 0: coverageInfo.LINE: "),
        ([document(), document()], "instance 1: uniqueId: "),
        ([document(), 3], "instance 1: must be an object"),
        ({"instances": []}, "file: must be a JSON list of instances"),
        ([document(x=float("nan"))], "file: not valid JSON: NaN is no JSON"),
        ([document(coverageInfo={"a\nb\x1b" + "c" * 500: {}})], "instance 0: coverageInfo.a b\\x1bccc"),
        ([document(codetaste={"context": {"a": 1}})], "codetaste: Value error, context."),
        ([document(codetaste={"structure": 5})], "codetaste: Value error, structure"),
        ([{}] * 1000, " more problems"),
    ],
)
def test_a_fault_is_one_line_with_file_index_and_key(file: Any, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_instances(json.dumps(file), "file")
    assert any(message in line for line in caught.value.problems)
    assert all("\n" not in line and len(line) < 250 for line in caught.value.problems)


def test_all_faults_are_named_at_once() -> None:
    with pytest.raises(ConfigError) as caught:
        parse_instances(json.dumps([document(type=...), document(type=1, uniqueId=...)]), "file")
    assert len(caught.value.problems) == 3


@pytest.mark.parametrize(
    "text", ["", "[", '[{"a": 1, "a": 2}]', "[" * 100_000, '["\\u12"]', f"[1{'0' * 5000}]", "[1e999]"]
)
def test_what_is_no_json_is_one_line(text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_instances(text, "file")
    assert len(caught.value.problems) == 1
    assert caught.value.problems[0].startswith("file: ")


def test_a_missing_file_and_one_that_is_no_text_are_named(tmp_path: Path) -> None:
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    for name in ("none", "binary"):
        with pytest.raises(ConfigError, match=rf"{name}: cannot be read"):
            read_instances(tmp_path / name)


def test_an_instance_says_which_java_it_needs_and_whether_it_is_verified() -> None:
    releases = {value: made(compileJDK=value).java_release for value in (1.8, 8, 11, 17.0, "21", "1.8", None)}
    assert releases == {1.8: 8, 8: 8, 11: 11, 17.0: 17, "21": 21, "1.8": 8, None: None}
    assert made().verified
    assert not made(testResult=False).verified
    assert not made(compileJDK=..., compileResultBefore=...).verified
    assert made().method_name == "a"


def test_changes_keep_all_other_keys_in_their_places() -> None:
    before = made(unknown=[1, {"a": 1.0}])
    after = before.updated({"testResult": False, "added": 1})
    assert list(after.document) == [*before.document, "added"]
    assert not after.test_result
    assert after.with_own(note="x").own == {"note": "x"}
    assert before.test_result


def test_the_page_names_every_key() -> None:
    page = Path(__file__).parents[3] / "docs" / "swe-refactor-instances.md"
    names = {field.alias for field in RefactoringInstance.model_fields.values()}
    rows = [line for line in page.read_text("utf-8").splitlines() if line.startswith("| `")]
    named = {name for row in rows for name in re.findall("`(.+?)`", row.split(" | ")[0])}
    assert names <= named


def test_the_published_instances_come_out_as_they_went_in(published_data: Path) -> None:
    file = published_data.parent / "swe_refactor" / "pure_refactor_junit4.json"
    if not file.is_file():
        pytest.skip(f"no data: {os.fspath(file)} is not there")
    instances = read_instances(file)
    assert format_instances(instances) == file.read_text("utf-8")
    assert len(instances) == 18
    assert all(each.verified for each in instances)


def made(**changes: Any) -> RefactoringInstance:
    return RefactoringInstance.from_document(document(**changes))
