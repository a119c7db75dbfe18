"""instances.csv is read strictly, with all problems at once, and written as it was read."""

from __future__ import annotations

import csv
import io
import string

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from codetaste.benchmark.instance import Instance
from codetaste.benchmark.instances_csv import COLUMNS, LANGUAGES, format_table, read_table
from codetaste.errors import ConfigError

HEADER = "owner,repo,commit_hash,golden_commit_hash,combined_score,category,language"
A, B = "a" * 40, "b" * 40
ROW = f"koajs,koa,{A},{B},0.68,structural,javascript"


def problems(text: str | bytes) -> list[str]:
    content = text.encode() if isinstance(text, str) else text
    with pytest.raises(ConfigError) as caught:
        read_table(content, "t.csv")
    return list(caught.value.problems)


def test_valid_table_is_read_in_its_order() -> None:
    text = f"{HEADER},origin\r\n\r\nKoaJS,koa,{A},{B},0.5,api,javascript,\n99designs,gqlgen,{B},{A},,,go,/x\n"
    koa, gqlgen = read_table(b"\xef\xbb\xbf" + text.encode(), "t.csv")
    assert (koa.id, koa.path, koa.combined_score) == ("koajs__koa-aaaaaaaa", "KoaJS/koa/aaaaaaaa", 0.5)
    assert (gqlgen.id, gqlgen.origin, gqlgen.combined_score) == ("99designs__gqlgen-bbbbbbbb", "/x", None)


def test_columns_may_stand_in_any_order() -> None:
    columns = sorted(COLUMNS)
    row = dict(zip(HEADER.split(","), ROW.split(","), strict=True))
    text = ",".join(columns) + "\n" + ",".join(row[column] for column in columns)
    assert read_table(text.encode(), "t.csv") == read_table(f"{HEADER}\n{ROW}".encode(), "t.csv")


def test_every_problem_is_reported_with_file_and_line() -> None:
    text = "\n".join(
        [
            HEADER,
            ROW,
            f"..,koa,{A},{B},,,go",
            f"a/b,-x,{A},{B},,,go",
            f"x,y,{A[:8]},{B.upper()},,,go",
            f"x,y,{A},{A},,,go",
            f"x,y,{A},{B},high,,JavaScript",
            f"x,y,{A},{B},nan,,pyhton",
            "only,three,fields",
            f"KOAJS,Koa,{A},{B},,,go",
        ]
    )
    assert problems(text) == [
        "t.csv:3: owner '..' is not a valid name (letters, digits, '-', '_' and '.')",
        "t.csv:4: owner 'a/b' is not a valid name (letters, digits, '-', '_' and '.')",
        "t.csv:4: repo '-x' is not a valid name (letters, digits, '-', '_' and '.')",
        "t.csv:5: commit_hash 'aaaaaaaa' is not a full hash (40 or 64 lower-case hex digits)",
        f"t.csv:5: golden_commit_hash '{B.upper()}' is not a full hash (40 or 64 lower-case hex digits)",
        "t.csv:6: commit_hash and golden_commit_hash are the same",
        "t.csv:7: language 'JavaScript' is unknown; did you mean javascript?",
        "t.csv:7: combined_score 'high' is not a number",
        "t.csv:8: language 'pyhton' is unknown; did you mean python?",
        "t.csv:8: combined_score 'nan' is not a number",
        "t.csv:9: 3 fields, but the first line names 7 columns",
        "t.csv:10: koajs__koa-aaaaaaaa is already in line 2",
    ]


def test_missing_and_duplicate_columns_are_named() -> None:
    text = f"owner,repo,comit_hash,golden_commit_hash,combined_score,category,category\n{ROW}"
    assert problems(text) == [
        "t.csv:1: the column 'category' is there twice",
        "t.csv:1: the column 'commit_hash' is missing; did you mean comit_hash?",
        "t.csv:1: the column 'language' is missing",
    ]


def test_empty_table_is_refused() -> None:
    assert "the file is empty" in problems("")[0]
    assert "no instance" in problems(f"{HEADER}\n")[0]


def test_invalid_utf8_or_csv_error_names_the_line() -> None:
    assert problems(f"{HEADER}\n{ROW}\ncaf".encode() + b"\xe9") == [
        "t.csv:3: byte 0xe9 is not UTF-8; save the file as UTF-8"
    ]
    (quoted,) = problems(f'{HEADER}\n{ROW}\n"never closed')
    assert quoted.startswith("t.csv:3: ")


def test_malformed_origin_is_reported_with_its_line() -> None:
    (problem,) = problems(f"{HEADER},origin\n{ROW},sdist:x")
    assert problem.startswith("t.csv:2: origin 'sdist:x'")


names = st.text(string.ascii_letters + string.digits + "-_.", min_size=1, max_size=8).filter(
    lambda name: not name.startswith("-") and set(name) != {"."}
)
hashes = st.one_of(*(st.text("0123456789abcdef", min_size=size, max_size=size) for size in (40, 64)))
plain = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=12)
instances = st.builds(
    Instance,
    names,
    names,
    hashes,
    hashes,
    st.none() | st.floats(0, 1),
    plain,
    st.sampled_from(sorted(LANGUAGES)),
    st.fixed_dictionaries({"note": plain}),
).filter(lambda instance: instance.commit_hash != instance.golden_commit_hash)


@settings(max_examples=60, deadline=None)
@given(st.lists(instances, min_size=1, max_size=5, unique_by=lambda instance: instance.id))
def test_written_table_is_read_back(rows: list[Instance]) -> None:
    reread = read_table(format_table(rows).encode(), "t.csv")
    assert list(reread) == rows
    assert [row.extra for row in reread] == [row.extra for row in rows]


cells = st.sampled_from(
    ["owner", "..", "a", A, B, "python", "", "0.5", '"', "\n", ",", "\r", "\0", "é", "go"]
)


@settings(max_examples=200, deadline=None)
@given(st.lists(cells, max_size=30), st.booleans())
@example(parts=['"', "\n", "owner", '"'], with_header=False)
def test_any_text_is_read_as_a_table_or_reported(parts: list[str], with_header: bool) -> None:
    text = (HEADER + "\n" if with_header else "") + ",".join(parts)
    try:
        rows = read_table(text.encode(), "t.csv")
    except ConfigError as error:
        messages = list(error.problems)
        rows = ()
    else:
        messages = []
    assert bool(messages) != bool(rows)
    assert all(problem.startswith("t.csv:") and "\n" not in problem for problem in messages)
    if messages:
        return
    # Accepted rows are those of a plain CSV reader, and every path has three plain parts.
    expected = [row for row in csv.reader(io.StringIO(text, newline="")) if row][1:]
    assert [[row.owner, row.repo] for row in rows] == [row[:2] for row in expected]
    assert all(
        len([part for part in row.path.split("/") if part not in {"", ".", ".."}]) == 3 for row in rows
    )
